"""`ibpdist choose`: what to fit, by rows of the training data alone."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result

import ibpdist as ibp
from ibpdist.catalog.spec import FitSpec
from ibpdist.cli.choose import fit_commands
from ibpdist.evaluate.choice import Choice
from tests.support.command import invoke

SMALL = ["-K", "5", "--serial", "--steps", "40"]
DENSE = ["--system", "fa-vi-dense", "--serial", "--steps", "40"]


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
    *table, command = said.stdout.splitlines()
    assert "\n".join(table) == str(choice)
    assert choice.system == "fa-vi-infinite"
    assert command.startswith(f"fit it to all rows: ibpdist fit {store} RUN --system {choice.system} -K 5")
    for name in ("fa-vi-infinite", "fa-vi-dense"):
        assert f"choose, {name}, K=5: step 1 of at most 40, " in said.stderr, (
            "progress is told on the other stream"
        )
    assert "start 2" not in said.stderr


def test_two_numbers_have_two_commands_that_can_be_run(store: Path, tmp_path: Path) -> None:
    """The one that predicts best, and the smallest that predicts about as well, with the settings."""
    settings = {"intercept": False, "row_noise": "none"}
    choice = Choice("fa-vi-dense", 4, 3, settings, candidates=())
    for line, count in zip(fit_commands(store, choice), (4, 3), strict=True):
        _, _, command = line.partition(": ibpdist ")
        fit = tmp_path / f"run{count}"
        words = [str(fit) if word == "RUN" else word for word in shlex.split(command)]
        assert invoke(*words, "--steps", 3, "-q").exit_code in (0, 7), line
        spec = FitSpec.read(fit / "spec.yaml")
        assert (spec.system, spec.truncation, spec.set) == ("fa-vi-dense", count, settings)


def test_one_number_has_one_command(store: Path) -> None:
    (line,) = fit_commands(store, Choice("fa-vi-dense", 4, 4, {}, candidates=()))
    assert line == f"fit it to all rows: ibpdist fit {store} RUN --system fa-vi-dense -K 4"


def test_it_says_what_share_is_done(store: Path) -> None:
    said = choose(store, *SMALL, "-K", "2,3", "--steps", 10, "-v").stderr
    shares = [int(share) for share in re.findall(r"(\d+) % done", said)]
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 100)
    for name in ("fa-vi-infinite", "fa-vi-dense"):
        assert f"choose, {name}, K=2: looking for a start, pass 1, 0 %, " in said
        assert f"choose, {name}, K=3: scoring rows, 50 %, " in said
    last = said.rpartition("K=2, row_noise=none: scoring rows")[2]
    assert all("left: about" in line for line in last.splitlines() if ": step " in line)


def test_quiet_is_the_system_and_its_number_of_features(store: Path) -> None:
    said = choose(store, *DENSE, "-K", 5, "-q")
    assert said.stdout == "fa-vi-dense 5\n"
    assert said.stderr == ""


def test_auto_is_a_grid(store: Path) -> None:
    said = choose(store, *DENSE, "-K", "auto", "--set", "row_noise=none")
    assert [line.split()[1] for line in said.stdout.splitlines() if line.startswith("fa-vi-dense")] == [
        "5", "10", "20",
    ]  # fmt: skip


def test_options_reach_the_library(store: Path) -> None:
    """Systems, the share, the seed and settings change what is compared."""
    options = ["--share", 0.3, "--seed", 4, "--set", "noise=one"]
    said = choose(store, *DENSE, *options, "-K", 5)
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
        (["-K", 0], "K: 0: expected auto or whole numbers of at least 1"),
        (["-K", "5,ten"], "K: 'ten': expected auto or whole numbers of at least 1"),
        (["-K", "5,,10"], "K: '': expected auto or whole numbers of at least 1"),
        (["-K", "5,2.5"], "K: 2.5: expected auto or whole numbers of at least 1"),
        (["-K", "5,10,5"], "K: 5 is given twice"),
        (["-K", 3, "--share", 0], "Invalid value for '--share'"),
        (["-K", 3, "--share", 1], "Invalid value for '--share'"),
        (["-K", 3, "--share", 0.0001], "share: 0.0001 of 200 rows holds 0 out"),
        (["-K", 3, "--system", "fa-vi-dens"], "unknown system 'fa-vi-dens'; did you mean fa-vi-dense?"),
        (["-K", "3,4", "--system", "lg-gibbs-infinite"], "K: lg-gibbs-infinite has no limit of features"),
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
    choose(store, *DENSE, "-K", 5, "-q")
    assert sorted(store.parent.iterdir()) == before
