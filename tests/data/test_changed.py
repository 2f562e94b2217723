"""Data that change while a fit reads them: nothing is damaged, and the error says so."""

import shutil

import numpy as np
import pandas as pd
import pytest

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.campaigns.run import sweep
from ibpdist.campaigns.verify import verify
from ibpdist.data.ingest import ingest
from ibpdist.runs import bench, group
from tests.support.matrices import matrix

FIT = {"system": "lg-vi-finite", "K": 3, "steps": 6, "rtol": 0.0, "serial": True}


def stored(path, rows=40, labels=True):
    x = pd.DataFrame(matrix(rows), index=[f"r{at}" for at in range(rows)]) if labels else matrix(rows)
    ingest(x, path, chunk_rows=16, overwrite=path.exists())
    return path


def appended(path):
    new = matrix(5, seed=3)
    labelled = "row" in ibp.open_dataset(path).attributes["row_coords"]
    ibp.append(path, pd.DataFrame(new, index=list("abcde")) if labelled else new)


def at_step(step, act):
    """Progress that does something once, when a step is made."""

    def progress(now):
        if now.step == step:
            act()

    return progress


@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("cache", [1, 1 << 20], ids=["read", "cached"])
def test_an_append_under_a_fit(tmp_path, labels, cache):
    path = stored(tmp_path / "a.zarr", labels=labels)
    append = at_step(2, lambda: appended(path))
    if cache > 1 and not labels:  # nothing is read again, so nothing is missed
        result = ibp.fit(path, run=tmp_path / "run", cache=cache, progress=append, **FIT)
        assert result["rows"].sizes["row"] == 40
        return
    with pytest.raises(StorageError) as caught:
        ibp.fit(path, run=tmp_path / "run", cache=cache, progress=append, **FIT)
    assert str(caught.value) == (
        f"{path}: the data changed, from 40 rows to 45, since the fit or other work on them began: fit "
        "again; a run that was begun cannot go on with other rows"
    )
    assert verify(path) == []
    with pytest.raises(StorageError, match="has changed since the run began; fit again"):
        ibp.resume(tmp_path / "run")


def test_other_values_in_the_same_place(tmp_path):
    path = stored(tmp_path / "a.zarr")
    data = ibp.open_dataset(path)
    ingest(matrix(40, seed=9), path, chunk_rows=16, overwrite=True)
    for read in (lambda: data.read(0), lambda: data.row_coords(0), data.column_summary):
        with pytest.raises(StorageError, match=r"the data changed, to other values, since"):
            read()


@pytest.mark.parametrize(
    "act", [lambda path: (path / "x/c/1/0").unlink(), shutil.rmtree], ids=["part", "all"]
)
def test_damage_is_still_damage(tmp_path, act):
    path = stored(tmp_path / "a.zarr")
    data = ibp.open_dataset(path)
    act(path)
    with pytest.raises(StorageError, match=r"c/1/0: is missing: restore the store or ingest again"):
        data.read(1)


def test_a_worker_that_comes_later(tmp_path):
    """It opens the data again, and would go on with other rows."""
    path = stored(tmp_path / "a.zarr", labels=False)
    ibp.fit(path, run=tmp_path / "run", holdout=0.1, **FIT)
    assert bench.open_bench(str(tmp_path / "run"), 0, "").source.rows == 40
    appended(path)
    with pytest.raises(StorageError, match="the data changed, from 40 rows to 45, since the fit"):
        bench.open_bench(str(tmp_path / "run"), 0, "")


def test_a_worker_of_a_campaign(tmp_path):
    path = stored(tmp_path / "a.zarr", labels=False)
    grid = {"data": str(path), "system": "lg-vi-finite", "truncation": [2, 3], "steps": 3}
    sweep(grid, tmp_path / "run", serial=True)
    (folder,) = (tmp_path / "run/groups").iterdir()
    assert group.open_bench(str(folder), 0, "").source.rows == 40
    appended(path)
    with pytest.raises(StorageError, match="the data changed, from 40 rows to 45, since the fit"):
        group.open_bench(str(folder), 0, "")


def test_what_is_read_is_the_same_until_then(tmp_path):
    data = ibp.open_dataset(stored(tmp_path / "a.zarr"))
    found = np.concatenate([data.read(index).x for index in range(data.chunks)])
    np.testing.assert_array_equal(found, matrix(40))
