"""`ibpdist choose`: which system to fit, by rows of the training data alone."""

import re
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import ibpdist as ibp
from tests.support.command import invoke

SMALL = ["-K", "5", "--serial", "--steps", "40"]


def choose(*options: object) -> Result:
    return invoke("choose", *options)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows with about one in seven of four factors."""
    folder, rng = tmp_path_factory.mktemp("choose"), np.random.default_rng(1)
    w = (rng.random((200, 4)) < 0.15) * rng.normal(size=(200, 4)) * 2
    np.save(folder / "x.npy", w @ rng.normal(size=(4, 20)) + 0.4 * rng.normal(size=(200, 20)))
    ibp.ingest(folder / "x.npy", folder / "x.zarr")
    return folder / "x.zarr"


def test_it_says_what_the_library_says(store: Path) -> None:
    said = choose(store, *SMALL)
    assert said.exit_code == 0, said.output
    choice = ibp.choose(store, K=5, serial=True, steps=40)
    first, second = said.stdout.splitlines()
    assert first == str(choice)
    assert second == f"fit it to all rows: ibpdist fit {store} RUN --system {choice.system} -K 5"
    assert choice.system == "fa-vi-infinite"
    for name in ("fa-vi-infinite", "fa-vi-dense"):
        assert f"choose, {name}: step 1 of at most 40, " in said.stderr, (
            "progress is told on the other stream"
        )
    assert "start 2" not in said.stderr


def test_it_says_what_share_is_done(store: Path) -> None:
    said = choose(store, *SMALL, "-v").stderr
    shares = [int(share) for share in re.findall(r"(\d+) % done", said)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 100)
    for name in ("fa-vi-infinite", "fa-vi-dense"):
        assert f"choose, {name}: looking for a start, pass 1, 0 %, " in said
        assert f"choose, {name}: scoring rows, 50 %, " in said
    assert "left: about" in said


def test_quiet_is_the_name_alone(store: Path) -> None:
    said = choose(store, *SMALL, "-q")
    assert said.stdout == "fa-vi-infinite\n"
    assert said.stderr == ""


def test_options_reach_the_library(store: Path) -> None:
    """Systems, the share, the seed and settings change what is compared."""
    options = ["--system", "fa-vi-dense", "--share", 0.3, "--seed", 4, "--set", "noise=one"]
    said = choose(store, *SMALL, *options)
    choice = ibp.choose(
        store, K=5, systems=["fa-vi-dense"], share=0.3, seed=4, noise="one", serial=True, steps=40
    )
    assert said.stdout.startswith(f"{choice}\n")
    plain = ibp.choose(store, K=5, systems=["fa-vi-dense"], serial=True, steps=40)
    assert choice.scores != plain.scores


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "Missing option '-K'"),
        (["-K", 3, "--share", 0], "Invalid value for '--share'"),
        (["-K", 3, "--share", 1], "Invalid value for '--share'"),
        (["-K", 3, "--system", "fa-vi-dens"], "unknown system 'fa-vi-dens'; did you mean fa-vi-dense?"),
    ],
)
def test_wrong_usage(store: Path, options: list[object], sentence: str) -> None:
    said = choose(store, *options, "--serial")
    assert said.exit_code == 2
    assert said.stdout == ""
    assert said.stderr.startswith(f"ibpdist: {sentence}")
    assert said.stderr.count("\n") == 1


def test_it_leaves_nothing_behind(store: Path) -> None:
    before = sorted(store.parent.iterdir())
    choose(store, *SMALL, "-q")
    assert sorted(store.parent.iterdir()) == before
