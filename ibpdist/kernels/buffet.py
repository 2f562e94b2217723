"""What a row's own entries are like given the other rows: the prior of samplers that take rows in turn.

A feature that m of the other N - 1 rows have is on with odds (m + share) / (N - m), and the row has
Poisson(rate) features of its own (samplers.md 3, 17). The buffet has share 0 and rate mass / N; the
finite prior has share mass / K and rate 0.

Rows ask for their features in the order of the slots. Where features come and go that is exact only if
the order says nothing of who has what: then a new feature takes any slot with the same chance (what was
there moves to the end), and of a row's own features any may go. In the order of age, say, a sweep does
not leave the posterior as it is.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numba import njit

from ibpdist.kernels.options import INLINED, OPTIONS

BEYOND = 1e-10
"""Numbers of own features that have this probability together are left out."""


class Law(NamedTuple):
    """Variances and prior as numbers; `rows` is N."""

    noise: float
    scale: float
    share: float
    rate: float
    rows: float


@njit(**INLINED)
def log_odds(law, others):
    """Prior log odds of a feature, given how many other rows have it."""
    return math.log((others + law.share) / (law.rows - others))


@njit(**INLINED)
def is_own(law, others):
    """Whether a feature is a matter of one row alone: it flips with others, or is counted with them."""
    return others + law.share == 0.0


@njit(**OPTIONS)
def any_slot(slots, logit):
    """A slot out of the given number, from the logit of a uniform."""
    return min(int(slots / (1.0 + math.exp(-logit))), slots - 1)


@njit(**OPTIONS)
def last_called(mine, numbers, size):
    """Of the slots of a row's own features the one with the largest number."""
    found = -1
    for k in range(size):
        if mine[k] and (found < 0 or numbers[k] > numbers[found]):
            found = k
    return found


@njit(**OPTIONS)
def log_poisson(number, rate):
    """Up to the constant -rate."""
    return number * math.log(rate) - math.lgamma(number + 1.0) if number else 0.0


@njit(**OPTIONS)
def log_fit(cells, squares, level, number, scale):
    """Of a residual with variances level + number scale: (cells, squares, level) by group of columns."""
    total = 0.0
    for i in range(cells.size):
        variance = level[i] + number * scale
        total -= 0.5 * (cells[i] * math.log(variance / level[i]) + squares[i] / variance)
    return total


@njit(**OPTIONS)
def _highest_beyond(cells, squares, level, number, scale):
    """At least the log likelihood of any larger number: each group at the best variance it can still have."""
    total = 0.0
    for i in range(cells.size):
        least = level[i] + (number + 1) * scale
        best = max(squares[i] / cells[i], least) if cells[i] > 0 else least
        total -= 0.5 * (cells[i] * math.log(best / level[i]) + squares[i] / best)
    return total


@njit(**OPTIONS)
def number_of_own(cells, squares, level, law, uniform):
    """A draw of how many features a row has for itself, their part of the dictionary integrated out.

    The weight of k is Poisson(k; rate) times the likelihood of the residual with variances level + k
    scale (samplers.md 9), summed until what is beyond cannot matter.
    """
    if law.rate == 0.0:
        return 0
    top = total = 0.0
    last = -1
    while True:
        last += 1
        weight = log_poisson(last, law.rate) + log_fit(cells, squares, level, last, law.scale)
        if last == 0 or weight > top:
            total = total * math.exp(top - weight) + 1.0 if last else 1.0
            top = weight
        else:
            total += math.exp(weight - top)
        if last + 2 <= law.rate:
            continue
        tail = log_poisson(last + 1, law.rate) - math.log1p(-law.rate / (last + 2))
        tail += _highest_beyond(cells, squares, level, last, law.scale)
        if not tail - top - math.log(total) > math.log(BEYOND):
            break
    left = uniform * total
    for number in range(last + 1):
        weight = log_poisson(number, law.rate) + log_fit(cells, squares, level, number, law.scale)
        left -= math.exp(weight - top)
        if left <= 0.0:
            return number
    return last
