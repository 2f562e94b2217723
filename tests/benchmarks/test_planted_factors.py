"""The benchmark of planted factors: what the seed decides, what is planted, how a method is judged."""

from dataclasses import replace

import numpy as np
import pytest

from tests.benchmarks import planted_factors
from tests.benchmarks.planted_factors import Outcome, main, methods, summary
from tests.support import factor_problems
from tests.support.factor_match import FactorScore, FoundFactors, assigned, cosines, judged
from tests.support.factor_peers import PEERS, filled, half_sample_mode, peers, upper_share, with_prevalence
from tests.support.factor_problems import ACTIVITIES, GRID, GROUPS, KINDS, LARGE, FactorProblem, draw, problem

SMALL = FactorProblem(400, 30, (0.5, 0.3, 0.1), 0.2, 10, (5, 1))


@pytest.fixture
def small(monkeypatch):
    for kind in KINDS:
        monkeypatch.setitem(KINDS, kind, lambda key, number: replace(SMALL, seed=key))


@pytest.mark.parametrize("kind", KINDS)
def test_a_problem_is_a_function_of_kind_seed_and_number(kind):
    assert problem(kind, 3, 2) == problem(kind, 3, 2)
    assert len({problem(kind, seed, number).seed for seed in (3, 4) for number in range(6)}) == 12
    assert problem(kind, 3, 2).seed not in {problem(other, 3, 2).seed for other in KINDS if other != kind}


@pytest.mark.parametrize("kind", GRID)
def test_the_grid_stays_in_its_ranges(kind):
    for number in range(60):
        of = problem(kind, 0, number)
        assert 300 <= of.rows <= 2000
        assert 40 <= of.columns <= 200
        assert 3 <= of.features <= 10
        assert 0.3 <= of.noise <= 1.0
        assert 0.05 <= min(of.prevalence) <= max(of.prevalence) <= 0.6
        assert of.truncation == 2 * of.features + 4
        assert of.offset == (3.0 if "+3" in kind else 0.0)
        assert (of.activity == "normal") == kind.startswith("signed")
    assert len({problem(kind, 0, number).rows for number in range(60)}) > 40


def test_the_further_kinds():
    assert [problem(kind, 0, 0).offset for kind in GROUPS["newcomer"]] == [3.0, 0.0, 3.0]
    of = problem("nuisance", 0, 1)
    assert (of.features, of.dense, of.truncation, of.uneven) == (5, 3, 16, True)
    assert [problem("large", 0, number).rows for number in range(6)] == list(LARGE)
    assert min(problem("rare", 2, 1).prevalence) == 0.01
    assert problem("correlated", 0, 0).together == 0.5


def test_the_same_problem_has_the_same_bits():
    assert draw(SMALL).x.tobytes() == draw(SMALL).x.tobytes()
    assert draw(replace(SMALL, seed=(5, 2))).x.tobytes() != draw(SMALL).x.tobytes()


def test_rows_are_features_times_weights_plus_offset_and_noise():
    made = draw(replace(SMALL, rows=4000, offset=3.0))
    np.testing.assert_allclose(made.prevalence, SMALL.prevalence, atol=0.03)
    none = ~made.z.any(axis=1)
    assert made.x[none].mean() == pytest.approx(3.0, abs=0.01)
    assert made.x[none].std() == pytest.approx(0.2, rel=0.02)
    away = made.x - 3.0
    scores = away @ np.linalg.pinv(made.dictionary)
    assert (away - scores @ made.dictionary).std() == pytest.approx(0.2, rel=0.1)
    assert scores[made.z[:, 0], 0].std() == pytest.approx(1.0, rel=0.1)
    assert np.abs(scores[~made.z[:, 0], 0]).max() < 0.5


@pytest.mark.parametrize("activity", [name for name in ACTIVITIES if name != "normal"])
def test_weights_that_are_positive(activity):
    drawn = ACTIVITIES[activity](np.random.default_rng(0), (20_000,))
    assert drawn.min() >= 0
    assert 0.9 < drawn.mean() < 1.3
    assert (drawn < 0.05).mean() < 0.02


def test_features_that_occur_together():
    apart, near = (draw(replace(SMALL, rows=20_000, together=t)).z.astype(float) for t in (0.0, 0.5))
    assert abs(np.corrcoef(apart.T)[0, 1]) < 0.03
    assert np.corrcoef(near.T)[0, 1] > 0.25
    np.testing.assert_allclose(near.mean(axis=0), SMALL.prevalence, atol=0.02)


def test_missing_cells_are_a_share_of_the_same_rows():
    whole, torn = draw(SMALL), draw(replace(SMALL, missing=0.3))
    seen = np.isfinite(torn.x)
    assert seen.mean() == pytest.approx(0.7, abs=0.02)
    np.testing.assert_array_equal(torn.x[seen], whole.x[seen])
    np.testing.assert_allclose(filled(torn.x).mean(axis=0), np.nanmean(torn.x, axis=0))


def test_dense_factors_and_uneven_rows():
    made = draw(replace(SMALL, rows=4000, prevalence=(0.01,), dense=2, uneven=True, noise=0.5))
    basis = np.concatenate([made.dictionary, made.dense])
    rest = made.x - made.x @ np.linalg.pinv(basis) @ basis
    precision = 1 / rest.var(axis=1)
    assert precision.std() / precision.mean() > 0.6
    assert (np.abs(made.x @ np.linalg.pinv(basis))[:, 1:] > 0.1).mean() > 0.8


@pytest.mark.parametrize("kind", KINDS)
def test_the_truth_finds_itself(kind, monkeypatch):
    monkeypatch.setattr(factor_problems, "LARGE", (300,))
    of = problem(kind, 1, 0)
    planted = draw(of)
    score = judged(FoundFactors.of_truth(planted), planted)
    assert (score.recovery, score.error, score.sparse, score.always) == (1, 0, of.features, of.dense)
    assert score.right(of)


def test_sign_length_and_order_are_free():
    planted = draw(SMALL)
    order, change = np.array([2, 0, 1]), np.array([[-3.0], [0.1], [1.0]])
    found = FoundFactors(planted.dictionary[order] * change, planted.prevalence[order])
    assert judged(found, planted) == FactorScore(1.0, 0.0, 3, 0)
    np.testing.assert_array_equal(assigned(found.features, planted.dictionary), [1, 2, 0])


def test_what_is_missed_counts_with_its_prevalence():
    planted = draw(SMALL)
    share = planted.prevalence
    found = FoundFactors(planted.dictionary[:2], np.array([share[0] + 0.03, 1.0]))
    score = judged(found, planted)
    assert score.recovery == pytest.approx(2 / 3)
    assert score.error == pytest.approx((0.03 + 1.0 - share[1] + share[2]) / 3)
    assert (score.sparse, score.always) == (1, 1)
    assert not score.exact(SMALL)
    nothing = judged(FoundFactors(np.zeros((0, 30)), np.zeros(0)), planted)
    assert nothing.error == pytest.approx(share.mean())
    assert nothing.recovery == 0


def test_one_feature_matches_one():
    planted = draw(SMALL).dictionary
    same = np.stack([planted[0], planted[0]])
    assert (assigned(planted[:1], same) >= 0).sum() == 1
    assert (cosines(np.zeros((1, 30)), planted) == 0).all()


def test_assignment_prefers_matches():
    """The best sum of cosines alone would leave the second feature without a match."""
    angle = lambda degrees: [np.cos(np.radians(degrees)), np.sin(np.radians(degrees))]  # noqa: E731
    planted, found = np.array([angle(0), angle(20)]), np.array([angle(19), angle(44)])
    assert (assigned(found, planted) >= 0).sum() == 2


def test_right_asks_for_all_of_it():
    dense = replace(SMALL, dense=3)
    assert FactorScore(1.0, 0.02, 3, 1).right(SMALL)
    assert not FactorScore(1.0, 0.021, 3, 0).right(SMALL)
    assert not FactorScore(1.0, 0.0, 4, 0).right(SMALL)
    assert not FactorScore(0.9, 0.0, 3, 0).right(SMALL)
    assert FactorScore(1.0, 0.5, 3, 3).right(dense)
    assert not FactorScore(1.0, 0.0, 3, 2).right(dense)


def test_half_sample_mode():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.normal(2.0, 0.1, 600), rng.normal(5.0, 1.0, 400)])
    assert half_sample_mode(values) == pytest.approx(2.0, abs=0.15)
    assert half_sample_mode(np.array([4.0])) == 4.0
    assert half_sample_mode(np.array([0.0, 3.0, 3.1])) == pytest.approx(3.05)


def test_two_means_are_those_of_enumeration():
    rng = np.random.default_rng(1)
    for _ in range(20):
        values = rng.normal(size=9) ** 2
        ordered = np.sort(values)
        costs = [
            sum(((part - part.mean()) ** 2).sum() for part in np.split(ordered, [at])) for at in range(1, 9)
        ]
        assert upper_share(values) == pytest.approx(1 - (int(np.argmin(costs)) + 1) / 9)


def test_rows_away_from_the_mode_have_the_component():
    rng = np.random.default_rng(2)
    on = rng.random((500, 2)) < [0.1, 0.4]
    scores = 7.0 + on * [[5.0, -5.0]] + 0.1 * rng.normal(size=(500, 2))
    np.testing.assert_allclose(with_prevalence(scores, np.eye(2)).prevalence, on.mean(0), atol=0.005)


def test_peers_find_components_of_as_many_columns():
    pytest.importorskip("sklearn")
    made = draw(replace(SMALL, rows=120, offset=3.0))
    for name, peer in peers():
        if peer is not None and PEERS[name][0] == "sklearn":
            found = peer(made.x, 3)
            assert found.features.shape == (3, 30), name
            assert ((found.prevalence > 0) & (found.prevalence < 1)).all(), name
            np.testing.assert_array_equal(peer(made.x, 3).prevalence, found.prevalence)


def test_ica_finds_positive_features():
    pytest.importorskip("sklearn")
    planted = draw(replace(SMALL, rows=1500, activity="gamma", offset=3.0))
    assert judged(PEERS["FastICA"][1](planted.x, 3), planted).recovery == 1


def test_a_peer_that_is_not_installed_is_told_of(monkeypatch, capsys):
    monkeypatch.setitem(PEERS, "MOFA", ("no_such_library", PEERS["MOFA"][1]))
    assert "MOFA" not in methods([], with_peers=True)
    assert "MOFA: not installed, skipped" in capsys.readouterr().out


def test_a_table_has_a_line_for_each_kind_and_method():
    rows = [
        Outcome("signed", 0, number, method, SMALL, FactorScore(recovery, 0.1, 3, 0), 1.0)
        for number, recovery in enumerate((1.0, 0.5))
        for method in ("a", "NMF")
    ]
    header, first, second = summary(rows).splitlines()
    assert header.split()[:5] == ["kind", "method", "recovery", "error", "exact"]
    assert first.split() == ["signed", "a", "0.750", "0.100", "2/2", "0/2", "3.0", "0.0", "1.0"]
    assert second.split()[4] == "given"


@pytest.mark.slow
def test_the_command_compares_variants(small, capsys):
    arguments = ["2", "--kinds", "signed", "--count", "1", "--set", "--set", "intercept=true", "steps=30"]
    assert main(arguments) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[1] for line in told[:2]] == [
        "fa-vi-infinite",
        "fa-vi-infinite intercept=True steps=30",
    ]
    lines = [line.split(", ")[0] for line in told[:2]]  # but for the seconds
    assert told[0].startswith("signed 2/0")
    main(arguments)
    again = capsys.readouterr().out.splitlines()
    assert [line.split(", ")[0] for line in again[:2]] == lines
    assert len(told) == 5


def test_groups_of_kinds_are_expanded(small, capsys, monkeypatch):
    monkeypatch.setattr(
        planted_factors, "fitted", lambda variant: lambda x, of: FoundFactors(x[:2], np.ones(2))
    )
    main(["--kinds", "newcomer", "--count", "1"])
    told = capsys.readouterr().out
    for kind in GROUPS["newcomer"]:
        assert f"{kind} 0/0" in told
