"""The objective of the beta process as plain loops over atoms, rounds and all ways to give rounds to atoms.

Nothing here is imported from the package. Letters: n1, n0 rows with and without an atom; (a, b) sticks of
the first round, (c, d) of later ones, (u, v) decays; `conc` and `mass` are pairs (E x, E log x).
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from scipy.special import betaln, digamma, gammaln

TERMS = 200_000
SECOND = sum(math.log(j) / j**2 for j in range(1, 2_000_001)) + (math.log(2e6) + 1) / 2e6


def absence(c, d, u, v):
    """The plain series, with what is left beyond it by the order of its terms."""
    m = np.arange(1.0, TERMS)
    terms = np.exp(betaln(c + m, d) - betaln(c, d) - u * np.log1p(m / v)) / m
    return float(terms.sum() + terms[-1] * (TERMS - 0.5) / (d + u))


def beta_logs(a, b):
    return digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)


def beta_entropy(a, b):
    log_on, log_off = beta_logs(a, b)
    return betaln(a, b) - (a - 1) * log_on - (b - 1) * log_off


def gamma_entropy(shape, rate):
    return shape - math.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)


def level(law):
    shape, rate = law
    return shape / rate, digamma(shape) - math.log(rate)


def each_rounds(chance):
    """Every way to give rounds (from 1) to the atoms, with its probability."""
    atoms, rounds = chance.shape
    for found in product(range(1, rounds + 1), repeat=atoms):
        yield found, math.prod(chance[k, r - 1] for k, r in enumerate(found))


def company(round_prior, found):
    """What is paid for the numbers of atoms of the rounds."""
    if round_prior == "exchangeable":
        return math.lgamma(len(found) + 1)
    count = [found.count(r) for r in set(found)]
    if round_prior == "paper-exact":
        return sum(math.lgamma(c + 1) for c in count)
    return SECOND * sum(c * c for c in count)


def of_round(k, r, state, counts, conc):
    """What atom k adds if it is of round r: counts, stick, decay, and their entropies."""
    (n1, n0), (mean, log) = counts[k], conc
    if r == 1:
        a, b = state["first"][k]
        on, off = beta_logs(a, b)
        return n1 * on + n0 * off + log + (mean - 1) * off + beta_entropy(a, b)
    (c, d), (u, v) = state["later"][k], state["decay"][k]
    on, off = beta_logs(c, d)
    total = n1 * (on - u / v) - n0 * absence(c, d, u, v)
    total += log + (mean - 1) * off + beta_entropy(c, d)
    total += (r - 1) * log - gammaln(r - 1) + (r - 2) * (digamma(u) - math.log(v)) - mean * u / v
    return total + gamma_entropy(u, v)


def objective(state, counts, conc, mass, round_prior):
    """What depends on the atoms: sum over rounds of every atom, the number of rounds, entropies of rounds."""
    chance = np.asarray(state["chance"])
    atoms, rounds = chance.shape
    total = 0.0
    for k in range(atoms):
        for r in range(1, rounds + 1):
            p = chance[k, r - 1]
            if p > 0:
                total += p * (of_round(k, r, state, counts, conc) - math.log(p))
    for found, p in each_rounds(chance):
        if p > 0:
            total += p * (atoms * mass[1] - mass[0] * max(found) - company(round_prior, found))
    return total


def best_rounds(k, state, counts, conc, mass, round_prior):
    """q(d_k) at its optimum: the objective is linear in it but for its entropy."""
    chance = np.asarray(state["chance"], float)
    values = []
    for r in range(chance.shape[1]):
        tried = chance.copy()
        tried[k] = 0
        tried[k, r] = 1
        values.append(objective({**state, "chance": tried}, counts, conc, mass, round_prior))
    values = np.exp(np.array(values) - max(values))
    return values / values.sum()


def level_laws(state, vague):
    """q(concentration) and q(mass), shape and rate each."""
    chance = np.asarray(state["chance"])
    atoms, rounds = chance.shape
    shape, rate, last = vague + atoms, vague, 0.0
    for k in range(atoms):
        moved = chance[k, 1:].sum()
        shape += sum((r - 1) * chance[k, r - 1] for r in range(2, rounds + 1))
        rate -= chance[k, 0] * beta_logs(*state["first"][k])[1] + moved * beta_logs(*state["later"][k])[1]
        rate += moved * state["decay"][k][0] / state["decay"][k][1]
    for found, p in each_rounds(chance):
        last += p * max(found)
    return (shape, rate), (vague + atoms, vague + last)


def moment(concentration, power, r):
    """E pi^power of an atom of round r."""
    log = gammaln(power + 1) + gammaln(1 + concentration) - gammaln(1 + concentration + power)
    return math.exp(log) * (concentration / (concentration + power)) ** (r - 1)


def log_evidence(on, rows, concentration, mass, rounds):
    """log of the sum over rounds of p(d | mass) p(z | d), exchangeable prior of rounds, atoms with whole
    counts `on` of few rows."""
    column = np.zeros((len(on), rounds))
    for k, n1 in enumerate(on):
        for r in range(1, rounds + 1):
            rest = range(rows - n1 + 1)
            column[k, r - 1] = sum(
                math.comb(rows - n1, j) * (-1) ** j * moment(concentration, n1 + j, r) for j in rest
            )
    total = 0.0
    for found in product(range(1, rounds + 1), repeat=len(on)):
        weight = mass ** len(on) * math.exp(-mass * max(found)) / math.factorial(len(on))
        total += weight * math.prod(column[k, r - 1] for k, r in enumerate(found))
    return math.log(total)


def sampled_bound(state, counts, conc, mass, round_prior, size, rng):
    """Monte Carlo E[log p - log q] over everything but the levels; a decay is absent in the first round."""
    chance, values = np.asarray(state["chance"]), np.zeros(size)
    atoms, rounds = chance.shape
    drawn = np.empty((size, atoms), int)
    for k in range(atoms):
        drawn[:, k] = 1 + rng.choice(rounds, size=size, p=chance[k])
        late, (n1, n0) = drawn[:, k] > 1, counts[k]
        values -= np.log(chance[k, drawn[:, k] - 1])
        for mask, (a, b) in ((~late, state["first"][k]), (late, state["later"][k])):
            stick = rng.beta(a, b, size)
            entry = conc[1] + (conc[0] - 1) * np.log1p(-stick)
            entry -= (a - 1) * np.log(stick) + (b - 1) * np.log1p(-stick) - betaln(a, b)
            log_pi = np.log(stick)
            if mask is late:
                u, v = state["decay"][k]
                t, before = rng.gamma(u, 1 / v, size), drawn[:, k] - 1.0
                safe = np.maximum(before, 1.0)
                entry += before * conc[1] - gammaln(safe) + (safe - 1) * np.log(t) - conc[0] * t
                entry -= u * np.log(v) - gammaln(u) + (u - 1) * np.log(t) - v * t
                log_pi = log_pi - t
            entry += n1 * log_pi + n0 * np.log1p(-np.exp(log_pi))
            values += np.where(mask, entry, 0.0)
    pay = np.array([company(round_prior, tuple(row)) for row in drawn.tolist()])
    values += atoms * mass[1] - mass[0] * drawn.max(axis=1) - pay
    return values.mean(), values.std() / math.sqrt(size)
