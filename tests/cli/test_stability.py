"""`fit --stability`: progress, what is printed, and what is refused."""

from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.cli._forecast import of_run
from tests.support.command import invoke
from tests.support.planted_rows import planted


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, `data.zarr`, one with a single row, `row.zarr`, and a run, `run`."""
    made = tmp_path_factory.mktemp("stability")
    x = planted(0, 200, 12, [0.5, 0.4, 0.3], 0.3)[0]
    np.save(made / "data.npy", x)
    np.save(made / "row.npy", x[:1])
    for name in ("data", "row"):
        assert invoke("ingest", made / f"{name}.npy", made / f"{name}.zarr").exit_code == 0
    return made


def fit(folder: Path, run: str, *options: object, data: str = "data.zarr", system: str = "lg-vi-infinite"):
    return invoke("fit", folder / data, folder / run, "--system", system, "-K", 5, "--serial", *options)


def test_the_fits_are_named_and_the_answer_begins_with_how_many_come_back(folder: Path) -> None:
    found = fit(folder, "run", "--stability", 2, "-v")
    assert found.exit_code == 0, found.output
    named = [f"fit, {name}: step 1 of at most 1000" for name in ("all rows", "2 subsamples together")]
    assert all(words in found.stderr for words in named)
    assert "left: about" in found.stderr
    result = ibp.open_result(folder / "run")
    stable, features = int(result["stability"]["stable"].sum()), result["stability"].sizes["feature"]
    sentence = f"{stable} of {features} features come back in at least 2 of 2 subsamples"
    shown = invoke("show", folder / "run").stdout.splitlines()
    assert sentence in found.output
    assert shown[1] == sentence
    assert shown[2].split() == ["feature", "prevalence", "rows", "explains", "comes", "back", "same", "rows"]
    assert shown[3].split()[5:8] == ["2", "of", "2"]
    assert invoke("verify", folder / "run").exit_code == 0


def test_of_an_interrupted_run_the_fits_that_are_left_are_told(folder: Path) -> None:
    def stop(now: object) -> None:
        if now.step == 1 and (folder / "half" / "groups").exists():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ibp.fit(
            folder / "data.zarr",
            run=folder / "half",
            system="lg-vi-infinite",
            K=5,
            stability=3,
            progress=stop,
        )
    known = of_run(folder / "half")
    assert known["names"] == ["3 subsamples together"]
    assert known["fits"] == 1


@pytest.mark.parametrize(
    ("options", "more", "words"),
    [
        (["--stability", 1], {}, "1 is not in the range x>=2"),
        (["--stability", 2, "--subsample", 1.5], {}, "1.5 is not in the range 0<x<1"),
        (["--subsample", 0.9], {}, "give stability, their number"),
        (["--stability", 2], {"data": "row.zarr"}, "of 1 row: expected at least 2"),
        (["--stability", 2, "-K", 150], {}, "of 200 rows: give a smaller K"),
        (["--stability", 2], {"system": "lg-gibbs-finite"}, "for lg-gibbs-finite use chains"),
        (["--stability", 2, "-K", 150, "--estimate"], {}, "of 200 rows: give a smaller K"),
    ],
)
def test_bad_input_is_one_sentence_with_exit_code_2(folder: Path, options, more, words) -> None:
    found = fit(folder, "refused", *options, **more)
    assert found.exit_code == 2, found.output
    assert words in found.stderr
    assert found.stderr.count("\n") == 1
    assert not (folder / "refused").exists()
