"""What a result says of the data: that rows are images comes from the dataset, through all that wraps it."""

import json
from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.data.arrays import as_source
from ibpdist.data.one_chunk import Whole
from ibpdist.data.splits import held
from ibpdist.engine.provenance import facts, image
from ibpdist.report.page import read


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """Images of 3 x 8, which no number of columns would tell."""
    x = np.random.default_rng(1).normal(size=(40, 24))
    ibp.ingest(x, tmp_path / "wide.zarr", attributes={"image": [3, 8], "seed": 3}, chunk_rows=16)
    return tmp_path / "wide.zarr"


def test_splits_and_chains_see_through_to_the_dataset(wide: Path) -> None:
    source = as_source(wide)
    for seen in (source, held(source, 0.1), held(source, "rows:share=0.2"), Whole(held(source, 0.1), 3)):
        assert image(seen) == {"image": [3, 8]}
        assert facts(seen)["image"] == [3, 8]


def test_data_that_are_no_images_say_nothing(tmp_path: Path) -> None:
    x = np.random.default_rng(1).normal(size=(20, 9))
    ibp.ingest(x, tmp_path / "a.zarr")
    assert image(as_source(x)) == image(as_source(tmp_path / "a.zarr")) == {}
    assert "image" not in facts(as_source(x))


def test_a_result_and_its_report_know_the_shape(wide: Path, tmp_path: Path) -> None:
    made = ibp.fit(wide, system="lg-vi-finite", K=2, steps=3, run=tmp_path / "run", holdout=0.1)
    assert json.loads(made.attrs["image"]) == [3, 8]
    assert read(tmp_path / "run").image == (3, 8)
    assert read(tmp_path / "run", (4, 6)).image == (4, 6)


@pytest.mark.parametrize("told", ["[3, 9]", "[3]", "wide", 3, None, "[null, 2]"])
def test_a_shape_that_is_none_is_passed_over(told: object, wide: Path, tmp_path: Path) -> None:
    from ibpdist.report.html.facts import image_of

    made = ibp.fit(wide, system="lg-vi-finite", K=2, steps=1)
    made.attrs["image"] = told
    assert image_of(made) is None


def test_a_copy_of_a_dataset_keeps_it_and_one_that_is_turned_does_not(wide: Path, tmp_path: Path) -> None:
    ibp.ingest(wide, tmp_path / "copy.zarr", center=True)
    ibp.ingest(wide, tmp_path / "other.zarr", attributes={"image": [24, 1]})
    ibp.ingest(wide, tmp_path / "turned.zarr", rows_in="columns")
    found = {name: ibp.open_dataset(tmp_path / f"{name}.zarr") for name in ("copy", "other", "turned")}
    assert found["copy"].attributes["image"] == [3, 8]
    assert found["other"].attributes["image"] == [24, 1]
    assert "image" not in found["turned"].attributes
    assert "seed" not in found["copy"].attributes
