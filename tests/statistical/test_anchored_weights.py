"""The anchored sampler with normal weights visits every z as often as the exact posterior says.

Weights cannot be integrated out in closed form. Given who has what and the weights the dictionary can, so
p(x | z) is an average over weights drawn from their prior, for each of the tables of z that the prior makes
likely; that leaves the exact chances with errors far below those of the chain.
"""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine
from ibpdist.inference.gibbs import births
from ibpdist.inference.gibbs.anchors import joined
from tests.support import enumeration_infinite as exact
from tests.support.anchored_cases import after_flips, anchored, cut, step, whole
from tests.support.enumeration import batch_error
from tests.support.joint_infinite import Infinite
from tests.support.reference_evidence import history_rates

NOISE, SCALE, MASS, ROWS, COLUMNS = 0.5, 1.3, 0.6, 3, 2
MOST, LEAST, DRAWN = 6, 2e-6, 6000
"""Features of a table, chance of a table under the prior, weights that are drawn for it."""
SWEEPS, BATCHES = 4500, 40
"""Before a release twice as many sweeps."""


def data(masked):
    mask = np.ones((ROWS, COLUMNS), bool)
    mask[0, 1] = not masked
    return np.where(mask, np.random.default_rng(12).normal(size=(ROWS, COLUMNS)) * 1.6, 0.0), mask


def tables():
    """(numbers of features (table, history), log chance under the prior, histories (history, row))."""
    rates = history_rates(ROWS, MASS)
    kinds, rate = np.array([h for h, _ in rates]), np.array([r for _, r in rates])
    made = exact.counts_up_to(len(rate), MOST)
    logs = (made * np.log(rate) - rate - gammaln(made + 1)).sum(axis=1)
    likely = logs > np.log(LEAST)
    return made[likely], logs[likely], kinds


def log_likelihood(z, x, mask, rng):
    """log p(x | z) of z (row, feature), averaged over weights; columns are normal given these."""
    w = rng.normal(size=(DRAWN if z.shape[1] else 1, *z.shape))
    shared = SCALE * (z * w) @ (z * w).transpose(0, 2, 1)
    logs = np.zeros(len(w))
    for seen, column in zip(mask.T, x.T, strict=True):
        covariance = NOISE * np.eye(seen.sum()) + shared[:, seen][:, :, seen]
        given = np.broadcast_to(column[seen][:, None], (len(w), seen.sum(), 1))
        solved = np.linalg.solve(covariance, given)[:, :, 0]
        logs -= 0.5 * (np.linalg.slogdet(covariance)[1] + solved @ column[seen])
    return logsumexp(logs) - np.log(len(logs))


def chances(x, mask):
    """Of every event."""
    numbers, logs, kinds = tables()
    rng = np.random.default_rng(5)
    logs = logs + [log_likelihood(np.repeat(kinds, n, axis=0).T, x, mask, rng) for n in numbers]
    common = np.einsum("sh,hn,hm->snm", numbers, kinds, kinds)
    alone = numbers[:, kinds.sum(axis=1) == 1].sum(axis=1)
    return np.exp(logs - logsumexp(logs)) @ exact.events(common, numbers.sum(axis=1), alone)


def visited(joint, x, sweeps):
    """Events after the births and after the flips of every sweep but the first tenth, from no feature."""
    alg, chunks, draws = anchored(joint, births=2, turns=2), cut(joint.chunk(x), [1, ROWS - 1]), Draws(3)
    now = alg.init(combine(*(alg.summarise(c) for c in chunks)), draws)
    params, states = after_flips(alg, now.now, draws), [alg.start(c, now, draws) for c in chunks]
    kept = []
    for at in range(1, sweeps + 1):
        states, params, _ = step(alg, chunks, states, params, draws.at(2 * at))
        born = np.concatenate([joined(s.now, params, int(s.start), True).z for s in states], axis=1)
        states, params, _ = step(alg, chunks, states, params, draws.at(2 * at + 1))
        if at > sweeps // 10:
            kept.append((exact.facts(born), exact.facts(whole(states).z)))
    for half in zip(*kept, strict=True):
        yield exact.events(*(np.array(part) for part in zip(*half, strict=True)))


def farthest(masked, sweeps):
    """Largest distance of a frequency from its chance in standard errors, which are at least those of
    independent draws; after the births, and after the flips."""
    x, mask = data(masked)
    joint = Infinite("normal", NOISE, SCALE, MASS, mask if masked else None, rows=ROWS, columns=COLUMNS)
    expected = chances(x, mask)
    usual = np.minimum(expected, 1 - expected) > 0.01
    assert usual.sum() > 15
    for seen in visited(joint, x, sweeps):
        error = np.maximum(batch_error(seen, BATCHES), np.sqrt(expected * (1 - expected) / len(seen)))
        yield np.abs((seen.mean(axis=0) - expected) / error)[usual].max()


@pytest.mark.slow
@pytest.mark.parametrize("sweeps", [SWEEPS, pytest.param(2 * SWEEPS, marks=pytest.mark.long)])
@pytest.mark.parametrize("masked", [False, True])
def test_exact_posterior(masked, sweeps):
    """Births and flips each leave it as it is, so it is there after either."""
    assert max(farthest(masked, sweeps)) < 4.5


@pytest.mark.slow
def test_a_wrong_posterior_is_told_from_it(monkeypatch):
    """Features of a row alone are dropped, and births accepted from none (samplers.md 18)."""
    right = births.propose_marks
    monkeypatch.setattr(births, "propose_marks", lambda marks, *rest: np.array(right(np.zeros(0), *rest)))
    assert min(farthest(False, SWEEPS // 3)) > 6
