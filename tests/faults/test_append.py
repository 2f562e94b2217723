"""The process ends, or the disk fails, while rows are appended: the store has the old rows or all of them."""

import errno
import os
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_array

import ibpdist as ibp
from ibpdist.base.errors import StorageError
from ibpdist.data.verify import verify_dataset
from tests.support.failing import OPERATIONS, Crash, Failing

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]
ROWS, MORE = 3000, 1200


def rows(kind):
    x = np.random.default_rng(0).poisson(0.4, (ROWS + MORE, 20)).astype(np.float32)
    return csr_array(x) if kind == "counts" else x


def full():
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("kind", ["counts", "dense"])
@pytest.mark.parametrize("failure", [Crash, full])
def test_an_append_that_ends_anywhere(tmp_path, monkeypatch, kind, failure):
    """After the end of a process nothing is tidied up."""
    x, chunk_rows = rows(kind), None if kind == "counts" else 1024
    ibp.ingest(x, tmp_path / "whole.zarr", chunk_rows=chunk_rows)
    ibp.ingest(x[:ROWS], tmp_path / "x.zarr", chunk_rows=chunk_rows)
    old, new = (ibp.open_dataset(tmp_path / name).fingerprint for name in ("x.zarr", "whole.zarr"))
    ended = 0
    for at in [*range(1, 12), *range(12, 400, 3)]:
        failing = Failing(at, failure, lasting=failure is Crash)
        with monkeypatch.context() as patch:
            for home, name in [*OPERATIONS, (shutil, "rmtree")]:
                patch.setattr(home, name, failing.wrap(getattr(home, name)))
            try:
                ibp.append(tmp_path / "x.zarr", x[ROWS:])
            except (Crash, StorageError):
                ended += 1
        found = ibp.open_dataset(tmp_path / "x.zarr").fingerprint
        assert found in (old, new), at
        assert verify_dataset(tmp_path / "x.zarr") == []
        if found == new:
            break
    assert found == new
    assert ended > 10
