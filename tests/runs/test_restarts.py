"""Several starts of a fit: their seeds, and the choice among them."""

import numpy as np
import pytest
import xarray as xr

from ibpdist.runs.restarts import best, chosen, folder, seed_of, spec_of, table
from tests.support.toy import toy_spec


def found(objective, seed=1, steps=5):
    attrs = {"objective": objective, "seed": str(seed), "steps": steps, "stop": "converged"}
    return xr.DataTree(xr.Dataset(attrs=attrs))


def test_the_first_has_the_seed_of_the_whole():
    assert seed_of(7, 0) == 7


def test_seeds_differ_and_come_back():
    seeds = {seed_of(seed, restart) for seed in range(20) for restart in range(20)}
    assert len(seeds) == 400
    assert seed_of(2**70, 3) == seed_of(2**70, 3)


def test_each_is_a_fit_of_its_own():
    spec = toy_spec("memory", restarts=4)
    one = spec_of(spec, 2)
    assert one.restarts == 1
    assert one.seed == seed_of(7, 2)
    assert one.model_copy(update={"restarts": 4, "seed": 7}) == spec


def test_the_best_is_the_highest_and_the_first_of_equals():
    assert best([found(-3.0), found(-1.0), found(-2.0)]) == 1
    assert best([found(-1.0), found(-1.0)]) == 0


def test_table_has_a_line_for_each():
    made = table([found(-3.0, 1, 9), found(-1.0, 2**63, 4)])
    assert made["objective"].values.tolist() == [-3.0, -1.0]
    assert made["seed"].values.tolist() == ["1", str(2**63)]
    assert made["steps"].values.tolist() == [9, 4]
    assert made.sizes == {"restart": 2}


def test_the_chosen_one_carries_the_table():
    made = chosen([found(-3.0), found(-1.0)])
    assert made.attrs["objective"] == -1.0
    assert made["restarts"].attrs["chosen"] == 1
    assert np.array_equal(made["restarts"]["restart"], [0, 1])


def test_a_single_one_has_no_table():
    assert "restarts" not in chosen([found(-3.0)]).children


@pytest.mark.parametrize(("restart", "name"), [(0, "000"), (41, "041"), (1234, "1234")])
def test_folders_sort_as_numbers(tmp_path, restart, name):
    assert folder(tmp_path, restart) == tmp_path / "restarts" / name
