"""The choice of cases that run every day."""

from itertools import product

import pytest

from ibpdist.catalog.systems import SYSTEMS
from tests.support.covering import covering, everyday
from tests.support.model_cases import ASCENT, AT_ONCE, Case, grid

AXES = ("abc", "de", "fgh")


def pairs(cases):
    return {(i, j, case[i], case[j]) for case in cases for i in range(3) for j in range(i)}


def test_every_pair_of_values_is_in_a_case():
    cases = list(product(*AXES))
    chosen = covering(cases)
    assert pairs(chosen) == pairs(cases)
    assert len(chosen) == 9, "as few as the two longest axes leave"
    assert set(chosen) < set(cases)


def test_of_strength_one_every_value_is():
    chosen = covering(product(*AXES), 1)
    assert [set(values) for values in zip(*chosen, strict=True)] == [set(axis) for axis in AXES]
    assert len(chosen) == 3


def test_of_full_strength_all_cases_are_chosen():
    assert len(covering(product(*AXES), 3)) == 18


def test_only_what_any_case_holds_is_asked_for():
    cases = [("a", 1), ("b", 2)]
    assert covering(cases) == cases


@pytest.mark.parametrize("systems", [AT_ONCE, ASCENT])
def test_systems_are_chosen_by_their_axes(systems):
    def axes(names):
        rows = [SYSTEMS[name] for name in names]
        return {(row.prior, row.weights) for row in rows} | {(row.weights, row.rules.z) for row in rows}

    chosen = covering(systems)
    assert axes(chosen) == axes(systems)
    assert len(chosen) < len(systems)
    assert len({SYSTEMS[name].observation for name in chosen}) == 2


def test_cases_of_models_are_chosen_by_their_fields():
    chosen = covering(grid())
    assert {(case.weights, case.missing) for case in chosen} == {(c.weights, c.missing) for c in grid()}
    assert covering([Case(), Case()]) == [Case()]


def test_what_is_not_chosen_is_slow():
    marked = everyday(product("ab", "cd"), 1)
    assert [made.values for made in marked] == list(product("ab", "cd"))
    assert [[mark.name for mark in made.marks] for made in marked] == [[], ["slow"], ["slow"], []]
