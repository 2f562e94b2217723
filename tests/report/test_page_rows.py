"""One pass over the rows, against the plain definitions."""

import numpy as np
import pytest
import xarray as xr

from ibpdist.report.html import rows as reading
from ibpdist.report.html.rows import BEST, look


def made(
    n: int = 50, features: int = 4, weights: bool = True, seed: int = 1
) -> tuple[xr.Dataset, np.ndarray]:
    draw = np.random.default_rng(seed)
    held = {"z": (("row", "feature"), draw.random((n, features)))}
    if weights:
        held["w"] = (("row", "feature"), draw.normal(size=(n, features)))
    return xr.Dataset(held), draw.normal(size=(features, 6))


@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("block", [1, 37, 1 << 20])
def test_it_is_what_it_says_for_any_block(weights: bool, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BLOCK", block)
    rows, mean = made(weights=weights)
    z = rows["z"].values
    y = z * (rows["w"].values if weights else 1)
    seen = look(rows, mean)
    both = z.T @ z
    both[np.diag_indices(4)] = z.sum(0)
    np.testing.assert_allclose(seen.together, both, rtol=1e-12)
    parts = y**2 * (mean**2).sum(1)
    for k, found in enumerate(seen.best):
        measure = parts[:, k] ** 2 / parts.sum(1)
        has = [n for n in np.argsort(-measure, kind="stable") if z[n, k] > 0.5]
        assert [one.row for one in found] == has[:BEST]
        for one in found:
            assert one.share == pytest.approx(parts[one.row, k] / parts[one.row].sum(), rel=1e-12)
            assert one.z == z[one.row, k]
            assert one.w == (rows["w"].values[one.row, k] if weights else 1.0)


def test_rows_of_a_feature_are_not_the_emptiest() -> None:
    """Two features that overlap in every row: the difference to the others is largest where nothing is."""
    amount = np.linspace(0.01, 3, 40)
    w = np.stack([amount, 1.2 * amount], axis=1)
    rows = xr.Dataset({"z": (("row", "feature"), np.ones((40, 2))), "w": (("row", "feature"), w)})
    seen = look(rows, np.ones((2, 6)))
    for best in seen.best:
        assert [one.row for one in best] == [39, 38, 37, 36, 35]
    w[7] = [3.0, 0.1]
    assert look(rows, np.ones((2, 6))).best[0][0].row == 7, "as much, and less of the other"


def test_a_feature_that_no_row_has() -> None:
    rows, mean = made(weights=False)
    rows["z"] = rows["z"] * np.array([1.0, 1.0, 0.4, 0.0])
    seen = look(rows, mean)
    assert [len(found) for found in seen.best] == [BEST, BEST, 0, 0]
    assert seen.together[3].tolist() == [0, 0, 0, 0]


def test_equal_rows_come_in_their_order() -> None:
    rows = xr.Dataset({"z": (("row", "feature"), np.ones((20, 1)))})
    seen = look(rows, np.ones((1, 3)))
    assert [one.row for one in seen.best[0]] == list(range(BEST))
    assert {one.share for one in seen.best[0]} == {1.0}


def test_features_of_zeros_have_no_share() -> None:
    rows = xr.Dataset({"z": (("row", "feature"), np.ones((3, 2)))})
    assert {one.share for one in look(rows, np.zeros((2, 3))).best[0]} == {0.0}


def test_dims_in_any_order_and_no_rows() -> None:
    rows, mean = made(weights=False)
    turned = look(rows.transpose("feature", "row"), mean)
    assert turned.best == look(rows, mean).best
    none = look(rows.isel(row=slice(0, 0)), mean)
    assert none.together.sum() == 0
    assert none.best == ((), (), (), ())
