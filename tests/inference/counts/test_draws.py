"""Draws of the features of counts: Geweke's joint test of a whole step, and chains as users run them."""

from functools import cache

import numpy as np
import pytest
from scipy.special import gammaln

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import replace
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.inference.counts import draws as algorithm
from ibpdist.inference.counts.draws import TokenDrawRowState, TokenDraws, hand_tokens, log_words
from ibpdist.inference.counts.means import TokenMeans
from ibpdist.model.model import CountModel
from ibpdist.model.observations.poisson import Poisson
from ibpdist.model.priors import _atom_draws, _atoms
from ibpdist.model.priors._atom_draws import BetaProcessDraw
from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
from ibpdist.model.priors.beta_process import BetaProcess
from ibpdist.model.weights.gamma import Gamma
from tests.support.beta_process_draws import exact_draw
from tests.support.model_cases import begin, chunked, problem_of, steps_of, sweep
from tests.support.planted_counts import planted_counts

ROWS, COLUMNS, FEATURES = 4, 3, 2
LEAST_ETA, MOST_ETA = 0.3, 3.0


SHAPE = 2.0
"""Of the priors of the levels of the beta process here; with vague ones most are too small to see."""


def finite(params, rng):
    """Mass and prevalences of K features."""
    mass = rng.exponential(1.0)
    on = FEATURES / mass * np.log(rng.random(FEATURES))
    off = np.log(-np.expm1(on))
    return replace(params, log_on=on, log_off=off, mass=np.asarray(mass), tau=np.ones((2, 2)))


def of_atoms(params, rng):
    """Everything of a beta process."""
    return exact_draw(BetaProcess(rounds=3), FEATURES, SHAPE, rng)


PRIORS = {"finite": (BetaBernoulli(), finite), "beta process": (BetaProcess(rounds=3), of_atoms)}
"""Of each prior an exact draw."""


@cache
def begun(prior):
    """The sampler, and its parameters before a chain begins."""
    model = CountModel(PRIORS[prior][0], Gamma(), Poisson("learn"), DRAW)
    found = TokenDraws(model, FEATURES)
    return found, found.init(found.summarise(Chunk(0, 0, np.ones((ROWS, COLUMNS)))), Draws(0))


class Chain:
    """One chain from an exact draw of everything."""

    def __init__(self, prior, seed, chain):
        self.rng, self.draws = np.random.default_rng([seed, chain]), Draws(seed, 0, chain)
        rng, (self.alg, params) = self.rng, begun(prior)
        prior = PRIORS[prior][1](params.prior, rng)
        eta = np.exp(rng.uniform(np.log(LEAST_ETA), np.log(MOST_ETA)))
        phi = rng.dirichlet(np.full(COLUMNS, eta), FEATURES).T
        shape = rng.gamma(algorithm.SHAPE_SHAPE, 1 / algorithm.SHAPE_RATE, FEATURES)
        self.params = replace(params, prior=prior, phi=phi, shape=shape, eta=np.asarray(eta))
        self.rate = rng.gamma(algorithm.RATE_SHAPE, 1 / algorithm.RATE_RATE, ROWS)
        self.z = rng.random((ROWS, FEATURES)) < np.exp(prior.log_on)
        self.data()

    def data(self):
        """Weights given z, shapes and rates, and tokens given those."""
        w = self.z * self.rng.gamma(self.params.shape, 1 / self.rate[:, None], (ROWS, FEATURES))
        y = self.rng.poisson(np.minimum(w, 1e6)[:, None, :] * self.params.phi)
        self.y, self.x = y.sum(axis=1), y.sum(axis=2)

    def step(self, number):
        chunk = Chunk(0, 0, self.x.astype(float))
        rows = TokenDrawRowState(self.y, self.z, self.rate)
        at = self.draws.at(number)
        rows, sums = self.alg.local(chunk, rows, self.params, at)
        self.params, _ = self.alg.update(self.params, sums, at)
        self.z, self.rate = rows.z, rows.rate
        self.again(rows.y)

    def again(self, y):
        """Weights given tokens, with the new shapes, and then tokens given weights."""
        shape = self.params.shape
        w = self.z * self.rng.gamma(shape + y, 1 / (1 + self.rate[:, None]))
        tokens = self.rng.poisson(np.minimum(w, 1e6)[:, None, :] * self.params.phi)
        self.y, self.x = tokens.sum(axis=1), tokens.sum(axis=2)

    def statistics(self):
        phi, shape, eta = np.sort(self.params.phi, axis=0), self.params.shape, float(self.params.eta)
        some, level = np.log1p(self.x.sum(axis=1)), np.log(self.rate)
        prior = self.params.prior
        atoms = {}
        if isinstance(prior, BetaProcessDraw):
            c = np.log(prior.concentration)
            atoms = {"c": c, "c and z": c * self.z.sum(), "rounds and z": prior.rounds @ self.z.sum(axis=0)}
        return atoms | {
            "z": self.z.sum(),
            "log eta": np.log(eta),
            "log eta sq": np.log(eta) ** 2,
            "eta and words": np.log(eta) * (phi**2).sum(),
            "words": (phi**2).sum(),
            "log r": np.log(shape).sum(),
            "log r sq": (np.log(shape) ** 2).sum(),
            "r and tokens": np.log(shape) @ np.log1p(self.y.sum(axis=0)),
            "r and c": np.log(shape).sum() * level.sum(),
            "log c": level.sum(),
            "tokens": some.sum(),
            "c and tokens": level @ some,
            "mass": np.log1p(float(self.params.prior.mass)),
            "mass and z": np.log1p(float(self.params.prior.mass)) * self.z.sum(),
            "pi and z": np.exp(self.params.prior.log_on) @ self.z.sum(axis=0),
        }


def z_scores(monkeypatch, prior="finite", chains=2500, steps=4, seed=0):
    monkeypatch.setattr(algorithm, "ETAS", (LEAST_ETA, MOST_ETA))
    monkeypatch.setattr(_atoms, "VAGUE", SHAPE)
    monkeypatch.setattr(_atom_draws, "SWEEPS", 2)
    changes = []
    for chain in range(chains):
        state = Chain(prior, seed, chain)
        first = state.statistics()
        for number in range(1, steps + 1):
            state.step(number)
        last = state.statistics()
        changes.append([last[name] - first[name] for name in first])
    table = np.array(changes, dtype=float)
    return dict(zip(first, table.mean(axis=0) / (table.std(axis=0) / np.sqrt(chains)), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS)
def test_a_step_leaves_the_joint_law_as_it_is(prior, monkeypatch):
    found = z_scores(monkeypatch, prior)
    assert max(abs(z) for z in found.values()) < 4, found


def shapes_by_rows(self, params, sums, draws):
    """As if every row with the feature were a table."""
    found = draws.generator("shapes").standard_gamma(1.0 + sums.on)
    return np.maximum(found / (1.0 + sums.exposed), 1e-300)


def words_without_totals(some, times, totals, columns, eta):
    return float(times @ (gammaln(some + eta) - gammaln(eta)))


def one_row_more(self, at, seen, rng):
    return right_draw(self, at, _atoms.Seen(seen.on, seen.rows + 1), rng)


right_draw = _atom_draws.AtomDraws.draw


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "place", "name", "wrong"),
    [
        ("finite", TokenDraws, "_drawn_shapes", shapes_by_rows),
        ("finite", algorithm, "log_words", words_without_totals),
        ("beta process", _atom_draws.AtomDraws, "draw", one_row_more),
    ],
)
def test_wrong_steps_do_not(monkeypatch, prior, place, name, wrong):
    monkeypatch.setattr(place, name, wrong)
    found = z_scores(monkeypatch, prior, chains=1000)
    assert max(abs(z) for z in found.values()) > 6, found


every = pytest.mark.parametrize("system", ["counts-gibbs-finite", "counts-gibbs-beta-process"])


def test_the_law_of_words_is_that_of_tokens_one_by_one():
    y, eta = np.random.default_rng(0).poisson(1.0, (5, 3)).astype(float), 0.3
    expected = 0.0
    for k in range(3):
        seen = np.zeros(5)
        for v in range(5):
            for _ in range(int(y[v, k])):
                expected += np.log((seen[v] + eta) / (seen.sum() + 5 * eta))
                seen[v] += 1
    some, times = np.unique(y[y > 0], return_counts=True)
    assert log_words(some, times, y.sum(axis=0), 5, eta) == pytest.approx(expected, rel=1e-12)


@every
def test_the_log_joint_density_is_that_of_plain_loops(system):
    x, _ = problem_of(system, 2, 6, 4)
    alg, chunks = build(system, 3, settings={"start": "random"}), chunked(x)
    params = alg.init(alg.summarise(chunks[0]), Draws(1))
    states, sums = sweep(alg, chunks, [alg.start(chunks[0], params, Draws(1))], params, Draws(1, 1))
    _, info = alg.update(params, sums, Draws(1, 1))
    rows, expected = states[0], 0.0
    for n in range(6):
        c = rows.rate[n]
        expected += np.log(algorithm.RATE_RATE) - algorithm.RATE_RATE * c
        for k in range(3):
            r, y = params.shape[k], rows.y[n, k]
            if rows.z[n, k]:
                expected += gammaln(r + y) - gammaln(r) + r * np.log(c / (1 + c)) - y * np.log(1 + c)
    assert info.terms["weights"] == pytest.approx(expected, rel=1e-10)
    assert info.terms["likelihood"] == pytest.approx((sums.y * np.log(params.phi)).sum())


@every
def test_rows_have_the_same_bits_in_any_chunk(system):
    x, *_ = planted_counts(rows=20)
    alg = build(system, 4, settings={"start": "random"})
    whole, parts = chunked(x.astype(float)), chunked(x.astype(float), sizes=[3, 17])
    params = alg.init(alg.summarise(whole[0]), Draws(1))
    one, sums = sweep(alg, whole, [alg.start(c, params, Draws(1)) for c in whole], params, Draws(1, 1))
    some, added = sweep(alg, parts, [alg.start(c, params, Draws(1)) for c in parts], params, Draws(1, 1))
    np.testing.assert_array_equal(one[0].y, np.concatenate([state.y for state in some]))
    np.testing.assert_array_equal(sums.y, added.y)
    assert (one[0].y.sum(axis=1) == x.sum(axis=1)).all()


@every
def test_the_fit_before_a_chain_hands_its_tokens_over(system):
    x, *_ = planted_counts(rows=30)
    alg, chunks = build(system, 4, burn=20), chunked(x.astype(float))
    assert alg.steps == 10
    assert isinstance(alg.fit, TokenMeans)
    assert alg.fit.model.prior == alg.sampler.model.prior
    *_, (_, (before, old), after, _, _, _) = steps_of(alg, chunks, *begin(alg, chunks), alg.steps + 1)
    handed = hand_tokens(alg.fit, chunks[0], before[0], old.fit, Draws(0))
    assert abs(handed.y - before[0].y).max() <= 0.5
    assert (handed.z == (handed.y > 0)).all()
    assert (after[0].y.sum(axis=1) == x.sum(axis=1)).all()


@every
def test_chains_find_planted_features_and_tell_eta(system):
    x, words, _ = planted_counts(rows=150)
    found = ibp.fit(x, system=system, K=6, seed=1, steps=60, chains=2, serial=True)
    assert found["posterior"].sizes == {"chain": 2, "draw": 30}
    assert {"eta", "mass", "log_joint"} <= set(found["posterior"].data_vars)
    assert {"tokens", "weight_shape", "mean"} <= set(found["draws"].data_vars)
    assert "noise" not in found["draws"]
    np.testing.assert_allclose(found["draws"]["tokens"].sum("place"), x.sum())
    means = found["draws"]["mean"].isel(chain=0, draw=-1).values
    distance = np.abs(words[:, None] - means).sum(axis=2) / 2
    assert np.median(distance.min(axis=1)) < 0.2


@every
def test_eta_and_shapes_stay_where_they_are_given(system):
    x, *_ = planted_counts(rows=40)
    options = {"system": system, "K": 3, "steps": 8, "serial": True}
    found = ibp.fit(x, eta=0.2, shape=0.7, **options)
    assert (found["draws"]["eta"] == 0.2).all()
    assert (found["draws"]["weight_shape"] == 0.7).all()
