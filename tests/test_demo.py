"""The demonstration: what it makes, what it says, and that the planted shapes are found."""

import re

import numpy as np
import pytest

from ibpdist import demo as module
from ibpdist.data.store import open_dataset
from ibpdist.demo import demo
from ibpdist.errors import OutputInUse
from ibpdist.evaluate.recovery import recovery
from ibpdist.runs.result import open_result


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 600)
    monkeypatch.setattr(module, "NEW_ROWS", 100)
    monkeypatch.setattr(module, "SYSTEM", "lg-vi-finite")


def test_it_names_the_files_it_made(small, tmp_path):
    lines, steps = [], []
    folder = tmp_path / "shown"
    made = demo(folder, serial=True, say=lines.append, progress=lambda now: steps.append(now.step))
    assert sorted(path.name for path in folder.iterdir()) == [
        "features.png",
        "images.zarr",
        "new.zarr",
        "run",
    ]
    assert all(path.exists() for path in made)
    assert lines[-1] == "made " + ", ".join(str(path) for path in made)
    assert steps
    assert re.search(r"\d of 4 planted features recovered", "\n".join(lines))
    assert re.search(r"held-out score: -\d\.\d{4} nats per hidden cell", "\n".join(lines))
    assert open_dataset(folder / "images.zarr").rows == 600
    assert open_dataset(folder / "new.zarr").rows == 100


def test_what_exists_is_kept_unless_overwritten(small, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(OutputInUse, match="exists already: choose another name or pass --overwrite"):
        demo(tmp_path, serial=True, say=lambda line: None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    demo(tmp_path / "shown", serial=True, say=lambda line: None)
    demo(tmp_path / "shown", serial=True, overwrite=True, say=lambda line: None)
    with pytest.raises(OutputInUse):
        demo(tmp_path / "mine.txt", serial=True, overwrite=True, say=lambda line: None)


def test_a_row_is_singular():
    assert module._captions(np.array([1.2, 1050.4, 0.2]), [0, 1, 2, -1]) == [
        "1 row",
        "1,050 rows",
        "0 rows",
        "",
    ]


@pytest.mark.slow
def test_the_four_shapes_are_found_on_a_local_cluster(tmp_path):
    lines = []
    demo(tmp_path / "shown", workers=2, say=lines.append)
    found = recovery(
        open_result(tmp_path / "shown" / "run"), open_dataset(tmp_path / "shown" / "images.zarr")
    )
    assert int(found.recovered) == 4
    score = float(re.search(r"held-out score: (-\d\.\d+)", "\n".join(lines))[1])
    truth = float(re.search(r"truth itself scores (-\d\.\d+)", "\n".join(lines))[1])
    assert truth - 0.01 < score < truth + 0.005
