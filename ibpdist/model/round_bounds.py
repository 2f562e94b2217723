"""What a beta process can lose after R rounds, before any data (beta_process.md 8).

P_R is the prior probability that some of `rows` rows has an atom of a later round. Atoms of later rounds are
a Poisson process, so P_R = 1 - exp(-mass J_R) with

    J_R = sum_{r > R} E[1 - (1 - pi_r)^N] = int_0^inf E_V[1 - (1 - V e^-T)^N] c P(Poisson(c T) >= R - 1) dT,

c the concentration; V ~ Beta(1, c). Half of the L1 distance of the laws of the data is at most P_R, by
coupling. The bounds of P_R, in increasing order, are in `FORMULAS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainc, gammaincc

from ibpdist.base.errors import UsageError
from ibpdist.model.bounds import check_levels

Vector = NDArray[np.float64]
RoundBound = Literal["exact", "sharp", "printed"]

FORMULAS: dict[RoundBound, str] = {
    "exact": "P_R = 1 - exp(-mass J_R)",
    "sharp": "1 - exp(-N mass (c / (1 + c))^R),  c the concentration",
    "printed": "1 - exp(-2 N mass (c / (1 + c))^R)",
}
DISTANCE = (
    "error bounds P_R, the probability that a row has an atom of a later round; half the L1 distance of the "
    "laws of the data is at most P_R"
)
SURE = 0.99
"""Probability with which a number of atoms is enough."""
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_STICK_PANELS, _DECAY_PANELS, _MOST_PANELS = 30, 60, 4000
_NEGLIGIBLE = 45.0
"""Units of log beyond which what is left of a sum is below its last digit."""
_MOST_ROUNDS = 1_000_000


@dataclass(frozen=True)
class RoundLine:
    """One bound after so many rounds; `atoms` are enough for these rounds with probability SURE."""

    bound: RoundBound
    rounds: int
    error: float
    atoms: int


def probability(
    rows: float, mass: float, concentration: float, rounds: int, bound: RoundBound = "exact"
) -> float:
    """A bound of P_R for R = `rounds`."""
    _check(rows, mass, concentration, bound)
    if isinstance(rounds, bool) or rounds != int(rounds) or not 1 <= rounds <= _MOST_ROUNDS:
        raise UsageError(f"rounds is {rounds!r}; expected a whole number from 1 to {_MOST_ROUNDS}")
    return _BOUNDS[bound](float(rows), float(mass), float(concentration), int(rounds))


def rounds_for(
    rows: float, mass: float, concentration: float, error: float, bound: RoundBound = "exact"
) -> int:
    """The smallest R whose bound of P_R is at most `error`; bisection below the R of `printed`."""
    _check(rows, mass, concentration, bound)
    if not 0 < error < 1:
        raise UsageError(f"error is {error!r}; expected a probability between 0 and 1, for example 0.01")
    wanted = math.log(2 * rows * mass / -math.log1p(-error)) / math.log1p(1 / concentration)
    if wanted > _MOST_ROUNDS:
        raise UsageError(
            f"concentration is {concentration:g}; expected one for which {_MOST_ROUNDS} rounds are enough"
        )
    low, high = 0, max(1, math.ceil(wanted) + 1)
    while high - low > 1:
        middle = (low + high) // 2
        enough = _BOUNDS[bound](float(rows), float(mass), float(concentration), middle) <= error
        low, high = (low, middle) if enough else (middle, high)
    return high


def enough_atoms(mass: float, rounds: int, atoms: int) -> float:
    """Probability that K = `atoms` are all that there are in so many rounds: their number is Poisson."""
    return float(gammaincc(atoms + 1, mass * rounds))


def atoms_for(mass: float, rounds: int, sure: float = SURE) -> int:
    """The smallest K that is enough with this probability."""
    low, high = -1, int(mass * rounds + 10 * math.sqrt(mass * rounds) + 20)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough_atoms(mass, rounds, middle) >= sure else (middle, high)
    return high


def table(
    rows: float, mass: float, concentration: float, error: float | None = None, rounds: int | None = None
) -> list[RoundLine]:
    """Every bound side by side: the R it asks for a wanted error, or its value at a given R."""
    if (error is None) == (rounds is None):
        raise UsageError("give an error or a number of rounds, exactly one of the two")
    names: tuple[RoundBound, ...] = get_args(RoundBound)
    sizes = {
        name: rounds if error is None else rounds_for(rows, mass, concentration, error, name)
        for name in names
    }
    return [
        RoundLine(name, size, probability(rows, mass, concentration, size, name), atoms_for(mass, size))
        for name, size in sizes.items()
        if size is not None
    ]


def render(lines: list[RoundLine], mass: float, atoms: int | None = None) -> str:
    """The table as text, with what the numbers bound, and what a given number of atoms is worth."""
    shown = [f"{'bound':<8}{'rounds':>8}  {'error':<10}{'atoms':>8}  formula"]
    shown += [f"{x.bound:<8}{x.rounds:>8}  {x.error:<10.4g}{x.atoms:>8}  {FORMULAS[x.bound]}" for x in lines]
    said = [DISTANCE, f"atoms are enough for the rounds with a probability of at least {SURE:g}"]
    if atoms is not None:
        least = min(x.rounds for x in lines)
        chance = enough_atoms(mass, least, atoms)
        said.append(f"K = {atoms} is enough for {least} rounds with probability {chance:.4g}")
    return "\n".join([*shown, "", *said])


def _exact(rows: float, mass: float, concentration: float, rounds: int) -> float:
    return -math.expm1(-mass * expected_later(rows, concentration, rounds))


def _sharp(rows: float, mass: float, concentration: float, rounds: int) -> float:
    return -math.expm1(-rows * mass * math.exp(-rounds * math.log1p(1 / concentration)))


def _printed(rows: float, mass: float, concentration: float, rounds: int) -> float:
    return _sharp(2 * rows, mass, concentration, rounds)


_BOUNDS: dict[RoundBound, Callable[[float, float, float, int], float]] = {
    "exact": _exact,
    "sharp": _sharp,
    "printed": _printed,
}


def expected_later(rows: float, concentration: float, rounds: int) -> float:
    """J_R: for a mass of one, the expected number of atoms of later rounds that some row has."""
    spread = rounds + 12 * math.sqrt(rounds) + _NEGLIGIBLE
    most = math.log(rows) + _NEGLIGIBLE + spread / concentration
    panels = min(_MOST_PANELS, _DECAY_PANELS + math.ceil(most * (1 + concentration) / math.sqrt(rounds)))
    decay, weight = _panels(0.0, most, panels)
    late = gammainc(rounds - 1, concentration * decay) if rounds > 1 else np.ones_like(decay)
    kept = late > 0
    each = _some_row(rows, concentration, np.exp(-decay[kept]))
    return float(concentration * (weight[kept] * late[kept]) @ each)


def _some_row(rows: float, concentration: float, share: Vector) -> Vector:
    """E_V[1 - (1 - V share)^N]: small sticks by their logs, large ones by what they leave, to a power that
    makes its density smooth."""
    log_v, log_weight = _panels(-math.log(rows) - _NEGLIGIBLE, math.log(0.5), _STICK_PANELS)
    power = min(concentration, 1.0)
    root, root_weight = _panels(0.0, 0.5**power, _STICK_PANELS)
    left = root ** (1 / power)
    small = np.exp(log_v)
    density = concentration * np.exp((concentration - 1) * np.log1p(-small)) * small * log_weight
    sticks = np.concatenate([small, 1 - left])
    left_weight = concentration / power * left ** (concentration - power) * root_weight
    weights = np.concatenate([density, left_weight])
    with np.errstate(divide="ignore"):
        found: Vector = -np.expm1(rows * np.log1p(-np.outer(share, sticks))) @ weights
    return found


def _panels(low: float, high: float, count: int) -> tuple[Vector, Vector]:
    """Nodes and weights of Gauss and Legendre in panels of equal length."""
    half = 0.5 * (high - low) / count
    nodes = low + half * (2 * np.arange(count)[:, None] + 1 + _NODES)
    return nodes.ravel(), np.tile(half * _WEIGHTS, count)


def _check(rows: float, mass: float, concentration: float, bound: RoundBound) -> None:
    check_levels(rows, mass)
    if isinstance(concentration, bool) or not 0 < concentration < math.inf:
        raise UsageError(f"concentration is {concentration!r}; expected a positive number")
    if bound not in _BOUNDS:
        raise UsageError(f"bound is {bound!r}; expected one of {', '.join(get_args(RoundBound))}")
