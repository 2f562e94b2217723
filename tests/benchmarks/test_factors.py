"""The benchmark of factors measures what it says: sets, splits, the rival and a line of the table."""

import argparse

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from ibpdist.predict.rownoise import EVEN, UNEVEN
from tests.benchmarks.factors import lines, pictures, score
from tests.support import plain_factors
from tests.support.factor_pictures import side
from tests.support.plain_factors import fitted, rivals, scored
from tests.support.real_matrices import CLIP, expression, genotypes, split, stored

pytest.importorskip("sklearn")


def small(seed=0):
    return split(expression(60, 40, seed), seed)


def test_splits_are_standardised_on_the_training_rows():
    x = expression(80, 30)
    x[:, 3] = 7.0
    made = split(x, 1)
    assert made.train.shape == (64, 29)
    assert made.test.shape == (16, 29)
    np.testing.assert_allclose(made.train.mean(axis=0), 0, atol=0.05)
    assert np.abs(np.vstack([made.train, made.test])).max() <= CLIP
    assert (split(x, 1).test == made.test).all()
    assert (split(x, 2).test != made.test).any()
    assert split(x, 1, 10).train.shape[1] <= 10


def test_a_split_is_undone():
    """Also when only some columns are taken; the others are zero."""
    x = np.random.default_rng(0).normal(3.0, 2.0, (40, 12))
    x[:, 5] = 1.0
    for columns in (None, 7):
        made = split(x, 2, columns)
        order = np.random.default_rng([2, 99]).permutation(40)
        back = made.restored(made.test, 12, offset=True)
        np.testing.assert_allclose(back[:, made.columns], x[order[32:]][:, made.columns])
        assert not back[:, np.setdiff1d(np.arange(12), made.columns)].any()
        assert 5 not in made.columns
    change = made.restored(made.test[:1] - made.test[1:2], 12)
    np.testing.assert_allclose(change, back[:1] - back[1:2])


def test_new_rows_have_no_say_in_the_standardising():
    x = expression(50, 20)
    made = split(x, 3)
    order = np.random.default_rng([3, 99]).permutation(50)
    x[order[40:]] *= 100
    np.testing.assert_array_equal(split(x, 3).train, made.train)


def test_genotypes_are_counts_in_linkage_with_missing_cells():
    x = genotypes(200, 150, seed=2)
    assert set(np.unique(x[~np.isnan(x)])) <= {0.0, 1.0, 2.0}
    assert 0.02 < np.isnan(x).mean() < 0.06
    near = np.ma.corrcoef(np.ma.masked_invalid(x), rowvar=False).filled(0)
    close = np.abs(np.diagonal(near, 1)).mean()
    far = np.abs(np.diagonal(near, 75)).mean()
    assert close > far + 0.05


def test_expression_is_made_of_few_modules():
    x = expression(100, 300)
    values = np.linalg.eigvalsh(np.cov(x))[::-1]
    assert values[:15].sum() > 0.5 * values.sum()


def test_stored(tmp_path):
    x = np.arange(6).reshape(2, 3)
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "b.npz", X=x)
    for name in ("a.npy", "b.npz"):
        found = stored(tmp_path / name)
        np.testing.assert_array_equal(found, x)
        assert found.dtype == np.float64


def test_the_rival_is_scored_by_its_own_density():
    """log p(all) - log p(visible) under the covariance that scikit-learn reports."""
    from sklearn.decomposition import FactorAnalysis

    made = small()
    law, centre = fitted(made.train, 5)
    exact = FactorAnalysis(5, svd_method="lapack", random_state=0).fit(made.train)
    whole, even = exact.get_covariance(), np.arange(made.test.shape[1]) % 2 == 0
    joint = multivariate_normal(exact.mean_, whole).logpdf(made.test)
    shown = multivariate_normal(exact.mean_[even], whole[np.ix_(even, even)]).logpdf(made.test[:, even])
    expected = (joint - shown).sum() / (len(made.test) * (~even).sum())
    assert scored(law, made.test - centre, EVEN) == pytest.approx(expected, rel=1e-8)
    assert np.isfinite(scored(law, made.test - centre, UNEVEN))


def test_missing_cells_of_new_rows_are_not_scored():
    made = small()
    law, centre = fitted(made.train, 5)
    holes = np.random.default_rng(0).random(made.test.shape) < 0.3
    some = np.where(holes, np.nan, made.test)
    other = np.where(holes, np.nan, made.test + 0.0)
    assert scored(law, some - centre, EVEN) == scored(law, other - centre, EVEN)
    assert scored(law, some - centre, EVEN) != scored(law, made.test - centre, EVEN)


def test_every_rank_that_the_data_allow(monkeypatch):
    monkeypatch.setattr(plain_factors, "RANKS", (2, 5, 40, 60))
    assert [one.rank for one in rivals(small())] == [2, 5]
    made = list(rivals(split(expression(200, 80), 0)))
    assert [one.rank for one in made] == [2, 5, 40, 60]
    assert len({one.plain for one in made}) == 4


@pytest.mark.parametrize(("columns", "length"), [(64, 8), (784, 28), (60, None), (1, None)])
def test_squares_are_pictures(columns, length):
    assert side(np.zeros((3, columns))) == length


@pytest.mark.slow
def test_factors_are_drawn(tmp_path):
    """One picture for each set of square pictures, in a folder that is made."""
    from matplotlib.image import imread

    x = expression(50, 36)
    x[:, 3] = 0.0
    sets = {"squares": (x, 20), "somewhere/more.npz": (x[:, :25], None), "none": (x[:, :30], None)}
    drawn = list(pictures(sets, tmp_path / "new", 4))
    assert drawn == [tmp_path / "new" / "squares.png", tmp_path / "new" / "more.png"]
    seen = imread(drawn[0])
    assert seen.shape[0] > 200
    assert len(np.unique(seen[..., :3].reshape(-1, 3), axis=0)) > 50


@pytest.mark.slow
def test_a_line_of_the_table(monkeypatch):
    monkeypatch.setattr(plain_factors, "RANKS", (2, 5))
    options = argparse.Namespace(splits=1, rows=10, features=6, systems=["fa-vi-infinite", "fa-vi-dense"])
    (said,) = lines({"toy": (expression(60, 40), None)}, options)
    assert said.startswith("toy 0 (48, 40)")
    for word in ("fa ", "fa mixed", "fa-vi-infinite", "fa-vi-dense", "chosen fa-vi-"):
        assert word in said
    assert ("WINS" in said) != ("LOSES" in said)


@pytest.mark.slow
def test_a_default_fit_beats_the_oracle_on_a_small_set():
    """Fifty samples of 200 genes."""
    made = split(expression(60, 200, seed=1), 0)
    best = max(one.plain for one in rivals(made))
    assert score(made, "fa-vi-infinite", 80)[0] > best
