"""What is chosen from the scores of rows, against sums written out row by row."""

import math

import numpy as np
import pytest

from ibpdist.evaluate.choice import VARIABLES, RowScores, best_of


def scores(system, K, nats, cells=10, row_noise="none", **settings):
    nats = np.asarray(nats, dtype=float)
    cells = np.broadcast_to(cells, nats.shape)
    return RowScores(system, K, row_noise, settings, nats, cells, error=0.5 / cells.sum(), active=K - 1)


def error_by_hand(nats, cells):
    """Standard error of a ratio of sums over rows, one row after the other."""
    ratio, total, rows = sum(nats) / sum(cells), 0.0, len(nats)
    for nat, cell in zip(nats, cells, strict=True):
        total += (nat - ratio * cell) ** 2
    return math.sqrt(total * rows / (rows - 1)) / sum(cells)


def test_errors_are_those_of_a_ratio_and_of_differences_row_by_row():
    rng = np.random.default_rng(1)
    cells = rng.integers(3, 12, 9)
    good, bad = rng.normal(-10, 4, 9), rng.normal(-12, 4, 9)
    found = best_of([scores("a", 5, bad, cells), scores("a", 9, good, cells)])
    first, second = found.candidates
    assert (found.system, found.K) == ("a", 9)
    assert first.score == pytest.approx(sum(bad) / sum(cells))
    assert first.standard_error == pytest.approx(error_by_hand(bad, cells))
    assert first.behind == pytest.approx((sum(good) - sum(bad)) / sum(cells))
    assert first.behind_error == pytest.approx(error_by_hand(good - bad, cells))
    assert (second.behind, second.behind_error) == (0, 0)


def test_with_equal_cells_it_is_the_error_of_a_mean():
    nats = np.random.default_rng(2).normal(-20, 3, 12)
    (only,) = best_of([scores("a", 5, nats, 10)]).candidates
    assert only.standard_error == pytest.approx(np.std(nats / 10, ddof=1) / math.sqrt(12))


def test_rows_are_compared_in_pairs():
    """Rows differ much more than fits do: only the differences say that one is worse in all of them."""
    rows = np.random.default_rng(3).normal(-50, 20, 40)
    found = best_of([scores("a", 5, rows - 1), scores("a", 10, rows)])
    worse = found.candidates[0]
    assert worse.standard_error > 2 * worse.behind > 0
    assert worse.behind_error < worse.behind
    assert (found.K, found.K_smallest) == (10, 10)
    assert "no smaller K is within one standard error" in found.sentence


def test_the_smallest_number_within_one_standard_error():
    rng = np.random.default_rng(4)
    rows, noise = rng.normal(-50, 20, 40), rng.normal(0, 3, 40)
    noise -= noise.mean()
    grid = [
        scores("a", K, rows - gap + noise * scale)
        for K, gap, scale in ((5, 2, 1), (10, 0.2, 1), (20, 0.1, 1))
    ]
    found = best_of([*grid, scores("a", 40, rows), scores("a", 80, rows - 0.1)])
    assert (found.K, found.K_smallest) == (40, 10)
    assert [one.as_good for one in found.candidates] == [False, True, True, True, False]
    assert found.sentence == "predicting is best with a, K = 40; K = 10 is within one standard error"


def test_the_smallest_number_is_one_of_the_same_system_and_row_noise():
    rng = np.random.default_rng(5)
    rows, noise = rng.normal(-50, 20, 40), rng.normal(0, 3, 40)
    close = rows - 0.1 + noise - noise.mean()
    found = best_of(
        [
            scores("b", 5, close, row_noise="learn"),
            scores("a", 5, close, row_noise="none"),
            scores("a", 10, rows, row_noise="learn"),
            scores("a", 20, rows - 1, row_noise="learn"),
        ]
    )
    assert (found.system, found.K, found.K_smallest) == ("a", 10, 10)
    assert "a, K = 10 and row_noise=learn" in found.sentence


def test_settings_are_those_of_the_best():
    rows = np.linspace(-3, -1, 8)
    found = best_of(
        [scores("a", 5, rows - 1, noise="one"), scores("b", 5, rows, row_noise="none", bound="convex")]
    )
    assert found.settings == {"bound": "convex"}


def test_scores_are_the_best_of_each_system():
    rows = np.linspace(-3, -1, 8)
    found = best_of([scores("b", 5, rows - 1), scores("b", 9, rows - 2), scores("a", 5, rows)])
    assert found.scores == {"b": pytest.approx(-0.3), "a": pytest.approx(-0.2)}
    assert list(found.scores) == ["b", "a"]


def test_the_table_has_all_candidates_and_nan_elsewhere():
    rows = np.linspace(-3, -1, 8)
    grid = [scores("a", 5, rows, row_noise="learn"), scores("a", 10, rows - 1, row_noise="learn")]
    table = best_of([*grid, scores("a", 10, rows - 2, row_noise="none")]).table
    assert dict(table.sizes) == {"system": 1, "K": 2, "row_noise": 2}
    assert set(table.data_vars) == set(VARIABLES)
    chosen = table.sel(system="a", K=10)
    assert chosen.score.values == pytest.approx([-0.3, -0.4])
    assert int(chosen.active.sel(row_noise="none")) == 9
    assert np.isnan(table.score.sel(K=5, row_noise="none"))


def test_in_words():
    rows = np.linspace(-3, -1, 8)
    said = str(best_of([scores("fa", 5, rows - 1, row_noise="learn"), scores("fa-x", 10, rows)]))
    about, head, first, second, sentence = said.splitlines()
    assert about == "score of 8 held-out rows in nats per hidden cell"
    assert head.split()[:3] == ["system", "K", "row"]
    assert first.split() == ["fa", "5", "learn", "4", "-0.3000", "0.0063", "0.0247", "0.1000", "+-", "0.0000"]
    assert second.split()[-1] == "best"
    assert len({len(line) for line in (head, first)}) == 1, "columns are aligned"
    assert sentence == "predicting is best with fa-x, K = 10 and row_noise=none"


def test_one_row_has_no_standard_error():
    found = best_of([scores("a", 5, [-4.0, 0.0], [10, 0]), scores("a", 9, [-3.0, 0.0], [10, 0])])
    assert math.isnan(found.candidates[0].behind_error)
    assert (found.K, found.K_smallest, found.rows) == (9, 9, 1)
