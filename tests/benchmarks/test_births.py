"""The benchmark of rare features: its data, what counts as matched, its lines."""

import numpy as np
import xarray as xr

from tests.benchmarks import births


def fit_of(z, active=None):
    """A result with these columns of z (row, feature)."""
    kept = np.ones(z.shape[1], bool) if active is None else active
    params = xr.Dataset({"active": ("feature", kept)})
    rows = xr.Dataset({"z": (("feature", "row"), z.T.astype(float))})
    return xr.DataTree.from_dict({"params": params, "rows": rows})


def test_rows_take_features_as_customers_take_dishes():
    made = [births.buffet(seed, rows=200, columns=3) for seed in range(40)]
    each = [one.z.sum() / 200 for one in made]
    assert abs(np.mean(each) - 3.0) < 4 * np.std(each) / np.sqrt(40)
    count = [one.z.shape[1] for one in made]
    expected = 3 * (1 / np.arange(1, 201)).sum()
    assert abs(np.mean(count) - expected) < 4 * np.sqrt(expected / 40)
    assert all(one.z.any(axis=0).all() for one in made)
    np.testing.assert_array_equal(births.buffet(1, rows=50).x, births.buffet(1, rows=50).x)


def test_a_feature_is_matched_once_and_by_active_ones():
    rng = np.random.default_rng(0)
    planted = rng.random((300, 3)) < 0.3
    assert births.matched(fit_of(planted[:, [2, 0]]), planted).tolist() == [True, False, True]
    two = np.repeat(planted[:, :1], 2, axis=1)
    assert births.matched(fit_of(planted[:, :1]), two).sum() == 1
    active = np.array([True, False, True])
    assert births.matched(fit_of(planted, active), planted).tolist() == [True, False, True]
    union = planted[:, :1] | planted[:, 1:2]
    assert not births.matched(fit_of(union), planted).any()


def test_the_command_prints_a_line_for_each_seed(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(births, "buffet", lambda seed, draw=births.buffet: draw(seed, 120, 20))
    monkeypatch.setattr(births, "TRUNCATION", 12)
    assert births.main(["--first", "3", "--seeds", "2", "--out", str(tmp_path / "rows.csv")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in lines[:2]] == [["seed", "3"], ["seed", "4"]]
    assert lines[2].startswith("2 seeds: matched ")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 3
