"""What only informs never stops a command, whoever stopped listening; of an answer it is a quiet end."""

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ibpdist as ibp
from ibpdist.base import errors
from ibpdist.base.progress import counting, stepping, sweeping
from ibpdist.base.streams import ReaderGone, guarded, inform, informing
from ibpdist.campaigns.verify import verify
from tests.support.command import HOME, START, program
from tests.support.finished import images_and_run

FIT = ["--system", "lg-vi-finite", "-K", "3", "--serial", "--steps", "5"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = images_and_run(tmp_path_factory.mktemp("made"), K=3, steps=5)
    (folder / "grid.yaml").write_text("data: images.zarr\nsystem: lg-vi-finite\ntruncation: 3\nsteps: 5\n")
    return folder


@pytest.fixture
def nobody():
    """A pipe that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    yield writer
    os.close(writer)


def code_of(command, **streams):
    return subprocess.run(command, check=False, timeout=120, **streams).returncode


def test_a_fit_whose_every_line_goes_to_nobody(made, tmp_path, nobody):
    command = program("fit", made / "images.zarr", tmp_path / "run", *FIT, "-v")
    assert code_of(command, stdout=nobody, stderr=nobody) == 0
    assert verify(tmp_path / "run") == []
    assert ibp.open_result(tmp_path / "run").attrs["steps"] == 5


def test_a_sweep_whose_every_line_goes_to_nobody(made, tmp_path, nobody):
    command = program("sweep", made / "grid.yaml", tmp_path / "run", "--serial", "-v")
    assert code_of(command, stdout=nobody, stderr=nobody) == 0
    assert verify(tmp_path / "run") == []


def test_streams_that_were_closed_from_the_beginning(made, tmp_path):
    """Then the first file that is opened would have their number, and get what is written there."""
    words = " ".join(map(str, ["fit", made / "images.zarr", tmp_path / "run", *FIT]))
    shell = f'"{sys.executable}" -c "$0" {words} <&- >&- 2>&-'
    assert code_of(["sh", "-c", shell, START]) == 0
    assert verify(tmp_path / "run") == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_log_on_a_full_disk(made, tmp_path):
    with Path("/dev/full").open("w") as full:
        command = program("fit", made / "images.zarr", tmp_path / "run", *FIT, "-v")
        assert code_of(command, stdout=full, stderr=full) == 0
        assert verify(tmp_path / "run") == []
        answer = subprocess.run(
            program("show", made / "run"), check=False, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert answer.returncode == errors.StorageError.code
    assert answer.stderr.startswith("ibpdist: ")


def test_a_failure_keeps_its_code(made, tmp_path, nobody):
    for stream in ("stdout", "stderr"):
        command = program("show", tmp_path / "none")
        other = "stderr" if stream == "stdout" else "stdout"
        assert code_of(command, **{stream: nobody, other: subprocess.DEVNULL}) == errors.StorageError.code


@pytest.mark.parametrize("command", [["show", "run"], ["systems"], ["--help"]], ids=lambda words: words[0])
def test_nobody_reads_an_answer(made, nobody, command):
    done = subprocess.run(
        program(*command), cwd=made, check=False, timeout=120, stdout=nobody, stderr=subprocess.PIPE
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_goes_away(made, tmp_path):
    """The bar is drawn by a library, which is not ours to make careful."""
    terminal, end = os.openpty()
    command = program("fit", made / "images.zarr", tmp_path / "run", *FIT)
    environment = os.environ | {"TERM": "xterm", "PYTHONPATH": HOME}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=end, env=environment) as process:
        os.close(end)
        assert os.read(terminal, 1)
        os.close(terminal)
        assert process.wait(120) == 0
    assert verify(tmp_path / "run") == []


# ---- in this process -------------------------------------------------------------------------


class Broken(io.StringIO):
    """A stream of somebody who went away."""

    def __init__(self, error):
        super().__init__()
        self.error, self.tries = error, 0

    def write(self, text):
        self.tries += 1
        raise self.error

    def flush(self):
        raise self.error


class Now:
    step, trace = 1, {"objective": -1.0, "active": 2.0}


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "full"), OSError(5, "terminal")])
def test_progress_goes_on(monkeypatch, error):
    broken = Broken(error)
    monkeypatch.setattr(sys, "stderr", broken)
    with counting("ingest") as count, stepping("fit", verbose=True) as step, sweeping("sweep") as _:
        count(5, 5)
        step(Now())
    assert broken.tries >= 2
    monkeypatch.setattr(sys, "stderr", None)
    with counting("ingest") as count:
        count(5, 5)


def test_other_failures_are_not_hidden(monkeypatch):
    class Odd:
        def write(self, text):
            raise ValueError("odd")

    with pytest.raises(ValueError, match="odd"):
        informing(Odd()).write("a")
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, "full")))
    inform("a")
    with pytest.raises(OSError, match="full"), guarded():
        sys.stdout.write("a")


def test_the_streams_are_put_back(monkeypatch):
    broken = Broken(BrokenPipeError())
    monkeypatch.setattr(sys, "stdout", broken)
    before = sys.stdin, sys.stdout, sys.stderr
    with pytest.raises(ReaderGone), guarded():
        print("answer")
    assert (sys.stdin, sys.stdout, sys.stderr) == before
