"""The command line: what it prints, its exit codes, and that a failure is one line."""

import csv
import errno
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
import xarray as xr

import ibpdist
from ibpdist.base import errors
from ibpdist.catalog.spec import FitSpec
from ibpdist.catalog.systems import STARTS
from ibpdist.cli import main
from ibpdist.cli._options import size
from ibpdist.cli._outcome import Terminated
from tests.support.command import HOME, invoke, program, start

COMMANDS = [
    "demo", "synth", "ingest", "choose", "fit", "resume", "sweep", "show", "report", "evaluate", "transform",
    "reconstruct", "export", "verify", "systems", "bound",
]  # fmt: skip


def fails(code: int, *args: object) -> str:
    """The one line with which a command fails."""
    result = invoke(*args)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1, result.stderr
    assert result.stderr.startswith("ibpdist: ")
    return result.stderr.removeprefix("ibpdist: ").rstrip()


def works(*args: object) -> str:
    result = invoke(*args)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset `images.zarr` and a finished run `run`."""
    folder = tmp_path_factory.mktemp("made")
    works("synth", "images", folder / "images.zarr", "--rows", 200, "--noise", 0.1, "--seed", 3)
    options = ["--system", "lg-vi-finite", "-K", 6, "--seed", 1, "--serial", "--steps", 60]
    works("fit", folder / "images.zarr", folder / "run", *options)
    return folder


# ---- help ------------------------------------------------------------------------------------


@pytest.mark.parametrize("args", [["--help"], ["-h"], []])
def test_help_lists_every_command(args: list[str]) -> None:
    text = works(*args)
    assert [line.split()[0] for line in text.partition("Commands:\n")[2].splitlines()] == COMMANDS
    assert "..." not in text.partition("Commands:\n")[2]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str) -> None:
    text = works(command, "--help")
    assert text.startswith(f"Usage: ibpdist {command}")
    options = [option for option in main.commands[command].params if isinstance(option, click.Option)]
    assert all(option.help for option in options)


def test_version() -> None:
    assert works("--version") == f"ibpdist {ibpdist.__version__}\n"


# ---- usage -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["frobnicate"], "No such command 'frobnicate'"),
        (["--frobnicate"], "No such option"),
        (["fit"], "Missing argument 'STORE'; see ibpdist fit --help"),
        (["fit", "a", "b"], "Missing option '--system'"),
        (["fit", "a", "b", "--system", "x", "-K", "0"], "Invalid value for '-K'"),
        (["fit", "a", "b", "--system", "x", "-K", "-2"], "Invalid value for '-K'"),
        (["fit", "a", "b", "--system", "x", "-K", "many"], "Invalid value for '-K'"),
        (["fit", "a", "b", "--system", "x", "-K", "2", "--seed", "-1"], "Invalid value for '--seed'"),
        (["fit", "a", "b", "--system", "x", "-K", "2", "--set", "mass"], "Invalid value for '--set'"),
        (["fit", "a", "b", "--system", "x", "-K", "2", "--set", "=5"], "Invalid value for '--set'"),
        (
            ["fit", "a", "b", "--system", "x", "-K", "2", "--set", "a=1", "--set", "a=2"],
            "Invalid value for '--set': a is given twice",
        ),
        (["fit", "a", "b", "--system", "x", "-K", "2", "--memory", "much"], "Invalid value for '--memory'"),
        (["fit", "a", "b", "--system", "x", "-K", "2", "--memory", "1XB"], "Invalid value for '--memory'"),
        (["synth", "images", "a.zarr", "--rows", "0"], "Invalid value for '--rows'"),
        (["synth", "images", "a.zarr"], "Missing option '--rows'"),
        (["synth", "images", "a.zarr", "--rows", "5", "--noise", "0"], "Invalid value for '--noise'"),
        (["synth", "images", "a.zarr", "--rows", "5", "--mass", "-1"], "Invalid value for '--mass'"),
        (["synth", "images", "a.zarr", "--rows", "5", "--noise", "nan"], "noise is a variance"),
        (["synth", "pictures", "a.zarr", "--rows", "5"], "there is no synthetic data 'pictures'"),
        (["bound", "--rows", "10"], "Missing option '--mass'"),
        (["bound", "--rows", "10", "--mass", "0"], "Invalid value for '--mass'"),
        (["bound", "--rows", "10", "--mass", "1", "--error", "1"], "Invalid value for '--error'"),
    ],
)
def test_wrong_usage_is_code_2(
    args: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert fails(2, *args).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            ["--system", "lg-vi-infinit", "-K", 4],
            "unknown system 'lg-vi-infinit'; did you mean lg-vi-infinite?",
        ),
        (
            ["--system", "lg-vi-finite", "-K", 4, "--set", "mass=-1"],
            "set.mass: expected greater than 0, got -1",
        ),
        (
            ["--system", "lg-vi-finite", "-K", 4, "--set", "mass=0"],
            "set.mass: expected greater than 0, got 0",
        ),
        (
            ["--system", "lg-vi-finite", "-K", 4, "--set", "mass=.nan"],
            "set.mass: a setting is a finite number",
        ),
        (["--system", "lg-vi-finite", "-K", 4, "--set", "colour=red"], "unknown setting 'colour'"),
        (["--system", "lg-vi-finite", "-K", 4, "--set", "noise=row"], "noise"),
        (
            ["--system", "lg-vi-finite", "-K", 4, "--serial", "--workers", 2],
            "workers, serial and scheduler exclude",
        ),
        (
            ["--system", "lg-vi-finite", "-K", 4, "--scheduler", "tcp://10.1.2.3:8786"],
            "scheduler tcp://10.1.2.3:8786",
        ),
        (["--system", "lg-vi-finite", "-K", 4, "--rtol", "nan"], "rtol: expected finite number, got nan"),
    ],
)
def test_a_fit_that_cannot_be_is_code_2_and_leaves_nothing(
    options: list[object], sentence: str, made: Path, tmp_path: Path
) -> None:
    assert fails(2, "fit", made / "images.zarr", tmp_path / "run", *options).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--start", "spectrl"], "Invalid value for '--start': 'spectrl': expected auto, random"),
        (["--set", "start=spectrl"], "Invalid value for '--start': 'spectrl': expected auto, random"),
        (["--start", "random", "--from", "other"], "--start and --from exclude each other"),
        (["--set", "start=random", "--from", "other"], "--start and --from exclude each other"),
        (["--start", "random", "--set", "start=random"], "--start and --set start=... set the same option"),
    ],
)
def test_a_fit_begins_in_one_way(options: list[str], sentence: str, made: Path, tmp_path: Path) -> None:
    system = ["--system", "lg-vi-infinite", "-K", 4]
    assert fails(2, "fit", made / "images.zarr", tmp_path / "run", *system, *options).startswith(sentence)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("start", ["random", "spectral", "rows", "svd"])
def test_how_a_fit_begins_is_in_its_spec(start: str, made: Path, tmp_path: Path) -> None:
    options = ["--system", "lg-vi-infinite", "-K", 4, "--serial", "-q", "--steps", 2]
    works("fit", made / "images.zarr", tmp_path / "run", *options, "--start", start)
    spec = FitSpec.parse(ibpdist.open_result(tmp_path / "run").attrs["spec"])
    assert spec.set == {"start": start}


def test_the_help_names_every_start() -> None:
    said = " ".join(works("fit", "--help").partition("--start")[2].split())
    words = set(re.findall(r"\w+", said.partition("--from")[0]))
    assert set(STARTS) - {"auto"} <= words


# ---- outcomes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (errors.UsageError("no"), 2, "ibpdist: no"),
        (errors.InputError("a word", file="x.csv", row=3, column=2, value="?"), 3,
         "ibpdist: x.csv: row 3, column 2: '?': a word"),
        (errors.StorageError("full"), 4, "ibpdist: full"),
        (errors.ClusterLost("gone"), 5, "ibpdist: gone"),
        (errors.OutputInUse("taken"), 6, "ibpdist: taken"),
        (errors.StorageError("two\nlines"), 4, "ibpdist: two lines"),
        (KeyboardInterrupt(), 130, "ibpdist: interrupted"),
        (Terminated(), 143, "ibpdist: terminated"),
        (PermissionError(13, "Permission denied", "run"), 4, "ibpdist: run: Permission denied"),
        (OSError(28, "No space left on device"), 4, "ibpdist: storage: No space left on device"),
    ],
)  # fmt: skip
def test_an_error_has_its_code_and_one_line(
    error: BaseException, code: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main.commands["systems"], "callback", _raiser(error))
    result = invoke("systems")
    assert (result.exit_code, result.stderr) == (code, line + "\n")


@pytest.mark.parametrize("error", [ValueError("odd"), errors.IbpError("odd"), ConnectionError("odd")])
def test_only_a_bug_shows_a_traceback(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(main.commands["systems"], "callback", _raiser(error))
    result = invoke("systems")
    assert result.exit_code == 1
    assert "Traceback" in result.stderr
    assert "odd" in result.stderr
    assert result.stderr.endswith("ibpdist: this is a bug in ibpdist; please report the lines above\n")


def _raiser(error: BaseException) -> Callable[[], None]:
    def command() -> None:
        raise error

    return command


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command(number: signal.Signals, code: int, tmp_path: Path) -> None:
    store = tmp_path / "big.zarr"
    options = ["--rows", "50000000", "--columns", "64", "--features", "4"]
    with start("synth", "linear-gaussian", store, *options) as process:
        deadline = time.monotonic() + 60
        while not any(path.is_file() for path in tmp_path.rglob("*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
    assert process.returncode == code
    assert said.splitlines()[-1] == {130: "ibpdist: interrupted", 143: "ibpdist: terminated"}[code]
    assert "Traceback" not in said
    assert list(tmp_path.iterdir()) == []


SWALLOWS = """
import contextlib
def command():
    with contextlib.suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)
    time.sleep(30)
"""
SWALLOWED_BY_PYTHON = """
class Held:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
def command():
    Held()
    time.sleep(30)
"""
HALF_MADE = """
class Held:
    def __init__(self):
        signal.raise_signal(signal.SIGTERM)
        self.name = "whole"
    def __del__(self):
        print(self.name)
kept = []
def command():
    made = Held.__new__(Held)
    kept.append(made)
    made.__init__()
"""
CLEANS = """
def command():
    try:
        signal.raise_signal(signal.SIGTERM)
    finally:
        time.sleep(1.5)
        print("clean")
"""


@pytest.mark.parametrize(
    ("command", "said"),
    [(SWALLOWS, ""), (SWALLOWED_BY_PYTHON, ""), (HALF_MADE, ""), (CLEANS, "clean\n")],
)
def test_a_signal_that_was_swallowed_is_raised_again(command: str, said: str) -> None:
    """Compilers swallow what is raised in their callbacks; cleaning up is not disturbed."""
    path = f"import signal, sys, time; sys.path.insert(0, {HOME!r})\nfrom ibpdist.cli import main, _outcome\n"
    call = "_outcome.INSISTS = 0.5\nmain.commands['systems'].callback = command\nmain(['systems'])"
    done = subprocess.run(
        [sys.executable, "-c", path + command + call], capture_output=True, text=True, timeout=25
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, said, "ibpdist: terminated\n")


def test_the_code_leaves_the_process() -> None:
    done = subprocess.run(program("show", os.devnull), capture_output=True, text=True)
    assert done.returncode == 4
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1GB", 10**9), ("1.5 gb", 15 * 10**8), ("2GiB", 2 << 30), ("500", 500), ("64kb", 64_000)],
)
def test_sizes(text: str, expected: int) -> None:
    assert size(text) == expected


def test_a_warning_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def command() -> None:
        warnings.warn("the bits\n may differ", stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)

    monkeypatch.setattr(main.commands["systems"], "callback", command)
    assert invoke("systems").stderr == "ibpdist: warning: the bits may differ\n"


# ---- data ------------------------------------------------------------------------------------


def test_synth_says_what_it_made(tmp_path: Path) -> None:
    store = tmp_path / "a.zarr"
    options = ["--rows", 50, "--columns", 7, "--features", 3, "--weights", "normal", "--missing", 0.1]
    said = works("synth", "linear-gaussian", store, *options, "--seed", 2**70)
    assert said == f"{store}: 50 rows of linear-gaussian\n"
    data = ibpdist.open_dataset(store)
    assert (data.rows, data.columns) == (50, 7)
    assert works("verify", store) == f"{store}: no problems\n"
    assert works("synth", "linear-gaussian", store, *options, "--overwrite", "-q") == ""
    assert "exists" in fails(6, "synth", "linear-gaussian", store, *options)


def test_ingest_counts_rows_and_missing_cells(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("gene,p,q\na,1,2\nb,,4\nc,NA,6.5\n")
    said = works("ingest", tmp_path / "a.csv", tmp_path / "a.zarr")
    assert "3 rows x 2 columns, 2 cells missing" in said
    np.testing.assert_array_equal(
        ibpdist.open_dataset(tmp_path / "a.zarr").read(0).x, [[1, 2], [0, 4], [0, 6.5]]
    )


def test_ingest_takes_what_a_table_says_of_itself(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("name;age;p;q\na;31;1;2\nb;47;3;4\n")
    options = ["--delimiter", ";", "--header", "--label-column", "name", "--covariate", "age"]
    works("ingest", tmp_path / "a.csv", tmp_path / "a.zarr", *options)
    data = ibpdist.open_dataset(tmp_path / "a.zarr")
    np.testing.assert_array_equal(data.read(0).x, [[1, 2], [3, 4]])
    assert {name: list(values) for name, values in data.row_coords(0).items()} == {
        "row": ["a", "b"],
        "age": [31, 47],
    }
    (tmp_path / "b.csv").write_text("1,2\n3,4\n")
    assert "2 rows x 2 columns" in works("ingest", tmp_path / "b.csv", tmp_path / "b.zarr", "--no-header")
    turned = works(
        "ingest", tmp_path / "b.csv", tmp_path / "c.zarr", "--no-header", "--rows-in", "columns", "-q"
    )
    assert turned == ""
    np.testing.assert_array_equal(ibpdist.open_dataset(tmp_path / "c.zarr").read(0).x, [[1, 3], [2, 4]])


def test_ingest_names_the_cell_that_is_no_number(tmp_path: Path) -> None:
    source = tmp_path / "a.csv"
    source.write_text("p,q\n1,2\n3,four\n")
    sentence = fails(3, "ingest", source, tmp_path / "a.zarr")
    assert sentence.startswith("a.csv: row 1, column q")
    assert "'four'" in sentence
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


# ---- runs ------------------------------------------------------------------------------------


def test_show_gives_the_answer_first(made: Path) -> None:
    lines = works("show", made / "run").splitlines()
    result = ibpdist.open_result(made / "run")
    active = int(result["params"]["active"].sum())
    share = float(result["diagnosis"]["explained_together"])
    assert lines[0] == f"{active} features, of at most 6; they explain {100 * share:.1f} % of the variance"
    assert len([line for line in lines[2:] if line[:9].strip().isdigit()]) == active
    said = {line.split()[0]: line for line in lines[active + 3 :]}
    assert f"{result['params']['noise'].item():.6g}" in said["noise"]
    assert result.attrs["stopped"] in said["stopped"]
    assert "200 rows x 36 columns" in said["data"]
    assert "lg-vi-finite, K = 6, seed 1" in said["system"]
    assert re.match(r"moves +\d+ of \d+ accepted", said["moves"])


def test_a_finished_run_is_left_alone(made: Path) -> None:
    before = (made / "run/result.json").read_bytes()
    assert "features, of at most 6" in works("resume", made / "run", "--serial")
    assert (made / "run/result.json").read_bytes() == before
    options = ["--system", "lg-vi-finite", "-K", 6, "--serial"]
    assert str(made / "run") in fails(6, "fit", made / "images.zarr", made / "run", *options)
    assert (made / "run/result.json").read_bytes() == before


@pytest.mark.slow
def test_a_fit_that_meets_the_default_limit_is_code_7(made: Path, tmp_path: Path) -> None:
    options = ["--system", "lg-vi-finite", "-K", 6, "--serial", "-q", "--rtol", 0]
    given = invoke("fit", made / "images.zarr", tmp_path / "given", *options, "--steps", 2)
    assert (given.exit_code, given.output) == (0, "")
    left = invoke("fit", made / "images.zarr", tmp_path / "left", *options)
    assert (left.exit_code, left.output) == (7, "")
    assert invoke("resume", tmp_path / "left", "-q").exit_code == 7
    assert invoke("resume", tmp_path / "given", "-q").exit_code == 0
    drawn = ["--system", "lg-gibbs-finite", "-K", 3, "--serial", "-q"]
    assert invoke("fit", made / "images.zarr", tmp_path / "drawn", *drawn).exit_code == 0


def test_an_estimate_fits_nothing(made: Path, tmp_path: Path) -> None:
    options = ["--system", "lg-vi-finite", "-K", 6, "--estimate"]
    here = works("fit", made / "images.zarr", tmp_path / "run", *options)
    assert here.startswith("runs in this process; memory of a process: base 256 MB")
    there = works("fit", made / "images.zarr", tmp_path / "run", *options, "--workers", 3)
    assert there.startswith("runs in 3 local processes; ")
    refused = fails(2, "fit", made / "images.zarr", tmp_path / "run", *options, "--memory", "100MB")
    assert refused.startswith("a process needs 256 MB but may use 60% of 95 MB")
    plain = works("fit", made / "images.zarr", tmp_path / "run", *options, "--set", "moves=false")
    for wrong, said in (
        (["--set", "nois=3"], "unknown setting 'nois'; did you mean noise?"),
        (["--set", "mass=-3"], "set.mass: expected greater than 0, got -3"),
        (["--chains", 2], "chains, burn and thin are for samplers, and lg-vi-finite is not one"),
        (["--holdout", 1.5], "holdout: expected less than 1"),
    ):
        assert fails(2, "fit", made / "images.zarr", tmp_path / "run", *options, *wrong).startswith(said)
    kept, once = (float(re.search(r"row state ([\d.]+) MB", said)[1]) for said in (here, plain))
    assert kept == pytest.approx(2 * once, abs=0.1), "rows can go back when a move is refused"
    assert list(tmp_path.iterdir()) == []


def test_progress_goes_to_standard_error(made: Path, tmp_path: Path) -> None:
    options = ["--system", "lg-vi-finite", "-K", 4, "--serial", "--steps", 3, "--rtol", 0]
    result = invoke("fit", made / "images.zarr", tmp_path / "run", *options, "-v")
    lines = result.stderr.splitlines()
    steps = [line.partition(",")[0] for line in lines if line.startswith("fit: step")]
    assert steps == [f"fit: step {n} of at most 3" for n in (1, 2, 3)]
    assert lines[0].startswith("fit: reading the data, 0 %, ")
    assert "step" not in result.stdout.partition("stopped")[0]


def test_evaluate_prints_the_score_of_new_rows(made: Path, tmp_path: Path) -> None:
    works("synth", "images", tmp_path / "new.zarr", "--rows", 40, "--noise", 0.1, "--seed", 4)
    said = works("evaluate", made / "run", tmp_path / "new.zarr")
    score = float(ibpdist.evaluate(made / "run", tmp_path / "new.zarr").score.sel(estimate="variance"))
    assert said.startswith(f"held-out score: {score:.4f} nats per hidden cell")
    odd = works("evaluate", made / "run", tmp_path / "new.zarr", "--visible", "odd")
    assert odd.splitlines()[0] != said.splitlines()[0]
    assert fails(2, "evaluate", made / "run").startswith("the fit saw every cell")


def test_a_score_is_printed_though_the_disk_is_full(
    made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "full")

    works("synth", "images", tmp_path / "new.zarr", "--rows", 40, "--noise", 0.1, "--seed", 4)
    monkeypatch.setattr(os, "pwrite", full)
    done = invoke("evaluate", made / "run", tmp_path / "new.zarr", "-q")
    assert done.exit_code == 0
    assert done.stdout.startswith("held-out score: ")
    kept = f"the score is not kept in the run: {made / 'run/lock'}: No space left on device"
    assert done.stderr.startswith(f"ibpdist: warning: {kept}")
    assert not (made / "run/lock").exists()


def test_held_out_cells_are_scored_without_other_data(made: Path, tmp_path: Path) -> None:
    options = ["--system", "lg-vi-finite", "-K", 6, "--seed", 1, "--serial", "--steps", 40, "-q"]
    works("fit", made / "images.zarr", tmp_path / "run", *options, "--holdout", 0.25)
    said = works("evaluate", tmp_path / "run")
    assert "900 hidden cells in 100 rows" in said


def test_reconstruct_fills_in_missing_cells(tmp_path: Path) -> None:
    run, out, new = tmp_path / "run", tmp_path / "out.zarr", tmp_path / "new.zarr"
    options = ["--system", "lg-vi-finite", "-K", 4, "--seed", 1, "--serial", "--steps", 20, "-q"]
    works("synth", "images", tmp_path / "gaps.zarr", "--rows", 100, "--missing", 0.1, "--seed", 3)
    works("fit", tmp_path / "gaps.zarr", run, *options)
    assert works("reconstruct", run, out) == f"written to {out}\n"
    read = xr.open_zarr(out)
    assert dict(read.sizes) == {"row": 100, "column": 36}
    given = xr.open_zarr(tmp_path / "gaps.zarr").x.values
    np.testing.assert_array_equal(read.hidden, np.isnan(given))
    np.testing.assert_array_equal(read.x.values[~np.isnan(given)], given[~np.isnan(given)])
    assert np.isfinite(read.x).all()
    assert "exists already" in fails(6, "reconstruct", run, out)
    works("synth", "images", new, "--rows", 7, "--seed", 4)
    works("reconstruct", run, out, "--data", new, "--overwrite", "-q", "--units", "stored")
    assert xr.open_zarr(out).sizes["row"] == 7
    inside = tmp_path / "gaps.zarr/out"
    assert "lies inside the store gaps.zarr" in fails(2, "reconstruct", run, inside)


def test_what_cannot_be_reconstructed_is_told(made: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.zarr"
    said = fails(2, "reconstruct", made / "run", out)
    assert said.startswith("the fit saw every cell of its data, so nothing is hidden: pass rows with gaps")
    works("synth", "linear-gaussian", tmp_path / "b.zarr", "--rows", 5, "--columns", 3, "--features", 1)
    said = fails(3, "reconstruct", made / "run", out, "--data", tmp_path / "b.zarr")
    assert "the data have 3 columns, the fit has 36" in said
    assert "does not exist" in fails(4, "reconstruct", made / "run", out, "--data", tmp_path / "c.zarr")
    assert "is not a run" in fails(4, "reconstruct", tmp_path / "nothing", out)
    assert "Missing argument 'OUT'" in fails(2, "reconstruct", made / "run")
    assert not out.exists()


def test_transform_writes_the_features_of_new_rows(made: Path, tmp_path: Path) -> None:
    works("synth", "images", tmp_path / "new.zarr", "--rows", 40, "--noise", 0.1, "--seed", 4)
    out = tmp_path / "out.zarr"
    assert works("transform", made / "run", tmp_path / "new.zarr", out) == f"written to {out}\n"
    z = ibpdist.transform(made / "run", tmp_path / "new.zarr")["z"]
    read = xr.open_zarr(out, consolidated=False)["z"]
    assert z.dims == ("row", "feature")
    assert z.shape == (40, 4)
    np.testing.assert_array_equal(read.values, z.values)
    assert str(out) in fails(6, "transform", made / "run", tmp_path / "new.zarr", out)
    works(
        "transform", made / "run", tmp_path / "new.zarr", out, "--overwrite", "-q", "--estimate", "mean-field"
    )
    assert sorted(xr.open_zarr(out, consolidated=False).data_vars) == ["z"]
    assert "--estimate" in fails(
        2, "transform", made / "run", tmp_path / "new.zarr", out, "--estimate", "mode"
    )
    works("synth", "linear-gaussian", tmp_path / "b.zarr", "--rows", 5, "--columns", 3, "--features", 1)
    assert "columns" in fails(3, "transform", made / "run", tmp_path / "b.zarr", tmp_path / "c.zarr")
    assert not (tmp_path / "c.zarr").exists()


@pytest.mark.faults
def test_an_interrupted_fit_says_how_to_go_on_and_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    sizes = ["--rows", 20_000, "--columns", 64, "--features", 8, "--seed", 5]
    works("synth", "linear-gaussian", tmp_path / "a.zarr", *sizes)
    options = ["--system", "lg-vi-infinite", "-K", 16, "--seed", 2, "--serial", "--steps", 60, "--rtol", 0]
    options += ["--checkpoint", 3, "-q"]
    works("fit", tmp_path / "a.zarr", tmp_path / "whole", *options)
    log = tmp_path / "cut/events.jsonl"
    with start("fit", tmp_path / "a.zarr", tmp_path / "cut", *options) as process:
        while not (log.exists() and log.read_text().count('"step"') >= 8):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    resume = f"ibpdist: continue with: ibpdist resume {tmp_path / 'cut'}"
    assert said.splitlines() == [resume, "ibpdist: interrupted"]
    assert fails(4, "show", tmp_path / "cut").endswith("is not finished; continue it with resume")
    works("resume", tmp_path / "cut", "--serial", "-q")
    whole, cut = (ibpdist.open_result(tmp_path / name) for name in ("whole", "cut"))
    np.testing.assert_array_equal(cut["trace"]["objective"].values, whole["trace"]["objective"].values)
    np.testing.assert_array_equal(cut["rows"]["z"].values, whole["rows"]["z"].values)
    assert works("verify", tmp_path / "cut").endswith("no problems\n")


@pytest.mark.slow
def test_the_demo_names_what_it_made(tmp_path: Path) -> None:
    lines = works("demo", tmp_path / "demo", "--serial").splitlines()
    made = lines[-1].removeprefix("made ").split(", ")
    assert made
    assert all(Path(name).exists() for name in made)
    assert (tmp_path / "demo/features.png").read_bytes().startswith(b"\x89PNG")
    assert str(tmp_path / "demo") in fails(6, "demo", tmp_path / "demo", "--serial")


def test_verify_names_what_is_damaged(made: Path, tmp_path: Path) -> None:
    works("synth", "images", tmp_path / "a.zarr", "--rows", 50)
    chunk = next(path for path in (tmp_path / "a.zarr/x/c").rglob("*") if path.is_file())
    damaged = bytearray(chunk.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    chunk.write_bytes(damaged)
    assert "x/c/0/0" in fails(4, "verify", tmp_path / "a.zarr")
    assert works("verify", made / "run") == f"{made / 'run'}: no problems\n"


def test_export_writes_every_array_with_labels(made: Path, tmp_path: Path) -> None:
    said = works("export", made / "run", tmp_path / "csv").splitlines()
    files = {str(path.relative_to(tmp_path / "csv")) for path in (tmp_path / "csv").rglob("*.csv")}
    assert {str(Path(line).relative_to(tmp_path / "csv")) for line in said} == files
    assert files >= {"params/mean.csv", "params/scalars.csv", "rows/z.csv", "trace.csv"}
    result = ibpdist.open_result(made / "run")
    z = list(csv.reader((tmp_path / "csv/rows/z.csv").open()))
    assert z[0] == ["row", *(f"feature {k}" for k in range(4))]
    read = np.array([line[1:] for line in z[1:]], dtype=np.float32)
    np.testing.assert_array_equal(read, result["rows"]["z"].values)
    scalars = dict(list(csv.reader((tmp_path / "csv/params/scalars.csv").open()))[1:])
    assert float(scalars["noise"]) == result["params"]["noise"].item()
    assert "exists" in fails(6, "export", made / "run", tmp_path / "csv")


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_no_output_goes_into_a_store(made: Path, tmp_path: Path, overwrite: list[str]) -> None:
    works("synth", "images", tmp_path / "new.zarr", "--rows", 40)
    inside = tmp_path / "new.zarr/out"
    said = f"{inside}: lies inside the store new.zarr: choose a place outside it"
    system = ["--system", "lg-vi-finite", "-K", 3]
    assert fails(2, "fit", tmp_path / "new.zarr", inside, *system, *overwrite) == said
    assert fails(2, "fit", made / "images.zarr", inside, *system, *overwrite) == said
    assert fails(2, "transform", made / "run", tmp_path / "new.zarr", inside, *overwrite) == said
    assert fails(2, "export", made / "run", inside, *overwrite) == said
    assert "no problems" in works("verify", tmp_path / "new.zarr")
    result = made / "run/result.zarr"
    assert "the store result.zarr" in fails(2, "export", made / "run", result / "csv", *overwrite)


@pytest.mark.parametrize("overwrite", [[], ["--overwrite"]])
def test_a_file_where_a_run_is_to_be_is_in_use(made: Path, tmp_path: Path, overwrite: list[str]) -> None:
    (tmp_path / "run").write_text("mine")
    options = ["--system", "lg-vi-finite", "-K", 3, *overwrite]
    said = fails(6, "fit", made / "images.zarr", tmp_path / "run", *options)
    assert said == f"{tmp_path / 'run'}: exists and is a file; choose another place"
    assert (tmp_path / "run").read_text() == "mine"


@pytest.mark.parametrize("command", ["show", "resume", "verify", "evaluate"])
def test_what_is_no_run_is_refused(command: str, tmp_path: Path) -> None:
    said = fails(4, command, tmp_path / "none")
    assert said.startswith(f"{tmp_path / 'none'}: ")
    assert command == "verify" or said.endswith("; name the directory that fit wrote")


# ---- tables ----------------------------------------------------------------------------------


def test_systems_lists_the_catalog() -> None:
    lines = works("systems").splitlines()
    assert [line.split()[0] for line in lines] == ["system", *ibpdist.SYSTEMS]
    assert all(
        system.summary in line for line, system in zip(lines[1:], ibpdist.SYSTEMS.values(), strict=True)
    )


def test_bound_prints_every_bound_side_by_side() -> None:
    lines = works("bound", "--rows", 1_000_000, "--mass", 5, "--error", 0.01).splitlines()
    asked = {line.split()[0]: int(line.split()[1]) for line in lines[1 : lines.index("")]}
    assert asked == {name: ibpdist.bounds.truncation(1_000_000, 5, 0.01, name) for name in asked}
    assert works("bound", "--rows", 1_000_000, "--mass", 5).splitlines() == lines
    at_k = works("bound", "--rows", 1_000_000, "--mass", 5, "-K", asked["exact"]).splitlines()
    assert f"{ibpdist.bounds.probability(1_000_000, 5, asked['exact']):.4g}" in at_k[1]
    assert "exactly one" in fails(2, "bound", "--rows", 10, "--mass", 5, "--error", 0.01, "-K", 5)
