"""The exact posterior of the infinite model on tiny problems, with variances and mass fixed.

Columns of z of different history are independent Poisson numbers (priors.md 11), so the posterior of how
many there are of each is a table; features have no order. Tables with so many features that the
prior leaves less than `missed` beyond are left out.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, logsumexp
from scipy.stats import poisson

from tests.support.reference_evidence import history_rates


def counts_up_to(kinds, most):
    """(state, kind) all numbers of features of each kind with sum at most `most`, in lexical order."""
    states = np.zeros((1, 0), int)
    for _ in range(kinds):
        choices = most - states.sum(axis=1) + 1
        first = np.repeat(np.cumsum(choices) - choices, choices)
        states = np.column_stack([np.repeat(states, choices, axis=0), np.arange(choices.sum()) - first])
    return states


def table(x, mask, noise, scale, mass, missed=1e-7):
    """(numbers (state, history), log joint (state), histories (history, row)); noise one or by column."""
    rows = len(x)
    rates = history_rates(rows, mass)
    kinds, rate = np.array([h for h, _ in rates]), np.array([r for _, r in rates])
    most = int(poisson.isf(missed, rate.sum())) + 1
    numbers = counts_up_to(len(rate), most).astype(float)
    logs = (numbers * np.log(rate) - rate - gammaln(numbers + 1)).sum(axis=1)
    shared = scale * np.einsum("sh,hn,hm->snm", numbers, kinds, kinds)
    return numbers, logs + _likelihood(x, mask, np.broadcast_to(noise, x.shape[1]), shared), kinds


def _likelihood(x, mask, noise, shared):
    """(state) log p(x | z), A integrated out: columns are normal with covariance noise I + scale Z Z'."""
    total = np.zeros(len(shared))
    for d in range(x.shape[1]):
        seen = np.flatnonzero(mask[:, d])
        if not seen.size:
            continue
        covariance = noise[d] * np.eye(seen.size) + shared[:, seen][:, :, seen]
        solved = np.linalg.solve(
            covariance, np.broadcast_to(x[seen, d][:, None], (len(shared), seen.size, 1))
        )
        quadratic = x[seen, d] @ solved[:, :, 0].T
        total -= 0.5 * (seen.size * np.log(2 * np.pi) + np.linalg.slogdet(covariance)[1] + quadratic)
    return total


def evidence(x, mask, noise, scale, mass, missed=1e-7):
    """log p(x)."""
    return float(logsumexp(table(x, mask, noise, scale, mass, missed)[1]))


def posterior(x, mask, noise, scale, mass, missed=1e-7):
    """(features of every kind (state, row, row_), number of features (state), singletons (state), chance
    (state)): all that `events` looks at, of every z."""
    numbers, logs, kinds = table(x, mask, noise, scale, mass, missed)
    common = np.einsum("sh,hn,hm->snm", numbers, kinds, kinds)
    alone = numbers[:, kinds.sum(axis=1) == 1].sum(axis=1)
    return common, numbers.sum(axis=1), alone, np.exp(logs - logsumexp(logs))


def facts(z):
    """The same of one draw z (feature, row)."""
    on = z.sum(axis=1)
    return z.T @ z, float((on > 0).sum()), float((on == 1).sum())


def events(common, features, alone, most=6):
    """(sample, event) zeros and ones: numbers of features, of singletons, of features a row has, of
    features that two rows share."""
    rows = common.shape[1]
    made = [features == k for k in range(most)] + [alone == k for k in range(most)]
    for n in range(rows):
        made.extend(common[:, n, m] == k for m in range(n + 1) for k in range(3))
    return np.array(made).T.astype(float)
