"""What a number of rounds of a beta process can lose: quadrature against draws, orders, limits."""

import math

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.model.round_bounds import (
    atoms_for,
    enough_atoms,
    expected_later,
    probability,
    render,
    rounds_for,
    table,
)
from tests.support.command import invoke

GRID = [(50, 2.0, 0.7, 3), (5000, 3.0, 2.0, 25), (100_000, 1.0, 5.0, 60), (1, 4.0, 1.0, 2), (30, 2.0, 9.0, 1)]


@pytest.mark.parametrize("case", GRID)
def test_bounds_are_in_order(case):
    exact, sharp, printed = (probability(*case, name) for name in ("exact", "sharp", "printed"))
    assert 0 < exact <= sharp * (1 + 1e-12)
    assert sharp <= printed <= 1


def test_the_example_of_the_paper():
    lines = table(1000, 2.0, 3.0, rounds=75)
    assert [line.error for line in lines] == pytest.approx([8.52e-7, 8.52e-7, 1.705e-6], rel=1e-3)
    assert enough_atoms(2.0, 75, 180) == pytest.approx(0.9924, abs=5e-5)
    assert enough_atoms(2.0, 75, 179) == pytest.approx(0.9906, abs=5e-5), "the strict event, as printed"


@pytest.mark.parametrize(("rows", "concentration", "rounds"), [(40, 2.0, 3), (500, 0.6, 2), (8, 5.0, 6)])
def test_later_atoms_that_a_row_has_against_draws(rows, concentration, rounds):
    """Atoms of rounds R + 1 to R + 60, one a round and again and again."""
    rng, total = np.random.default_rng(0), np.zeros(20_000)
    for later in range(rounds, rounds + 60):
        prevalence = rng.beta(1, concentration, total.size)
        prevalence *= np.exp(-rng.gamma(later, 1 / concentration, total.size))
        total -= np.expm1(rows * np.log1p(-prevalence))
    found, error = expected_later(rows, concentration, rounds), total.std() / math.sqrt(total.size)
    assert abs(total.mean() - found) < 4 * error


def test_one_row_has_as_many_as_are_expected_of_later_rounds():
    """For N = 1 the sum is sum_{r > R} E pi_r = (c / (1 + c))^R."""
    for concentration in (0.3, 1.0, 4.0):
        for rounds in (1, 2, 9):
            share = (concentration / (1 + concentration)) ** rounds
            assert expected_later(1, concentration, rounds) == pytest.approx(share, rel=1e-9)


def test_all_rounds_are_the_features_of_the_process():
    """The first round and the later ones together: sum_n c / (c + n)."""
    rows, concentration = 300, 2.5
    v = (np.arange(200_000) + 0.5) / 200_000
    first = -np.expm1(rows * np.log1p(-(1 - v ** (1 / concentration)))).mean()
    wanted = (concentration / (concentration + np.arange(rows))).sum()
    assert first + expected_later(rows, concentration, 1) == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("bound", ["exact", "sharp", "printed"])
@pytest.mark.parametrize("error", [0.3, 1e-3, 1e-9])
def test_the_least_number_of_rounds(bound, error):
    found = rounds_for(2000, 3.0, 1.5, error, bound)
    assert probability(2000, 3.0, 1.5, found, bound) <= error
    assert found == 1 or probability(2000, 3.0, 1.5, found - 1, bound) > error


def test_the_least_number_of_atoms():
    for rounds in (1, 30, 400):
        found = atoms_for(2.5, rounds)
        assert enough_atoms(2.5, rounds, found) >= 0.99 > enough_atoms(2.5, rounds, found - 1)


def test_the_table_as_text():
    shown = render(table(5000, 3.0, 2.0, rounds=25), 3.0, 90).splitlines()
    assert [line.split()[:3] for line in shown[1:4]] == [
        ["exact", "25", "0.3602"],
        ["sharp", "25", "0.4479"],
        ["printed", "25", "0.6952"],
    ]
    assert shown[-1] == "K = 90 is enough for 25 rounds with probability 0.9601"


def test_the_command():
    given = ("bound", "--rows", 5000, "--mass", 3, "--concentration", 2)
    assert (
        invoke(*given, "--rounds", 25).stdout
        == render(ibp.round_bounds.table(5000, 3, 2, rounds=25), 3) + "\n"
    )
    asked = invoke(*given).stdout.splitlines()
    assert asked == invoke(*given, "--error", 0.01).stdout.splitlines()
    assert int(asked[1].split()[1]) == rounds_for(5000, 3, 2, 0.01)
    for wrong, words in (
        (("bound", "--rows", 9, "--mass", 3, "--rounds", 2), "only a beta process has rounds"),
        ((*given, "--rounds", 3, "--error", 0.1), "exactly one"),
    ):
        found = invoke(*wrong)
        assert found.exit_code == 2
        assert words in found.stderr


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ((10, 1.0, 0.0, 3), "concentration is 0.0; expected a positive number"),
        ((10, 1.0, 2.0, 0), "rounds is 0; expected a whole number from 1"),
        ((10, -1.0, 2.0, 3), "mass is -1.0; expected a positive number"),
        ((0.5, 1.0, 2.0, 3), "rows is 0.5; expected a whole number"),
        ((10, 1.0, 2.0, 3, "best"), "bound is 'best'; expected one of exact, sharp, printed"),
    ],
)
def test_bad_input(given, text):
    with pytest.raises(UsageError, match=text):
        probability(*given)


def test_too_large_a_concentration_is_refused():
    with pytest.raises(UsageError, match="expected one for which 1000000 rounds are enough"):
        rounds_for(1000, 1.0, 1e6, 0.01)
