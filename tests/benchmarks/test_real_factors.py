"""The benchmark of real sets: its sets, its rivals in closed form, and a line of the table."""

import argparse

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

import ibpdist as ibp
from ibpdist.base.threads import one_thread
from ibpdist.predict.rownoise import EVEN, UNEVEN
from tests.benchmarks.real_factors import Outcome, fitted, main, outcomes, summary
from tests.support import gaussian_rivals, mofa, plain_factors, real_sets
from tests.support.fit_variants import Variant, add_variants, predicted, table, variants_of
from tests.support.gaussian_rivals import Marks, conditional, error, even, marks, rivals
from tests.support.plain_factors import scored
from tests.support.real_matrices import expression, split
from tests.support.real_sets import cells, load, names, share_at_mode


@pytest.fixture(autouse=True)
def _one_thread():
    """As the command has it: products this small are slower with more."""
    with one_thread():
        yield


def small(seed=0):
    return split(expression(60, 20, seed), seed)


def law(columns=6, seed=0):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(columns, columns))
    return rng.normal(size=columns), a @ a.T + np.eye(columns), rng.normal(size=(5, columns))


def test_a_conditional_density_is_joint_over_marginal():
    mean, covariance, x = law()
    visible = np.array([True, False, True, True, False, False])
    expected, logs = conditional(mean, covariance, x, visible)
    joint = multivariate_normal(mean, covariance).logpdf(x)
    shown = multivariate_normal(mean[visible], covariance[np.ix_(visible, visible)]).logpdf(x[:, visible])
    np.testing.assert_allclose(logs, joint - shown, rtol=1e-9)
    for row, found in zip(x, expected, strict=True):
        away = np.linalg.solve(covariance[np.ix_(visible, visible)], row[visible] - mean[visible])
        np.testing.assert_allclose(found, mean[~visible] + covariance[np.ix_(~visible, visible)] @ away)


def test_row_noise_is_a_mixture_of_laws():
    mean, covariance, x = law(4, 1)
    unit, shown = np.array([1.0, 2.0, 0.5, 1.0]), even(x)
    parts = [
        np.log(share) + conditional(mean, covariance + level * np.diag(unit), x, shown)[1]
        for level, share in zip(UNEVEN.levels, UNEVEN.shares, strict=True)
    ]
    found = marks(mean, covariance, unit, x)
    assert found.mixed == pytest.approx(logsumexp(parts, axis=0).sum() / (2 * len(x)))
    assert found.nats == pytest.approx(conditional(mean, covariance, x, shown)[1].sum() / (2 * len(x)))


def test_factor_analysis_is_scored_as_elsewhere(monkeypatch):
    """By another formula, through the predictor of the package."""
    pytest.importorskip("sklearn")
    monkeypatch.setattr(gaussian_rivals, "RANKS", (5,))
    of = small()
    found, (other, centre) = gaussian_rivals.factor_analysis(of), plain_factors.fitted(of.train, 5)
    assert found.nats == pytest.approx(scored(other, of.test - centre, EVEN), rel=1e-8)
    assert found.mixed == pytest.approx(scored(other, of.test - centre, UNEVEN), rel=1e-8)


def test_the_column_mean_knows_nothing_of_visible_cells():
    of = small()
    found = gaussian_rivals.column_mean(of)
    assert found.rmse == pytest.approx(np.sqrt(np.mean((of.test - of.train.mean(0))[:, 1::2] ** 2)))
    assert found.nats == pytest.approx(-0.5 * np.log(2 * np.pi) - found.rmse**2 / 2, abs=0.05)


def test_rivals_beat_the_column_mean(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(gaussian_rivals, "RANKS", (5, 20))
    monkeypatch.setattr(gaussian_rivals, "NMF_RANKS", (5, 10))
    found = dict(rivals(split(expression(200, 60), 0)))
    least = found.pop("column mean")
    assert {"FA", "Ledoit-Wolf", "NMF"} <= set(found)
    assert all(one.rmse < least.rmse for one in found.values())
    assert all(one.nats > least.nats for name, one in found.items() if name != "NMF")
    assert found["NMF"].nats == -np.inf


def test_the_best_of_each_number():
    assert Marks(1.0, 2.0, 3.0).best(Marks(2.0, 1.0, 2.0)) == Marks(2.0, 2.0, 2.0)
    assert Marks(1.0, 2.0, 3.0).best(Marks(rmse=4.0)) == Marks(1.0, 2.0, 3.0)


def test_cells_are_counts_of_which_many_are_zero():
    x = cells(200, 300, seed=3)
    np.testing.assert_array_equal(x, cells(200, 300, seed=3))
    assert x.shape == (200, 300)
    assert x.min() == 0
    assert 0.2 < share_at_mode(x) < 0.9
    values = np.linalg.eigvalsh(np.cov((x - x.mean(0)).T))[::-1]
    assert values[:10].sum() > 0.15 * values.sum()


def test_sets_of_a_folder(tmp_path):
    counts = np.random.default_rng(0).poisson(1.0, (30, 8)).astype(np.uint16)
    np.savez(tmp_path / "reuters395_lda.npz", counts=counts)
    whole = load("reuters", tmp_path)
    np.testing.assert_allclose(whole, np.log1p(counts.astype(float)))
    some = load("reuters", tmp_path, 10)
    assert some.shape == (10, 8)
    assert {tuple(row) for row in some} <= {tuple(row) for row in whole}
    assert {"khan", "mnist", "reuters"} <= set(names(tmp_path))
    assert not {"khan", "mnist", "reuters"} & set(names(None))
    with pytest.raises(ValueError, match="--data"):
        load("khan", None)


def test_share_at_mode():
    assert share_at_mode(np.array([[0, 1], [0, 2], [0, 3], [1, 4]])) == pytest.approx((0.75 + 0.25) / 2)


@pytest.mark.filterwarnings("ignore:array. columns")
@pytest.mark.parametrize("offset", [0.0, 1000.0])
@pytest.mark.parametrize("intercept", [False, True])
def test_what_a_fit_predicts_is_in_the_units_of_its_data(offset, intercept):
    """Far from zero a fit sees columns centred; predictions are put back."""
    rng = np.random.default_rng(4)
    x = (rng.normal(size=(80, 2)) * (rng.random((80, 2)) < 0.4)) @ (3 * rng.normal(size=(2, 10)))
    x += offset + 0.1 * rng.normal(size=x.shape)
    variant = Variant(settings=(("intercept", intercept), ("moves", False)))
    result = variant.fit(x, 4, steps=40)
    assert error(predicted(result, x)[:, 1::2], x) < 0.2


def test_variants_of_a_command_line(capsys):
    parser = argparse.ArgumentParser()
    add_variants(parser)
    read = lambda *given: variants_of(parser.parse_args(given))  # noqa: E731
    assert read() == [Variant()]
    both = read("--system", "a", "b", "--set", "--set", "intercept=true", "mass=2", "start=svd")
    settings = (("intercept", True), ("mass", 2), ("start", "svd"))
    assert both == [Variant("a"), Variant("a", settings), Variant("b"), Variant("b", settings)]
    with pytest.raises(SystemExit):
        read("--set", "intercept")
    assert "'intercept': expected NAME=VALUE" in capsys.readouterr().err


def test_tables_are_aligned():
    assert table(("a", "b"), [("long", "1"), ("x", "22")]) == "a      b\nlong   1\nx     22"


def test_a_fit_is_scored_by_the_api():
    of = small()
    found, active = fitted(Variant(settings=(("steps", 20),)), of, 4)
    result = ibp.fit(of.train, system="fa-vi-infinite", K=4, steps=20, serial=True)
    expected = ibp.evaluate(result, of.test, serial=True).score.sel(estimate="variance")
    assert found.mixed == float(expected)
    assert active == int(result["params"]["active"].sum())
    assert 0 < found.rmse < 3


def test_hidden_columns_have_no_say_in_predictions():
    of = small()
    variant = Variant(settings=(("steps", 20),))
    other = of.test.copy()
    other[:, 1::2] = 0.0
    result = variant.fit(of.train, 4)
    shown = [np.where(even(x), x, np.nan) for x in (of.test, other)]
    np.testing.assert_array_equal(*(predicted(result, x) for x in shown))


def test_a_table_is_the_means_of_the_splits():
    rows = [Outcome("s", n, (9, 9), 0.25, "FA", Marks(-1.0 - n, -0.5, 0.8), seconds=1.0) for n in (0, 1)]
    header, line = summary(rows).splitlines()
    assert header.split() == ["set", "method", "nats", "mixed", "RMSE", "active", "seconds", "mode"]
    assert line.split() == ["s", "FA", "-1.5000", "-0.5000", "0.8000", "-", "1.0", "0.25"]


def test_every_method_on_every_split(monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(gaussian_rivals, "RANKS", (2,))
    monkeypatch.setattr(gaussian_rivals, "NMF_RANKS", (2,))
    monkeypatch.setattr(mofa, "RANKS", (2,))
    options = argparse.Namespace(splits=2, columns=15, rows=5, features=3)
    rows = list(outcomes("toy", expression(40, 30), options, [Variant(settings=(("steps", 5),))]))
    count = len(gaussian_rivals.RIVALS) + 1
    assert [row.method for row in rows[:count]] == [*gaussian_rivals.RIVALS, "fa-vi-infinite steps=5"]
    assert [row.number for row in rows] == [0] * count + [1] * count
    assert np.isnan(rows[0].active)
    assert rows[count - 1].active <= 3


def test_the_command(monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(gaussian_rivals, "RANKS", (2,))
    monkeypatch.setattr(mofa, "RANKS", (2,))
    monkeypatch.setitem(real_sets.MADE, "cells", lambda: cells(50, 30))
    arguments = ["--sets", "cells", "--splits", "1", "--features", "3", "--rows", "4", "--set", "steps=5"]
    assert main(arguments) == 0
    told = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("cells 0 (40, ") for line in told) == len(gaussian_rivals.RIVALS) + 1
    assert told[-1].split()[:2] == ["cells", "fa-vi-infinite"]
