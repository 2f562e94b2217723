"""The sweep over the rounds of the atoms of a beta process (beta_process.md 6).

p_k(r) = q(d_k = r). What couples the atoms is how many rounds there are, through E max d, and with the
priors of the paper how many atoms a round has.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from ibpdist.kernels.options import OPTIONS

EXCHANGEABLE, EXACT, MARKOV = np.arange(3)
"""What an atom pays for others of its round: nothing, E log C! as it is, or the bound of it by E C^2."""
SECOND = 0.937548254315844
"""sum_l log(l) / l^2, the factor of that bound."""


@njit(**OPTIONS)
def _with(count, size, p):
    """Add an atom of probability p to the law (number) of a count of `size` atoms."""
    count[size + 1] = count[size] * p
    for c in range(size, 0, -1):
        count[c] = count[c] * (1 - p) + count[c - 1] * p
    count[0] *= 1 - p


@njit(**OPTIONS)
def _without(count, size, p):
    """Take an atom away; from the side on which rounding shrinks."""
    if p <= 0.5:
        count[0] /= 1 - p
        for c in range(1, size):
            count[c] = (count[c] - p * count[c - 1]) / (1 - p)
    else:
        above, held = 0.0, count[size]
        for c in range(size - 1, -1, -1):
            above = (held - (1 - p) * above) / p
            held, count[c] = count[c], above
    count[size] = 0.0


@njit(cache=True, **OPTIONS)
def counts(p):
    """(round, number) law of the number of atoms of each round."""
    atoms, rounds = p.shape
    found = np.zeros((rounds, atoms + 1))
    found[:, 0] = 1.0
    for r in range(rounds):
        for k in range(atoms):
            _with(found[r], k, p[k, r])
    return found


@njit(**OPTIONS)
def _mean_log(count, size):
    """E log(1 + C)."""
    found = 0.0
    for c in range(1, size + 1):
        found += count[c] * math.log(1.0 + c)
    return found


@njit(**OPTIONS)
def _company(law, law_of, totals, p, k):
    """(round) what atom k would pay for the others; `law_of` is left without the atom."""
    atoms, rounds = p.shape
    pay = np.zeros(rounds)
    for r in range(rounds):
        if law == EXACT:
            _without(law_of[r], atoms, p[k, r])
            pay[r] = _mean_log(law_of[r], atoms - 1)
        elif law == MARKOV:
            pay[r] = 2 * SECOND * (totals[r] - p[k, r])
    return pay


@njit(**OPTIONS)
def _add_logs(p, k, sign, logs, zeros):
    """Add log F_k(r) to sums over the atoms, or take it away; those of nothing are counted."""
    below = 0.0
    for r in range(p.shape[1]):
        below += p[k, r]
        if below > 0:
            logs[r] += sign * math.log(min(below, 1.0))
        else:
            zeros[r] += sign


@njit(**OPTIONS)
def _choose(own, pay, mass, logs, zeros, out):
    """Probabilities (round) of an atom, given sums of log F over the others."""
    beyond, most = 0.0, -np.inf
    for r in range(own.size):
        if r > 0 and zeros[r - 1] == 0:
            beyond += math.exp(logs[r - 1])
        out[r] = own[r] - pay[r] - mass * beyond
        most = max(most, out[r])
    total = 0.0
    for r in range(own.size):
        out[r] = math.exp(out[r] - most)
        total += out[r]
    for r in range(own.size):
        out[r] /= total


@njit(cache=True, **OPTIONS)
def sweep_rounds(own, p, order, mass, law):
    """(atom, round) probabilities after every atom, in turn, has those where the objective is highest.

    `own` (atom, round) is what an atom says for itself, `order` the turn of the atoms.
    """
    atoms, rounds = p.shape
    p = p.copy()
    logs, zeros = np.zeros(rounds), np.zeros(rounds, np.int64)
    totals = p.sum(axis=0)
    law_of = counts(p) if law == EXACT else np.zeros((rounds, 1))
    for k in range(atoms):
        _add_logs(p, k, 1, logs, zeros)
    for k in order:
        _add_logs(p, k, -1, logs, zeros)
        pay = _company(law, law_of, totals, p, k)
        totals -= p[k]
        _choose(own[k], pay, mass, logs, zeros, p[k])
        totals += p[k]
        _add_logs(p, k, 1, logs, zeros)
        if law == EXACT:
            for r in range(rounds):
                _with(law_of[r], atoms - 1, p[k, r])
    return p
