"""Which cases of a grid run every day: so few that every pair of values is in one of them.

A grid crosses axes, and its cases are almost all alike. `covering` chooses cases that hold each value of each
axis with each value of each other axis (strength 2; of strength 1, each value once). `everyday` keeps the
whole grid and marks as slow what was not chosen. A system stands for its axes: method, prior, weights, rules
and observation.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import astuple, is_dataclass
from itertools import combinations
from typing import Any, TypeVar

import pytest

from ibpdist.catalog.systems import SYSTEMS, System

T = TypeVar("T")


def everyday(cases: Iterable[Any], strength: int = 2) -> list[Any]:
    """All cases, as parameters of a test; those that were not chosen are slow."""
    cases = list(cases)
    chosen = _chosen(cases, strength)
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)), marks=() if at in chosen else pytest.mark.slow
        )
        for at, case in enumerate(cases)
    ]


def covering(cases: Iterable[T], strength: int = 2) -> list[T]:
    """Cases that hold every combination of `strength` values that any case holds, in their order."""
    cases = list(cases)
    return [cases[at] for at in sorted(_chosen(cases, strength))]


def _chosen(cases: Sequence[Any], strength: int) -> set[int]:
    """Places of the cases; the one with most combinations that are not held yet is taken next, of equal ones
    the first."""
    held = [set(_combinations(case, strength)) for case in cases]
    missing = set().union(*held)
    chosen: set[int] = set()
    while missing:
        best = max(range(len(cases)), key=lambda at: len(held[at] & missing))
        missing -= held[best]
        chosen.add(best)
    return chosen


def _combinations(case: Any, strength: int) -> Iterator[Hashable]:
    values = list(enumerate(_values(case)))
    return combinations(values, min(strength, len(values)))


def _values(case: Any) -> Iterator[Hashable]:
    """The values of a case on all axes."""
    if isinstance(case, tuple):
        for part in case:
            yield from _values(part)
    elif isinstance(case, str) and case in SYSTEMS:
        yield from _axes(SYSTEMS[case])
    elif is_dataclass(case) and not isinstance(case, type):
        yield from _values(astuple(case))
    else:
        yield case


def _axes(row: System) -> Iterator[Hashable]:
    return iter((row.method, row.prior, row.weights, row.rules.z, row.observation))
