"""The beta process against plain loops, enumeration and sampling."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.kernels import rounds as kernel
from ibpdist.model.priors import _atoms
from ibpdist.model.priors._atoms import Atoms, Level, Process, Seen
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.priors.beta_process import BetaProcess, _with, seen_atoms
from tests.support import beta_process_reference as ref

ROUND_PRIORS = ("exchangeable", "paper-exact", "paper-markov")
ON, ROWS = np.array([7.0, 2.5, 0.0]), 9.0
CONCENTRATION, MASS = np.array([4.0, 2.5]), np.array([3.0, 2.0])
every = pytest.mark.parametrize("round_prior", ROUND_PRIORS)
both = pytest.mark.parametrize("shared", [False, True], ids=["two", "shared"])


def atoms_of(seed=0, count=3, rounds=4, shared=False):
    rng = np.random.default_rng(seed)
    later = rng.uniform(0.6, 6.0, (count, 2))
    return Atoms(
        chance=rng.dirichlet(np.ones(rounds), count),
        first=later if shared else rng.uniform(0.6, 6.0, (count, 2)),
        later=later,
        decay=rng.uniform(0.6, 6.0, (count, 2)),
    )


def process(round_prior, shared=False):
    return Process(Level.of(CONCENTRATION), Level.of(MASS), round_prior, shared)


def state(atoms):
    return {name: getattr(atoms, name) for name in ("chance", "first", "later", "decay")}


COUNTS = list(zip(ON, ROWS - ON, strict=True))
LEVELS = ref.level(CONCENTRATION), ref.level(MASS)


def reference(atoms, round_prior):
    return ref.objective(state(atoms), COUNTS, *LEVELS, round_prior)


def value(atoms, round_prior):
    levels, seen = atoms.log_prevalence(), Seen(ON, ROWS)
    own = process(round_prior).score(atoms)
    return float(seen.on @ levels[:, 0] + seen.off @ levels[:, 1]) + sum(own.values())


@every
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_is_that_of_plain_loops(round_prior, seed):
    atoms = atoms_of(seed)
    assert value(atoms, round_prior) == pytest.approx(reference(atoms, round_prior), rel=1e-8)


@every
def test_the_objective_is_the_expectation_that_it_claims_to_be(round_prior):
    """E[log p - log q] by drawing from q, where an atom of the first round has no decay."""
    atoms = atoms_of(5)
    if round_prior == "paper-markov":
        mean, error = ref.sampled_bound(
            state(atoms), COUNTS, *LEVELS, "paper-exact", 100_000, np.random.default_rng(0)
        )
        assert value(atoms, round_prior) < mean - 4 * error, "it bounds the exact one from below"
        return
    mean, error = ref.sampled_bound(
        state(atoms), COUNTS, *LEVELS, round_prior, 100_000, np.random.default_rng(0)
    )
    assert abs(value(atoms, round_prior) - mean) < 4.5 * error


@every
def test_rounds_are_the_optimum_of_each_atom_in_turn(round_prior):
    atoms = atoms_of(1)
    expected = {**state(atoms), "chance": atoms.chance.copy()}
    for k in np.argsort(-ON):
        best = ref.best_rounds(k, expected, COUNTS, *LEVELS, round_prior)
        expected["chance"][k] = best
    found = process(round_prior).rounds(atoms, Seen(ON, ROWS))
    np.testing.assert_allclose(found.chance, expected["chance"], rtol=1e-7)


def test_the_printed_update_of_rounds_is_lower():
    """The paper's S_k lacks the factor 2: the objective with its own bound ends below."""
    atoms, seen = atoms_of(1), Seen(ON, ROWS)
    right = process("paper-markov").rounds(atoms, seen)
    own = process("paper-markov")._own(atoms, seen)
    chance = atoms.chance.copy()
    for k in np.argsort(-ON):
        others = chance.sum(axis=0) - chance[k]
        tried = own[k] - kernel.SECOND * others
        for r in range(1, 4):
            below = np.prod(np.delete(np.cumsum(chance, axis=1)[:, :-1], k, axis=0), axis=0)
            tried[r] -= Level.of(MASS).mean * below[:r].sum()
        chance[k] = np.exp(tried - tried.max()) / np.exp(tried - tried.max()).sum()
    printed = replace(atoms, chance=chance)
    assert value(printed, "paper-markov") < value(right, "paper-markov") - 1e-3


@both
def test_sticks_and_decays_are_stationary(shared):
    """Of the reference, after enough turns, by finite differences and against another optimiser."""
    atoms, seen = atoms_of(2, shared=shared), Seen(ON, ROWS)
    for _ in range(60):
        atoms = process("exchangeable", shared).sticks(atoms, seen)

    def at(vector):
        later, decay = np.exp(vector[:6]).reshape(3, 2), np.exp(vector[6:12]).reshape(3, 2)
        first = later if shared else np.exp(vector[12:]).reshape(3, 2)
        return -reference(Atoms(atoms.chance, first, later, decay), "exchangeable")

    here = np.log(np.concatenate([x.ravel() for x in (atoms.later, atoms.decay, atoms.first)]))
    slope = [(at(here + e) - at(here - e)) / 2e-5 for e in 1e-5 * np.eye(12 if shared else 18, 18)]
    assert np.abs(slope).max() < 2e-4
    if shared:
        return

    def quick(vector):
        later, decay, first = np.exp(vector).reshape(3, 3, 2)
        return -value(Atoms(atoms.chance, first, later, decay), "exchangeable")

    other = minimize(quick, np.zeros(18), method="L-BFGS-B")
    assert quick(here) <= other.fun + 1e-6


def test_the_stick_of_the_first_round_is_conjugate():
    found = process("exchangeable").sticks(atoms_of(3), Seen(ON, ROWS))
    mean = Level.of(CONCENTRATION).mean
    np.testing.assert_allclose(found.first, np.stack([1 + ON, mean + ROWS - ON], axis=1), rtol=1e-12)


def test_laws_of_the_levels():
    atoms = atoms_of(4)
    found = atoms.level_laws()
    np.testing.assert_allclose(found, ref.level_laws(state(atoms), _atoms.VAGUE), rtol=1e-10)


@every
@both
@pytest.mark.parametrize("seed", range(2))
def test_no_block_lowers_the_objective(round_prior, shared, seed):
    """From any beginning and for counts of all kinds; the sum of the terms of the prior, block by block."""
    rng = np.random.default_rng(seed)
    on = 500 * rng.beta(0.3, 0.6, 12) * (rng.random(12) < 0.8)
    prior = BetaProcess(round_prior=round_prior, rounds=9, branches="shared" if shared else "two")
    given = PriorSums(on=on, rows=np.asarray(500.0))
    params, seen = prior.init(12, 500), Seen(on, 500.0)
    params = prior._begun(params, seen)
    for _ in range(8):
        for block in ("rounds", "sticks", "levels"):
            before = prior._total(params, seen)
            made = prior._process(params)
            if block == "levels":
                params = prior._with_laws(params, params.atoms.level_laws())
            else:
                params = _with(params, getattr(made, block)(params.atoms, seen))
            after = prior._total(params, seen)
            assert after >= before - 1e-9 * abs(before), block
    assert np.isfinite(sum(prior.score(params, given).values()))


def test_below_the_enumerated_evidence():
    """Whole counts of six rows, with given levels: the bound reaches most of the evidence and no more."""
    prior = BetaProcess(mass=1.4, concentration=1.7, rounds=4)
    for on in ([6, 2, 0], [1, 1, 1], [0, 0, 0], [5, 0, 3]):
        given = PriorSums(on=np.array(on, float), rows=np.asarray(6.0))
        made = prior.update(prior.init(3, 6), given, Rule.MEAN, np.random.default_rng(0))
        found = sum(prior.score(made, given).values())
        evidence = ref.log_evidence(on, 6, 1.7, 1.4, 4)
        assert evidence - 2.5 < found < evidence


def test_an_emptied_atom_stays():
    """Objectives with and without a feature that no row has are the same: K is a capacity."""
    prior = BetaProcess()
    given = PriorSums(on=np.array([200.0, 30.0, 0.0, 0.0]), rows=np.asarray(300.0))
    made = prior.update(prior.init(4, 300), given, Rule.MEAN, np.random.default_rng(0))
    fewer = PriorSums(on=given.on[:2], rows=given.rows)
    kept = prior.update(prior.select(made, np.arange(2)), fewer, Rule.MEAN, np.random.default_rng(0))
    assert prior.capacity(kept) == 4
    assert kept.log_on.shape == (2,)
    one, two = (sum(prior.score(*pair).values()) for pair in ((made, given), (kept, fewer)))
    assert one == pytest.approx(two, abs=1e-3)


def test_a_dropped_atom_is_as_one_that_no_row_has():
    prior = BetaProcess()
    given = PriorSums(on=np.array([200.0, 30.0, 90.0]), rows=np.asarray(300.0))
    made = prior.update(prior.init(3, 300), given, Rule.MEAN, np.random.default_rng(0))
    kept = prior.select(made, np.array([0, 2]))
    empty = np.setdiff1d(np.arange(3), kept.atom)
    assert kept.atoms.mean_prevalence()[empty] < 0.02
    fewer = PriorSums(on=given.on[[0, 2]], rows=given.rows)
    at_once = sum(prior.score(kept, fewer).values())
    solved = prior.update(kept, fewer, Rule.MEAN, np.random.default_rng(0))
    assert at_once <= sum(prior.score(solved, fewer).values()) < at_once + 20


def test_features_that_go_on_keep_their_atoms():
    """An ascent from nothing ends elsewhere; beside what was known, dropping a feature that no row has and
    making it anew changes nothing."""
    prior, rng = BetaProcess(), np.random.default_rng(0)
    on = np.sort(1000 * rng.random(30) ** 3)[::-1].copy()
    on[7] = 0.0
    given = PriorSums(on=on, rows=np.asarray(1000.0))
    made = prior.init(40, 1000)
    made = replace(made, atom=np.arange(30))
    for _ in range(6):
        made = prior.update(made, given, Rule.MEAN, rng)
    reached = sum(prior.score(made, given).values())
    places = np.append(np.delete(np.arange(30), 7), -1)
    again = prior.resized(made, 30, places)
    assert len(set(again.atom.tolist())) == 30
    moved = PriorSums(on=np.append(np.delete(on, 7), 0.0), rows=given.rows)
    found = sum(prior.score(prior.update(again, moved, Rule.MEAN, rng), moved).values())
    assert found == pytest.approx(reached, abs=0.5)
    twice = prior.resized(made, 3, np.array([4, 4, -1]))
    assert twice.atom[0] == made.atom[4]
    assert len(set(twice.atom.tolist())) == 3


@pytest.mark.parametrize("atoms", [1, 4])
@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("rows", [1, 5])
def test_small_sizes(atoms, rounds, rows):
    prior = BetaProcess(rounds=rounds)
    for on in (np.zeros(atoms), np.full(atoms, float(rows))):
        given = PriorSums(on=on, rows=np.asarray(float(rows)))
        made = prior.update(prior.init(atoms, rows), given, Rule.MEAN, np.random.default_rng(0))
        assert np.isfinite(list(prior.score(made, given).values())).all()
        assert np.isfinite(prior.log_odds(made)).all()


def test_fixed_levels_stay():
    prior = BetaProcess(mass=3.0, concentration=0.5)
    given = PriorSums(on=ON, rows=np.asarray(ROWS))
    made = prior.update(prior.init(3, 9), given, Rule.MEAN, np.random.default_rng(0))
    assert (float(made.mass), float(made.concentration)) == (3.0, 0.5)
    terms = prior.score(made, given)
    assert terms["mass"] == terms["concentration"] == 0.0


def test_two_branches_are_not_worse():
    given = PriorSums(on=np.array([900.0, 300.0, 20.0, 3.0, 0.0]), rows=np.asarray(1000.0))
    reached = {}
    for branches in ("two", "shared"):
        prior = BetaProcess(branches=branches, rounds=12, round_prior="paper-exact")
        made = prior.update(prior.init(5, 1000), given, Rule.MEAN, np.random.default_rng(0))
        reached[branches] = sum(prior.score(made, given).values())
    assert reached["two"] > reached["shared"]


def test_draws_have_the_moments_of_the_process():
    """One atom a round and 40 rounds: E pi of round r, and E pi^2."""
    prior, rng = BetaProcess(mass=2.0, concentration=1.5), np.random.default_rng(0)
    total = np.array([prior.sample(60, rng).sum() for _ in range(3000)])
    assert abs(total.mean() - 2.0) < 4 * total.std() / np.sqrt(3000)
    assert total.var() == pytest.approx(2.0 / 2.5, rel=0.15)


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"concentration": 0.0}, 'concentration is 0.0; expected a positive number or "learn"'),
        ({"mass": -1.0}, "mass is -1.0; expected a positive number"),
        ({"rounds": 0}, "rounds is 0; expected a whole number of at least 1"),
        ({"rounds": 2.5}, "rounds is 2.5; expected a whole number"),
        ({"round_prior": "paper"}, "round_prior is 'paper'; expected one of exchangeable, paper-exact"),
        ({"branches": "three"}, "branches is 'three'; expected one of two, shared"),
    ],
)
def test_bad_settings(setting, text):
    with pytest.raises(UsageError, match=text):
        BetaProcess(**setting)


def test_counts_beyond_the_rows_are_cut():
    """Sums of single precision may be a little more than the number of rows."""
    prior = BetaProcess()
    params = prior.init(2, 10)
    seen = seen_atoms(params, PriorSums(on=np.array([10.0001, -1e-6]), rows=np.asarray(10.0)))
    assert (seen.off >= 0).all()
    assert (seen.on >= 0).all()
