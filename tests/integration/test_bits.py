"""The systems of the catalog give the same bits wherever they run, whoever dies."""

import numpy as np
import pytest
from scipy.sparse import csr_array, save_npz

import ibpdist as ibp
from ibpdist.campaigns.verify import verify
from tests.support.clusters import StepKiller
from tests.support.compare import assert_same_result
from tests.support.logs import objectives
from tests.support.planted_counts import planted_counts

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600), pytest.mark.usefixtures("two_blas_threads")]
SYSTEMS = {
    "ica-vi-beta-process": {"set": {}},
    "counts-infinite": {"counts": "dense", "set": {"inner": 1}},
    "counts-beta-process": {"counts": "sparse", "set": {"inner": 1}},
    "counts-gibbs-beta-process": {"counts": "sparse", "set": {"inner": 1, "chains": 2, "thin": 3}},
    "fa-vi-finite": {"missing": 0.02, "set": {"missing": "rows", "noise": "column"}},
    "lg-gibbs-infinite": {"missing": 0.01, "set": {"chains": 2, "thin": 3, "births": 200}},
    "lg-gibbs-finite": {"missing": 0.05, "set": {"missing": "rows", "thin": 3}},
    "lg-collapsed-infinite": {"rows": 900, "set": {"chains": 3, "thin": 3, "inner": 25}},
}
STEPS, WORKERS, NOTICED = 24, 2, 4


@pytest.fixture(scope="module", params=SYSTEMS)
def case(request, tmp_path_factory):
    """A store in 22 chunks, the options of a fit, and the run of the serial engine."""
    folder, wanted = tmp_path_factory.mktemp("bits"), SYSTEMS[request.param]
    store = made(folder, wanted)
    options = {"system": request.param, "K": 10, "seed": 5, "steps": STEPS, "rtol": 0.0, "inner": 20}
    options |= {"checkpoint": 4, **wanted["set"]}
    ibp.fit(store, run=folder / "serial", serial=True, **options)
    return store, options, folder / "serial"


def made(folder, wanted):
    """The store: of counts, dense or by entries, or of real-valued data."""
    store, rows = folder / "data.zarr", wanted.get("rows", 21_500)
    if "counts" in wanted:
        x, *_ = planted_counts(rows=rows, columns=32, length=40)
        return stored_counts(x.astype(np.float32), folder, store, wanted["counts"])
    size = {"rows": rows, "columns": 32, "features": 6, "noise": 0.3, "seed": 2}
    missing = wanted.get("missing", 0.0)
    ibp.synthesise("linear-gaussian", store, **size, chunk_rows=rows // 21, missing=missing)
    return store


def stored_counts(x, folder, store, kind):
    if kind == "dense":
        np.save(folder / "counts.npy", x)
        ibp.ingest(folder / "counts.npy", store, chunk_rows=len(x) // 21)
    else:
        save_npz(folder / "counts.npz", csr_array(x))
        ibp.ingest(folder / "counts.npz", store)
    return store


def assert_same(run, serial):
    assert objectives(run) == objectives(serial)
    assert_same_result(run, serial)
    assert verify(run) == []


@pytest.mark.parametrize("count", [1, 4])
def test_any_number_of_workers(case, tmp_path, count):
    """Two have the same bits even where they are killed: below."""
    store, options, serial = case
    ibp.fit(store, run=tmp_path / "run", workers=count, **options)
    assert_same(tmp_path / "run", serial)


def test_workers_killed_in_many_steps(case, tmp_path):
    store, options, serial = case
    killer = StepKiller(WORKERS, NOTICED, 0.05)
    ibp.fit(store, run=tmp_path / "run", workers=WORKERS, progress=killer, **options)
    assert killer.noticed >= NOTICED, "kills that nobody noticed prove nothing"
    assert_same(tmp_path / "run", serial)
