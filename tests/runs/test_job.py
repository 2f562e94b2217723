"""A job: what is fitted to what, when it stops, and what it says of itself."""

import json

import numpy as np
import pytest

from ibpdist.base.errors import InputError, StorageError, UsageError
from ibpdist.catalog.spec import FitSpec
from ibpdist.data.arrays import as_source
from ibpdist.engine import provenance
from ibpdist.engine.serial import Serial
from ibpdist.engine.sweeps import initial
from ibpdist.runs.bench import open_bench
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.job import Job, job_of
from tests.support.toy import Toy, blobs, toy_spec


def spec(**changes):
    return FitSpec.make(
        **({"data": "memory", "system": "lg-vi-finite", "truncation": 4, "seed": 1} | changes)
    )


def test_made_of_the_catalog_and_the_data():
    source = blobs()
    job = job_of(spec(inner=2, set={"mass": 2.0}), source)
    assert job.algorithm.row_inference().features == 4
    assert job.algorithm.row_inference().inner == 2
    assert job.source is source


@pytest.mark.parametrize(("rows", "most"), [(230, 5), (3, 3)])
def test_auto_may_come_to_as_many_features_as_the_data_can_have(rows, most):
    job = job_of(spec(system="lg-vi-infinite", truncation="auto"), blobs(rows=rows))
    assert job.algorithm.row_inference().features == most
    assert job.attributes({})["truncation"] == most


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"system": "lg-vi-finite"}, "lg-vi-finite has a given number of features; use lg-vi-infinite"),
        ({"system": "lg-gibbs-finite"}, "has a given number of features; use"),
        ({"system": "lg-gibbs-infinite"}, "has no limit and K is where it begins; use a number"),
        ({"system": "lg-collapsed-infinite"}, "K is where it begins"),
        ({"system": "lg-vi-infinite", "set": {"start": "random"}}, "use another start"),
    ],
)
def test_auto_needs_a_number_that_is_left_to_the_data(changes, why):
    with pytest.raises(UsageError, match=why):
        job_of(spec(truncation="auto", **changes), blobs())


def test_held_out_cells_are_hidden():
    job = job_of(spec(holdout=0.4), blobs())
    chunk = job.source.read(22)
    assert chunk.observed is not None
    assert not chunk.observed.all()


def test_data_without_rows():
    with pytest.raises(InputError, match="has no rows"):
        job_of(spec(), blobs(rows=0))


def test_data_that_are_not_there(tmp_path):
    with pytest.raises(StorageError, match="does not exist"):
        job_of(spec(data=str(tmp_path / "none.zarr")))


def test_unknown_systems_and_settings():
    with pytest.raises(UsageError, match="unknown system"):
        job_of(spec(system="nope"), blobs())
    with pytest.raises(UsageError, match="unknown setting 'nope'"):
        job_of(spec(set={"nope": 1.0}), blobs())


def names(job):
    return [type(rule).__name__ for rule in job.rules()]


def test_rules_of_means_and_of_draws():
    assert names(job_of(spec(), blobs())) == ["Rising", "Converged", "StepLimit"]
    sampler = job_of(spec(system="lg-gibbs-finite", chains=2), blobs())
    assert names(sampler) == ["AllEnded"]
    for member in sampler.algorithm.members:
        assert [type(rule).__name__ for rule in member.rules] == ["Rising", "AllSteps"]


def test_rounding_that_is_allowed_follows_the_data():
    wide, narrow = blobs(), blobs()
    narrow = type(narrow)(narrow.x.astype(np.float32), narrow.width)
    guards = [Job(spec(), Toy(), source).rules()[0] for source in (wide, narrow)]
    assert [guard.tolerance for guard in guards] == [1e-9, 1e-6]
    assert guards[0].cells == 230 * 5


def test_attributes_are_plain():
    job = Job(toy_spec("memory", seed=2**70), Toy(), blobs())
    said = job.attributes(provenance.facts(job.source))
    assert said["seed"] == str(2**70), "no integer type holds it"
    assert all(isinstance(value, str | int | float) for value in said.values())
    assert json.loads(said["versions"])["python"]
    assert FitSpec.parse(said["spec"]) == job.spec


class TestProvenance:
    def test_shape_and_fingerprint(self):
        source = blobs()
        found = provenance.facts(source)
        assert (found["rows"], found["columns"], found["chunks"], found["chunk_rows"]) == (230, 5, 23, 10)
        assert found["fingerprint"] == source.fingerprint
        assert found["dtype"] == "float64"

    def test_can_be_written_as_json(self):
        found = provenance.facts(blobs())
        assert json.loads(json.dumps(found)) == found

    def test_versions_of_what_decides_the_bits(self):
        found = provenance.versions()
        assert {"ibpdist", "python", "numpy", "scipy", "numba", "dask", "zarr"} <= set(found)
        assert found["numpy"] == np.__version__

    def test_what_is_not_installed_is_said(self, monkeypatch):
        monkeypatch.setattr(provenance, "PACKAGES", ("no-such-package",))
        assert provenance.versions()["no-such-package"] == "not installed"

    def test_no_chunks(self):
        assert provenance.chunk_rows(blobs(rows=0)) == 0


def facts():
    """What a run notes of the data."""
    return provenance.facts(as_source(blobs().x))


class TestBench:
    def test_opens_from_the_directory_alone(self, tmp_path):
        np.save(tmp_path / "x.npy", blobs().x)
        given = spec(data=str(tmp_path / "x.npy"))
        run = RunDirectory.create(tmp_path / "run", given.dump(), facts)
        bench = open_bench(str(run.path), 1 << 20, "")
        assert bench.source.rows == 230
        assert bench.algorithm.row_inference().features == 4
        assert bench.draws.seed == 1
        assert bench.history.run == run.path
        run.close()

    def test_row_state_goes_where_it_is_told(self, tmp_path):
        np.save(tmp_path / "x.npy", blobs().x)
        run = RunDirectory.create(tmp_path / "run", spec(data=str(tmp_path / "x.npy")).dump(), facts)
        bench = open_bench(str(run.path), 0, str(tmp_path / "spill"))
        bench.history.publish(0, initial(bench.algorithm, Serial(bench), bench.draws))
        bench.state(0, 0)
        assert [p.name for p in (tmp_path / "spill").iterdir()] == ["0.state"]
        run.close()
