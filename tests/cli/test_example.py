"""The demonstration: what it makes, what it says, and that the planted shapes are found."""

import json
import re

import numpy as np
import pytest

from ibpdist.base.errors import OutputInUse
from ibpdist.campaigns.campaign import open_campaign
from ibpdist.cli import example as module
from ibpdist.cli.example import demo
from ibpdist.data.store import open_dataset
from ibpdist.evaluate.recovery import recovery
from tests.support.report_page import Page


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(module, "ROWS", 600)
    monkeypatch.setattr(module, "NEW_ROWS", 100)
    monkeypatch.setattr(module, "SYSTEM", "lg-vi-finite")
    monkeypatch.setattr(module, "FEATURES", (3, 4))


def test_it_names_the_files_it_made(small, tmp_path):
    lines, told = [], []
    folder = tmp_path / "shown"
    made = demo(folder, serial=True, say=lines.append, progress=told.append)
    names = ["features.png", "images.zarr", "new.zarr", "shapes.run"]
    assert sorted(path.name for path in folder.iterdir()) == names
    assert all(path.exists() for path in made)
    assert made[-1] == folder / "shapes.run" / "report.html"
    assert lines[-1] == "made " + ", ".join(str(path) for path in made)
    assert (told[-1].ended, told[-1].fits, told[-1].failed) == (4, 4, 0)
    assert lines[1].startswith("4 fits of lg-vi-finite with at most 3 or 4 features")
    assert re.search(r"\d of 4 planted features recovered", "\n".join(lines))
    assert re.search(r"held-out score: -\d\.\d{4} nats per hidden cell", "\n".join(lines))
    campaign = open_campaign(folder / "shapes.run")
    assert dict(campaign.summary.sizes) == {"system": 1, "truncation": 2, "restart": 2}
    assert campaign.summary["heldout"].notnull().all()
    assert open_dataset(folder / "images.zarr").rows == 600
    assert open_dataset(folder / "new.zarr").rows == 100


def test_what_exists_is_kept_unless_overwritten(small, tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(OutputInUse, match="exists already: choose another name or pass --overwrite"):
        demo(tmp_path, serial=True, say=lambda line: None)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    demo(tmp_path / "shown", serial=True, say=lambda line: None)
    before = (tmp_path / "shown" / "shapes.run" / "manifest.json").stat().st_ino
    demo(tmp_path / "shown", serial=True, overwrite=True, say=lambda line: None)
    assert (tmp_path / "shown" / "shapes.run" / "manifest.json").stat().st_ino != before
    with pytest.raises(OutputInUse):
        demo(tmp_path / "mine.txt", serial=True, overwrite=True, say=lambda line: None)


def test_the_report_shows_the_planted_shapes(small, tmp_path):
    demo(tmp_path / "shown", serial=True, say=lambda line: None)
    best = open_campaign(tmp_path / "shown" / "shapes.run").best()
    assert json.loads(best.attrs["image"]) == [6, 6]
    page = Page((tmp_path / "shown" / "shapes.run" / "report.html").read_text("utf-8"))
    drawn = [one for one in page.elements if "picture" in one.attributes.get("class", "").split()]
    assert len(drawn) == int(best["params"]["active"].sum()) == 4
    found = recovery(best, open_dataset(tmp_path / "shown" / "images.zarr"))
    assert int(found.recovered) == 4
    assert {"campaign", "stability"} <= {one.attributes.get("id") for one in page.all("section")}


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
    best = open_campaign(tmp_path / "shown" / "shapes.run").best()
    found = recovery(best, open_dataset(tmp_path / "shown" / "images.zarr"))
    assert int(found.recovered) == 4
    score = float(re.search(r"held-out score: (-\d\.\d+)", "\n".join(lines))[1])
    truth = float(re.search(r"truth itself scores (-\d\.\d+)", "\n".join(lines))[1])
    assert truth - 0.01 < score < truth + 0.005
