"""Commands that are told to a person can be pasted, whatever characters their paths have."""

import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest

import ibpdist
from ibpdist.base.words import command
from ibpdist.engine.dask import DaskEngine
from tests.support.command import invoke
from tests.support.grids import as_yaml, grid, small_store

SOURCES = sorted(Path(ibpdist.__file__).parent.rglob("*.py"))


@pytest.fixture
def place(tmp_path):
    folder = tmp_path / "it's $HOME; here"
    folder.mkdir()
    small_store(folder)
    return folder


def hint(said, head):
    """The words of the command that a line ends with."""
    (line,) = (line for line in said.splitlines() if head in line)
    return shlex.split(line.partition(head)[2])


def test_a_command_is_split_into_what_it_was_made_of():
    assert command("show", Path("plain/run")) == "ibpdist show plain/run"
    assert shlex.split(command("resume", "it's a run")) == ["ibpdist", "resume", "it's a run"]


def test_no_path_is_put_into_a_command_as_it_is():
    raw = re.compile(r"ibpdist (?:fit|resume|sweep|show|verify|report|evaluate) [^\n\"']*\{")
    assert [path.name for path in SOURCES if raw.search(path.read_text())] == []


def test_a_fit(place):
    fit = ["fit", place / "data.zarr", place / "run", "--system", "lg-vi-finite", "-K", 2, "--steps", 2]
    done = invoke(*fit)
    assert done.exit_code == 0, done.output
    assert hint(done.stdout, "more with: ") == ["ibpdist", "show", str(place / "run")]


def test_a_fit_that_is_stopped(place, monkeypatch):
    def stopped(run, **options):
        raise KeyboardInterrupt

    (place / "run").mkdir()
    (place / "run" / "spec.yaml").write_text("")
    monkeypatch.setattr("ibpdist.runs.fit.resume", stopped)
    done = invoke("resume", place / "run")
    assert done.exit_code == 130
    assert hint(done.stderr, "continue with: ") == ["ibpdist", "resume", str(place / "run")]


def test_a_campaign_that_is_stopped(place, monkeypatch):
    def stopped(campaign, run, **options):
        run.mkdir()
        (run / "manifest.json").write_text("")
        raise KeyboardInterrupt

    file = place / "a grid.yaml"
    file.write_text(as_yaml(grid("data.zarr")))
    monkeypatch.setattr("ibpdist.campaigns.run.sweep", stopped)
    done = invoke("sweep", file, place / "run")
    assert done.exit_code == 130
    assert hint(done.stderr, "continue with: ") == ["ibpdist", "sweep", str(file), str(place / "run")]


def test_a_lost_cluster():
    lost = DaskEngine.lost(SimpleNamespace(run=Path("a run")), "no workers")
    way = "continue with: ibpdist resume 'a run'"
    assert str(lost) == f"no workers; nothing that was saved is lost, {way}"
