"""Draws of the beta process: against enumeration, by Geweke's test of the prior alone, with wrong ones."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import DRAW, Rule
from ibpdist.base.structs import replace
from ibpdist.model.model import CountModel
from ibpdist.model.observations.poisson import Poisson
from ibpdist.model.priors import _atom_draws, _atoms
from ibpdist.model.priors._atom_draws import AtomDraws
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors.beta_process import BetaProcess
from ibpdist.model.weights.gamma import Gamma
from tests.support import beta_process_reference as ref
from tests.support.beta_process_draws import exact_draw, weight_of

LAWS = ("exchangeable", "paper-exact")
every = pytest.mark.parametrize("round_prior", LAWS)
levels = pytest.mark.parametrize("mass", [1.3, "learn"])
SHAPE = 2.0
"""Of the priors of concentration and mass here; with that of the package most are too small to see."""


@pytest.fixture(autouse=True)
def _no_vague_levels(monkeypatch):
    monkeypatch.setattr(_atoms, "VAGUE", SHAPE)


def sums(on, rows):
    return PriorSums(on=np.asarray(on, float), rows=np.asarray(float(rows)))


def enumerated(on, rows, concentration, rounds, mass, round_prior):
    """(weight, E pi) of all ways to give rounds to atoms, decays and sticks integrated out."""

    def column(n1, r, more):
        rest = range(rows - n1 + 1)
        return sum(
            math.comb(rows - n1, j) * (-1) ** j * ref.moment(concentration, n1 + j + more, r) for j in rest
        )

    table = np.array([[[column(n1, r + 1, more) for r in range(rounds)] for n1 in on] for more in (0, 1)])
    for found in itertools.product(range(1, rounds + 1), repeat=len(on)):
        each = [table[:, k, r - 1] for k, r in enumerate(found)]
        weight = weight_of(found, mass, round_prior, SHAPE) * math.prod(one[0] for one in each)
        yield found, weight, np.array([one[1] / one[0] for one in each])


def looked_at(found, pi):
    return [*pi, *(r == 1 for r in found), *(r == 2 for r in found), max(found), found[0] == found[1]]


def expected_of(on, rows, concentrations, weights, *rest):
    """Means of what is looked at, over rounds and a grid of concentrations."""
    total, mean = 0.0, 0.0
    for concentration, share in zip(concentrations, weights, strict=True):
        for found, weight, pi in enumerated(on, rows, concentration, *rest):
            total += share * weight
            mean += share * weight * np.append(looked_at(found, pi), math.log(concentration))
    return mean / total


@every
@levels
@pytest.mark.parametrize("concentration", [1.7, "learn"])
@pytest.mark.parametrize(("on", "rounds"), [((6, 2, 0), 3), ((1, 0), 4)])
def test_draws_are_those_of_enumeration(round_prior, mass, concentration, on, rounds, monkeypatch):
    monkeypatch.setattr(_atom_draws, "SWEEPS", 4)
    rows, grid, share = 6, [concentration], [1.0]
    if concentration == "learn":
        grid = np.exp(np.linspace(np.log(1e-2), np.log(30), 60))
        share = stats.gamma.pdf(grid, SHAPE, scale=1 / SHAPE) * grid
    expected = expected_of(on, rows, grid, share, rounds, mass, round_prior)
    prior, rng = BetaProcess(mass, concentration, rounds, round_prior), np.random.default_rng(0)
    at, seen = prior.init(len(on), rows), []
    for _ in range(2400):
        at = prior.update(at, sums(on, rows), Rule.DRAW, rng)
        found = at.rounds.tolist()
        seen.append(np.append(looked_at(found, np.exp(at.log_on)), math.log(at.concentration)))
    blocks = np.array(seen).reshape(40, -1, len(expected)).mean(axis=1)
    error = np.maximum(blocks.std(axis=0, ddof=1) / math.sqrt(40), 1e-9)
    z = (blocks.mean(axis=0) - expected) / error
    assert np.abs(z).max() < 4.5, z


def plain_score(at, on, rows, mass, concentration, round_prior):
    """The log joint density as a loop; levels by the density of their logarithms."""
    total, c = 0.0, float(at.concentration)
    for d, t, (log_v, log_rest), n1 in zip(at.rounds, at.decay, at.stick, on, strict=True):
        pi = math.exp(log_v - t)
        total += n1 * math.log(pi) + (rows - n1) * math.log1p(-pi)
        total += stats.beta.logpdf(math.exp(log_v), 1, c)
        assert math.exp(log_v) + math.exp(log_rest) == pytest.approx(1.0, rel=1e-12)
        if d > 1:
            total += stats.gamma.logpdf(t, d - 1, scale=1 / c)
    rounds = at.rounds.tolist()
    total += len(rounds) * math.log(at.mass) - float(at.mass) * max(rounds) - ref.company(round_prior, rounds)
    for setting, value in ((mass, float(at.mass)), (concentration, c)):
        if setting == "learn":
            total += stats.gamma.logpdf(value, SHAPE, scale=1 / SHAPE) + math.log(value)
    return total


@every
@levels
@pytest.mark.parametrize("concentration", [1.7, "learn"])
def test_the_score_is_the_log_joint_density(round_prior, mass, concentration):
    prior, rng, on = BetaProcess(mass, concentration, 4, round_prior), np.random.default_rng(3), [5, 1, 0, 2]
    at = prior.init(4, 6)
    for _ in range(5):
        at = prior.update(at, sums(on, 6), Rule.DRAW, rng)
        expected = plain_score(at, on, 6, mass, concentration, round_prior)
        assert sum(prior.score(at, sums(on, 6)).values()) == pytest.approx(expected, rel=1e-10)


def test_a_draw_tells_its_own_rounds_and_prevalences():
    prior, order = BetaProcess(rounds=6), np.array([2, 0, 1])
    at = prior.update(prior.init(3, 40), sums([30, 4, 0], 40), Rule.DRAW, np.random.default_rng(0))
    told = prior.describe(at, order)
    np.testing.assert_array_equal(told["round_chance"][1].argmax(axis=1) + 1, at.rounds[order])
    np.testing.assert_array_equal(told["round_chance"][1].sum(axis=1), 1.0)
    np.testing.assert_array_equal(prior.expected(at), np.exp(at.log_on))
    np.testing.assert_allclose(np.exp(at.log_on), np.exp(at.stick[:, 0] - at.decay), rtol=1e-12)
    np.testing.assert_allclose(np.exp(at.log_on) + np.exp(at.log_off), 1.0, rtol=1e-12)
    kept = prior.select(at, np.array([2, 0]))
    np.testing.assert_array_equal(kept.log_on, at.log_on[[2, 0]])
    again = prior.update(kept, sums([1, 30], 40), Rule.DRAW, np.random.default_rng(1))
    assert prior.capacity(again) == 3
    assert again.log_on.shape == (2,)


def test_chains_do_not_begin_with_all_atoms_in_the_first_round(monkeypatch):
    """There the objective of the mean rule is highest for these counts, but the posterior is not there."""
    monkeypatch.setattr(_atoms, "VAGUE", 0.01)
    on = np.sort(1000 * np.random.default_rng(0).random(30) ** 3)[::-1].round()
    prior, rng = BetaProcess(), np.random.default_rng(0)
    blank = prior.init(30, 1000)
    one_round = replace(blank, chance=np.eye(50)[np.zeros(30, int)])
    assert one_round.prevalence == pytest.approx(blank.first[:, 0] / blank.first.sum(axis=1))
    at = prior.update(one_round, sums(on, 1000), Rule.DRAW, rng)
    last = []
    for _ in range(60):
        at = prior.update(at, sums(on, 1000), Rule.DRAW, rng)
        last.append(at.rounds.max())
    assert 2 <= np.mean(last) <= 5


@pytest.mark.parametrize("atoms", [1, 4])
@pytest.mark.parametrize("rounds", [1, 2, 50])
@pytest.mark.parametrize("rows", [0, 1, 10**6])
@every
def test_extremes(atoms, rounds, rows, round_prior, monkeypatch):
    """No row, one row, many; atoms that no row has, and atoms that all have; vague levels."""
    monkeypatch.setattr(_atoms, "VAGUE", 0.01)
    prior, rng = BetaProcess(rounds=rounds, round_prior=round_prior), np.random.default_rng(0)
    for on in (np.zeros(atoms), np.full(atoms, rows), rows * (np.arange(atoms) % 2)):
        at = prior.init(atoms, rows)
        for _ in range(20):
            at = prior.update(at, sums(on, rows), Rule.DRAW, rng)
            assert np.isfinite(list(prior.score(at, sums(on, rows)).values())).all()
            assert np.isfinite(prior.log_odds(at)).all()
            assert ((at.decay == 0) == (at.rounds == 1)).all()
            assert (at.rounds <= rounds).all()


def test_known_levels_stay():
    prior, rng = BetaProcess(mass=3.0, concentration=0.5), np.random.default_rng(0)
    at = prior.update(prior.init(3, 9), sums([7, 2, 0], 9), Rule.DRAW, rng)
    at = prior.update(at, sums([7, 2, 0], 9), Rule.DRAW, rng)
    assert (float(at.mass), float(at.concentration)) == (3.0, 0.5)


def test_the_bound_of_the_paper_is_no_prior_to_draw_from():
    assert BetaProcess().rules == {Rule.MEAN, Rule.DRAW}
    assert BetaProcess(round_prior="paper-markov").rules == {Rule.MEAN}
    model = "beta_process with round_prior=paper-markov: no update by draw; it knows mean"
    with pytest.raises(UsageError, match=model):
        CountModel(BetaProcess(round_prior="paper-markov"), Gamma(), Poisson(), DRAW)


ATOMS, ROUNDS, ROWS = 3, 4, 3


class Chain:
    """An exact draw of levels, rounds, decays, sticks and rows, and steps that draw them in turn."""

    def __init__(self, prior, rng):
        self.prior, self.rng = prior, rng
        self.at = exact_draw(prior, ATOMS, SHAPE, rng)
        self.on = self.rows()

    def rows(self):
        return self.rng.binomial(ROWS, np.exp(self.at.log_on))

    def step(self):
        self.at = self.prior.update(self.at, sums(self.on, ROWS), Rule.DRAW, self.rng)
        self.on = self.rows()

    def statistics(self):
        at, pi, rounds = self.at, np.exp(self.at.log_on), self.at.rounds
        level, mass = np.log(at.concentration), np.log(at.mass)
        decay, off = np.log1p(at.decay).sum(), np.log(-at.stick[:, 1]).sum()
        return {
            "on": self.on.sum(),
            "pi": pi.sum(),
            "pi sq": (pi**2).sum(),
            "pi and on": pi @ self.on,
            "rounds": rounds.sum(),
            "last": rounds.max(),
            "first": (rounds == 1).sum(),
            "together": rounds[0] == rounds[1],
            "rounds and on": rounds @ self.on,
            "decay": decay,
            "decay and round": np.log1p(at.decay) @ rounds,
            "stick": off,
            "c": level,
            "c sq": level**2,
            "c and decay": level * decay,
            "c and stick": level * off,
            "c and last": level * rounds.max(),
            "mass": mass,
            "mass and last": mass * rounds.max(),
        }


def z_scores(prior, chains, steps=3):
    changes = []
    for chain in range(chains):
        state = Chain(prior, np.random.default_rng([1, chain]))
        first = state.statistics()
        for _ in range(steps):
            state.step()
        last = state.statistics()
        changes.append([float(last[name]) - float(first[name]) for name in first])
    table = np.array(changes)
    moved = table.std(axis=0) > 1e-9
    z = table.mean(axis=0)[moved] / (table.std(axis=0)[moved] / np.sqrt(chains))
    return dict(zip(np.array(list(first))[moved].tolist(), z.tolist(), strict=True))


@pytest.mark.slow
@every
@levels
@pytest.mark.parametrize("concentration", [1.7, "learn"])
def test_a_draw_leaves_the_joint_law_as_it_is(round_prior, mass, concentration, monkeypatch):
    monkeypatch.setattr(_atom_draws, "SWEEPS", 2)
    found = z_scores(BetaProcess(mass, concentration, ROUNDS, round_prior), 6000)
    assert max(abs(z) for z in found.values()) < 4, found


def any_length(self, atoms):
    """As if any number of rounds were as likely."""
    return np.zeros(self.rounds)


def without_jacobian(self, seen):
    """As if densities of the concentration were those of its logarithm."""
    right = right_fixed(self, seen)
    return right._replace(shape=right.shape - 1)


def one_row_more(self, seen):
    return right_fixed(self, _atoms.Seen(seen.on, seen.rows + 1))


def paper_as_exchangeable(self, seen):
    return right_fixed(self, seen)._replace(law=_atoms.LAWS["exchangeable"])


right_fixed = AtomDraws._fixed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "wrong", "round_prior"),
    [
        ("length", any_length, "exchangeable"),
        ("_fixed", without_jacobian, "exchangeable"),
        ("_fixed", one_row_more, "exchangeable"),
        ("_fixed", paper_as_exchangeable, "paper-exact"),
    ],
)
def test_wrong_draws_do_not(name, wrong, round_prior, monkeypatch):
    monkeypatch.setattr(_atom_draws, "SWEEPS", 2)
    monkeypatch.setattr(AtomDraws, name, wrong)
    found = z_scores(BetaProcess("learn", "learn", ROUNDS, round_prior), 6000)
    assert max(abs(z) for z in found.values()) > 6, found
