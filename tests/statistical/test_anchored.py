"""The anchored sampler is exact: Geweke joint tests, exact posteriors, and samplers wrong on purpose.

A wrong one must be caught at the length at which the right one passes.
"""

import dataclasses

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs import anchored as module
from ibpdist.inference.gibbs import births, xor
from ibpdist.inference.gibbs.anchored import Anchored
from ibpdist.inference.gibbs.anchors import Phase
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.buffet import Buffet
from ibpdist.model.weights._base import Slab
from ibpdist.model.weights.laplace import Laplace
from ibpdist.model.weights.normal import Normal
from ibpdist.model.weights.unit import Unit
from tests.support import enumeration_infinite as exact
from tests.support.anchored_cases import after_flips, anchored, cut, step, transition, whole
from tests.support.enumeration import batch_error
from tests.support.geweke import scattered_mask
from tests.support.joint_infinite import Infinite, same_priors, scores, worst
from tests.support.model_cases import begin

PASS, CAUGHT = 4.0, 6.0
CHAINS, SWEEPS, SIZES = 750, 5, [2, 1, 2]
"""Before a release twice as many chains must pass."""
STEPS = 8000
"""Of a chain that is compared with an exact posterior; before a release twice as many."""
slow = [pytest.mark.slow, pytest.mark.timeout(1200)]


FIXED = Infinite(noise=0.5, scale=1.5, mass=1.0)
WEIGHTED = Infinite("normal", 0.5, 1.5, 1.0)
SEVERAL = Infinite(noise=0.5, scale=1.5, mass=3.0)
LAPLACE = Infinite("laplace", 0.5, 1.5, 1.0)
SYSTEMS = {
    "lg fixed": FIXED,
    "fa fixed": WEIGHTED,
    "lg": Infinite(),
    "fa": Infinite("normal"),
    "lg column noise": Infinite(noise="column"),
    "fa column noise": Infinite("normal", "column"),
    "lg several": SEVERAL,
    "lg masked": Infinite(mask=scattered_mask(5)),
    "fa masked column noise": Infinite("normal", "column", mask=scattered_mask(5)),
    "lg rows": Infinite(mask=scattered_mask(5), missing="rows"),
    "fa rows column noise": Infinite("normal", "column", mask=scattered_mask(5), missing="rows"),
    "lg several intercept": Infinite(noise=0.5, scale=1.5, mass=3.0, intercept=True),
    "fa intercept": Infinite("normal", "column", intercept=True),
    "fa masked intercept": Infinite("normal", "column", mask=scattered_mask(5), intercept=True),
    "fa means": Infinite("normal", mu="learn"),
    "fa fixed means": Infinite("normal", 0.5, 1.5, 1.0, mu="learn"),
    "fa masked means": Infinite("normal", "column", mask=scattered_mask(5), intercept=True, mu="learn"),
    "fa one mean": Infinite("normal", mu=1.5),
    "fa fixed uneven rows": Infinite("normal", 0.5, 1.5, 1.0, row_noise="learn"),
    "fa all": Infinite("normal", "column", intercept=True, mu="learn", row_noise="learn"),
    "fa all masked": Infinite(
        "normal", "column", mask=scattered_mask(5), intercept=True, mu="learn", row_noise="learn"
    ),
    "fa all rows": Infinite(
        "normal",
        "column",
        mask=scattered_mask(5),
        missing="rows",
        intercept=True,
        mu="learn",
        row_noise="learn",
    ),
    "ica fixed": LAPLACE,
    "ica": Infinite("laplace"),
    "ica masked column noise": Infinite("laplace", "column", mask=scattered_mask(5)),
    "lg rows intercept": Infinite(mask=scattered_mask(5), missing="rows", intercept=True),
}


def run(joint, monkeypatch, chains=CHAINS, sweeps=SWEEPS, more=0, **settings):
    same_priors(joint, monkeypatch)
    moved = transition(anchored(joint, **settings), SIZES, more)
    return scores(joint, moved, chains, sweeps, seed=5)


@pytest.mark.parametrize("name", ["lg", "fa masked column noise", "lg rows", "fa all rows", "ica"])
def test_sampler_in_short(name, monkeypatch):
    """A hundred chains: catches gross faults every day."""
    said, size = worst(run(SYSTEMS[name], monkeypatch, 100, 2))
    assert size < PASS, said


class TestAtLength:
    pytestmark = slow

    @pytest.mark.parametrize("name", ["lg", "lg several", "lg masked", "fa masked column noise", "ica"])
    def test_sampler(self, name, monkeypatch):
        said, size = worst(run(SYSTEMS[name], monkeypatch))
        assert size < PASS, said

    def test_sampler_of_all(self, monkeypatch):
        said, size = worst(run(SYSTEMS["fa all masked"], monkeypatch, CHAINS // 2))
        assert size < PASS, said

    @pytest.mark.long
    @pytest.mark.parametrize("name", SYSTEMS)
    def test_every_system(self, name, monkeypatch):
        said, size = worst(run(SYSTEMS[name], monkeypatch, 2 * CHAINS))
        assert size < PASS, said

    @pytest.mark.long
    @pytest.mark.parametrize("settings", [{"inner": 3}, {"turns": 1}, {"births": 1, "turns": 2}])
    def test_settings(self, settings, monkeypatch):
        said, size = worst(run(SYSTEMS["fa"], monkeypatch, 2 * CHAINS, **settings))
        assert size < PASS, said


# --- wrong on purpose ---


def no_anchors(monkeypatch):
    """Every row flips every feature, so that features empty anywhere and are dropped; births are right."""

    def open_to_all(log_odds, first, order, made):
        made[:] = log_odds[:, None]

    right = Buffet.update
    monkeypatch.setattr(module, "frozen", open_to_all)
    monkeypatch.setattr(  # of features that are empty already; not used before they are dropped
        Buffet, "update", lambda self, p, s, *rest: right(self, p, replace(s, on=np.maximum(s.on, 1)), *rest)
    )


def designated(monkeypatch):
    """The same, with births in the rows of one worker alone, at the rate of all."""
    no_anchors(monkeypatch)
    right = births.row_changes

    def one_worker(chunk, state, now, law, turns, draws):
        return right(chunk, state, now, law, turns, draws) if chunk.index == 1 else ()

    monkeypatch.setattr(module, "row_changes", one_worker)


def odds_of_one_row_less(monkeypatch):
    """pi given the counts as if there were one row less: odds m / (N - 1)."""
    right = Buffet.update

    def wrong(self, params, sums, rule, rng):
        fewer = replace(sums, rows=np.maximum(sums.rows - 1, sums.on.max(initial=0) - 0.9))
        return right(self, params, fewer, rule, rng)

    monkeypatch.setattr(Buffet, "update", wrong)


def dropped_first(monkeypatch):
    """Singletons are dropped, and births accepted from none (samplers.md 18)."""
    right = births.propose_marks
    monkeypatch.setattr(births, "propose_marks", lambda marks, *rest: np.array(right(np.zeros(0), *rest)))


def even_chances(monkeypatch):
    """Births and deaths accepted as if a turn offered either with the same chance."""
    right = births.propose_marks

    def wrong(marks, rest, noise, law, numbers):
        even = dataclasses.replace(law, offer=0.5)
        numbers = numbers.copy()
        numbers[:, 0] = np.where(numbers[:, 0] < law.offer, 0.1, 0.9)
        return right(marks, rest, noise, even, numbers)

    monkeypatch.setattr(births, "propose_marks", wrong)


def free_anchors(monkeypatch):
    """Anchors keep their 1, but rows ahead of them flip too."""
    right = module.frozen

    def wrong(log_odds, first, order, made):
        right(log_odds, first, order, made)
        made[:] = np.where(np.isneginf(made), log_odds[:, None], made)

    monkeypatch.setattr(module, "frozen", wrong)


def forgetful_tries(monkeypatch):
    """Pairs of features are tried without the prior of who has what."""
    monkeypatch.setattr(xor, "betaln", lambda on, off: 0.0 * on)


def tries_before_flips(monkeypatch):
    """The sums of the columns that pairs would make are those of the rows before they flip."""
    right = module.Anchored._flips

    def wrong(self, chunk, state, params, draws):
        made, sums = right(self, chunk, state, params, draws)
        old = xor.xor_sums(chunk, state.z, params.pairs, params.now.observation.group)
        return made, replace(sums, xors=old)

    monkeypatch.setattr(module.Anchored, "_flips", wrong)


def births_without_intercept(monkeypatch):
    """Rows are taken from zero where features are born."""
    right = births.row_changes

    def wrong(chunk, state, now, law, turns, draws):
        return right(chunk, state, now, dataclasses.replace(law, base=0 * law.base), turns, draws)

    monkeypatch.setattr(module, "row_changes", wrong)


def tries_without_intercept(monkeypatch):
    """The number of rows that have the column of a pair is not what the intercept is integrated with."""
    right = xor.FeatureSums.with_column

    def wrong(self, k, xors, pair):
        made = right(self, k, xors, pair)
        return replace(made, sums=dataclasses.replace(made.sums, first=self.sums.first))

    monkeypatch.setattr(xor.FeatureSums, "with_column", wrong)


def newborn_marks_of_mean_zero(monkeypatch):
    """Newborns have weights of mean zero, though their means are drawn."""
    monkeypatch.setattr(Normal, "newborn", lambda self, uniforms: Slab(0 * uniforms))


def newborn_means_of_the_other_sign(monkeypatch):
    """The means of newborns are drawn as if their marks had the other sign."""
    right = Normal.drawn

    def wrong(self, slab, sums, rng):
        sign = 1 if np.any(sums.cost) else -1
        return right(self, slab, dataclasses.replace(sums, first=sign * sums.first), rng)

    monkeypatch.setattr(Normal, "drawn", wrong)


def large_marks(monkeypatch):
    """Newborns have marks that are three times as large as their law says."""
    right = Laplace.sample
    monkeypatch.setattr(Laplace, "sample", lambda self, *given: 3 * right(self, *given))


def births_in_even_rows(monkeypatch):
    """Features are born as if all rows were as noisy as the typical one."""
    monkeypatch.setattr(births.BirthPrior, "of_row", lambda self, state, place: self)


HALF = {"chains": CHAINS // 2}
WRONG = [
    (designated, FIXED, {"more": 1} | HALF),
    (no_anchors, FIXED, {"more": 1} | HALF),
    (odds_of_one_row_less, FIXED, {}),
    (dropped_first, FIXED, {"turns": 1} | HALF),
    (dropped_first, WEIGHTED, {"turns": 1} | HALF),
    (even_chances, FIXED, {"births": 1, "turns": 2} | HALF),
    (free_anchors, FIXED, {}),
    (forgetful_tries, SEVERAL, HALF),
    (tries_before_flips, SEVERAL, HALF),
    (newborn_marks_of_mean_zero, SYSTEMS["fa fixed means"], {}),
    (newborn_means_of_the_other_sign, SYSTEMS["fa fixed means"], {}),
    (large_marks, LAPLACE, {}),
    (dropped_first, LAPLACE, {"turns": 1} | HALF),
    (births_in_even_rows, SYSTEMS["fa fixed uneven rows"], {}),
    (births_without_intercept, SYSTEMS["fa intercept"], HALF),
    (tries_without_intercept, SYSTEMS["lg several intercept"], HALF),
]


class TestWrong:
    pytestmark = slow

    @pytest.mark.parametrize(("wrong", "joint", "how"), WRONG)
    def test_a_wrong_sampler_is_caught(self, wrong, joint, how, monkeypatch):
        wrong(monkeypatch)
        said, size = worst(run(joint, monkeypatch, **how))
        assert size > CAUGHT, said

    def test_what_makes_designated_workers_wrong_is_not_the_counting(self, monkeypatch):
        """With anchors, a count of the rows after each sweep changes nothing."""
        said, size = worst(run(FIXED, monkeypatch, more=1))
        assert size < PASS, said


# --- exact posteriors ---


def chain(joint, x, steps, seed=0):
    """`events` of every sweep after a tenth, from no feature."""
    alg, chunk = anchored(joint), Chunk(0, 0, x, joint.mask)
    chunks, draws = cut(chunk, [1, len(x) - 1]), Draws(seed)
    now = alg.init(alg.summarise(chunk), draws)
    assert now.phase == Phase.COUNT
    params = after_flips(alg, now.now, draws)
    states, kept = [alg.start(c, now, draws) for c in chunks], []
    for at in range(1, steps + 1):
        for phase in (2 * at, 2 * at + 1):
            states, params, _ = step(alg, chunks, states, params, draws.at(phase))
        if at > steps // 10:
            kept.append(exact.facts(whole(states).z))
    common, features, alone = (np.array(column) for column in zip(*kept, strict=True))
    return exact.events(common, features, alone)


def farthest(rows, masked, steps, seed=1):
    """Largest distance of a frequency from the exact probability, in standard errors, which are at least
    those of independent draws."""
    mask = np.ones((rows, 2), bool)
    if masked:
        mask[0, 1] = mask[rows - 1, 0] = False
    x = np.where(mask, np.random.default_rng(4).normal(size=(rows, 2)) * 1.5, 0.0)
    joint = Infinite(noise=0.5, scale=1.3, mass=0.5, mask=mask if masked else None, rows=rows, columns=2)
    common, features, alone, chance = exact.posterior(x, mask, 0.5, 1.3, 0.5, 1e-6)
    expected = chance @ exact.events(common, features, alone)
    seen = chain(joint, x, steps, seed)
    usual = np.minimum(expected, 1 - expected) > 0.01
    error = np.maximum(batch_error(seen), np.sqrt(expected * (1 - expected) / len(seen)))
    return np.abs((seen.mean(axis=0) - expected) / error)[usual].max()


def test_exact_posterior_in_short():
    assert farthest(3, masked=False, steps=1500) < 4.5


class TestExact:
    pytestmark = slow

    @pytest.mark.parametrize("steps", [STEPS, pytest.param(2 * STEPS, marks=pytest.mark.long)])
    @pytest.mark.parametrize("masked", [False, True])
    @pytest.mark.parametrize("rows", [2, 3, 4])
    def test_exact_posterior(self, rows, masked, steps):
        assert farthest(rows, masked, steps) < 4.5

    def test_a_wrong_posterior_is_told_from_it(self, monkeypatch):
        dropped_first(monkeypatch)
        assert farthest(3, masked=False, steps=STEPS) > 6


# --- from nothing ---


def planted(rows, noise, seed=0):
    """x, and who has which of twelve features with what they look like."""
    rng = np.random.default_rng(seed)
    z = rng.random((12, rows)) < 0.3
    a = rng.normal(size=(12, 64))
    return (z.T @ a + noise * rng.normal(size=(rows, 64))).astype(np.float32), z, a


def ended(chunks, seed, steps, truth=None):
    """(step, 2) features that more than 20 rows have and log joint, over the last sixth of a chain that
    starts at the truth, or from no feature."""
    alg = Anchored(Model(Buffet(), Unit(), Gaussian(), DRAW), 12 if truth else 0)
    params, states, draws = begin(alg, chunks, seed)
    if truth:
        z, a = truth
        params = alg.initial(replace(params.now, observation=replace(params.now.observation, mean=a)))
        held = [z[:, c.start : c.start + c.rows].astype(np.float32) for c in chunks]
        states = [replace(s, now=replace(s.now, z=part)) for s, part in zip(states, held, strict=True)]
    kept = []
    for at in range(1, steps + 1):
        states, params, info = step(alg, chunks, states, params, draws.at(at))
        if at > steps - steps // 6:
            kept.append(((params.now.on > 20).sum(), info.objective))
    return np.array(kept)


class TestFromNothing:
    pytestmark = slow

    def test_reaches_what_a_chain_from_the_truth_has(self):
        """Two of three chains at least: rows flip one entry at a time, which can get stuck. One draw in ten
        has a thirteenth feature in more than 20 rows, also from the truth."""
        x, *truth = planted(2000, 2.5)
        chunks = cut(Chunk(0, 0, x), [700, 700, 600])
        known = np.concatenate([ended(chunks, seed, 150, truth) for seed in range(5)])
        assert np.median(known[:, 0]) == 12
        reached = 0
        for seed in (1, 2, 3):
            found = ended(chunks, seed, 600)
            spread = known[:, 1].std() + found[:, 1].std()
            near = abs(found[:, 1].mean() - known[:, 1].mean()) < 4 * spread
            reached += bool(np.median(found[:, 0]) == 12 and near)
        assert reached >= 2
