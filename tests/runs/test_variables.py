"""The table of result variables: every variable of a result is in it, and every entry is used."""

import tarfile
from pathlib import Path

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.runs.variables import GROUPS, TERMS, TRACE, Variable
from tests.benchmarks.same_bits import FITS

FORMATS = Path(__file__).parents[1] / "formats"
OTHERS = {
    "particle filter": {"system": "lg-particle", "steps": 1, "noise": 0.2, "scale": 1.0, "mass": 2.0},
    "noise of columns": {"system": "lg-gibbs-finite", "steps": 4, "noise": "column", "scale": "feature"},
    "annealing": {"system": "lg-vi-infinite", "steps": 3, "start": "random", "anneal": 4.0},
    "rows of many patterns": {"system": "fa-vi-finite", "steps": 3, "missing": "rows"},
    "subsamples": {"system": "fa-vi-finite", "steps": 3, "missing": "groups", "stability": 2},
    "intercept": {"system": "fa-vi-finite", "steps": 3, "missing": "groups", "intercept": True},
    "beta process": {"system": "fa-vi-beta-process", "steps": 3, "missing": "groups"},
    "draws of all": {"system": "fa-gibbs-finite", "steps": 4, "missing": "groups"},
    "draws of a number": {"system": "fa-gibbs-infinite", "steps": 4, "missing": "groups"},
}
"""Fits with variables that no stored result has."""
COUNTS = {
    "means": {"system": "counts-finite", "steps": 12},
    "draws": {"system": "counts-gibbs-beta-process", "steps": 4},
    "modes": {"system": "counts-finite-hard", "steps": 18},
}
"""The same of counts."""


def held(result):
    """Path and dims of every variable of a result that is not a label."""
    for group in result.children.values():
        data = group.to_dataset(inherit=False)
        names = {*data.data_vars, *({"group"} & data.variables.keys())}
        yield from ((f"{group.name}/{name}", data[name].dims) for name in names)


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The results of all formats so far."""
    found = []
    for archive in sorted(FORMATS.glob("*.tar.xz")):
        folder = tmp_path_factory.mktemp("format")
        with tarfile.open(archive) as members:
            members.extractall(folder, filter="data")
        found += [ibp.open_result(path) for path in sorted(folder.rglob("result.zarr"))]
    return found


@pytest.fixture(scope="module")
def others():
    x = ibp.synthetic("linear-gaussian", rows=30, columns=6, features=2, noise=0.2, seed=1).x.values.copy()
    x[::7, 0] = x[1::5, 3] = np.nan
    counts = np.random.default_rng(0).poisson(3.0, (30, 6)).astype(float)
    of_counts = [ibp.fit(counts, K=3, seed=1, **options) for options in COUNTS.values()]
    return [*(ibp.fit(x, K=3, seed=1, **options) for options in OTHERS.values()), *of_counts]


TABLE = {
    f"{group.name}/{variable.name}": set(variable.forms())
    for group in GROUPS.values()
    for variable in group.variables
}


def unknown(result):
    return {(path, dims) for path, dims in held(result) if dims not in TABLE.get(path, ())}


def test_every_variable_of_a_stored_result_is_in_the_table(stored):
    assert len(stored) > 20
    for result in stored:
        assert unknown(result) == set()


def test_every_variable_of_other_fits_is_in_the_table(others):
    for result in others:
        assert unknown(result) == set()


def test_every_entry_is_used(stored, others):
    assert {path for result in [*stored, *others] for path, _ in held(result)} == TABLE.keys()


def test_variables_that_are_read_have_names_and_units(stored, others):
    for result in [stored[0], others[0]]:
        for path, _ in held(result):
            group, _, name = path.partition("/")
            attributes = GROUPS[group][name].attributes()
            assert attributes.items() <= result[path].attrs.items(), path


def test_names_of_a_group_differ():
    for group in GROUPS.values():
        names = [variable.name for variable in group.variables]
        assert len(names) == len(set(names)), group.name


def test_dims_in_parentheses_may_be_missing():
    made = Variable("noise", "chain (column)", "")
    assert set(made.forms()) == {("chain", "column"), ("chain",)}
    assert made.dims_of(1) == ("chain",)
    assert set(Variable("basis", "group|basis feature", "").forms()) == {
        ("group", "feature"),
        ("basis", "feature"),
    }


def test_terms_are_in_the_trace():
    assert set(TERMS) < {variable.name for variable in TRACE.variables}


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FITS if name != "campaign"])
def test_every_variable_of_a_fit_is_in_the_table(name, tmp_path):
    made = FITS[name](tmp_path)
    if not isinstance(made, dict):
        assert unknown(made) == set()
