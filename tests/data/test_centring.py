"""Which columns are far from zero, and what a fit sees of data that have some."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.data.arrays import ArrayData, as_source
from ibpdist.data.centring import Centred, center_of, centred, done_to, with_center
from ibpdist.data.splits import held
from ibpdist.data.summary import FAR, empty_summary, far
from ibpdist.data.transform import transform_of
from tests.support.matrices import stored


def spread(rows=200, columns=6, dtype=np.float32, offset=0.0, seed=0):
    """Standard normal columns behind an offset."""
    rng = np.random.default_rng(seed)
    return (rng.standard_normal((rows, columns)) + offset).astype(dtype)


def far_of(x):
    return far(empty_summary(x.shape[1]).add(x).table())


class Counting:
    """A source that counts how often its chunks are read."""

    def __init__(self, source):
        self.source, self.reads = source, 0

    def __getattr__(self, name):
        return getattr(self.source, name)

    def read(self, index):
        self.reads += 1
        return self.source.read(index)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("share", [0.8, 1.2])
def test_a_column_is_far_beyond_so_many_of_its_standard_deviations(dtype, share):
    x = spread(dtype=dtype)
    x[:, 2] += dtype(share * FAR)
    assert far_of(x).tolist() == [False, False, share > 1, False, False, False]


def test_a_column_that_hardly_varies_among_others_that_do_is_not_far():
    x = spread()
    x[:, 1] = 1
    x[7, 1] = 0.999
    x[:, 3] = 1
    assert not far_of(x).any()
    x[:, 3] = 1e4
    assert far_of(x).tolist() == [False, False, False, True, False, False]


@pytest.mark.parametrize("x", [np.full((9, 3), 1e6), np.full((9, 3), np.nan), np.full((1, 3), 1e6)])
def test_data_without_a_spread_are_left_alone(x):
    assert not far_of(x).any()
    assert center_of(ArrayData(x)) is None


@pytest.mark.parametrize("kind", ["array", "store"])
def test_data_near_zero_stay_the_same_source_and_are_not_read(tmp_path, kind):
    x = spread(offset=10.0)
    data = ArrayData(x) if kind == "array" else stored(tmp_path / "a.zarr", x)
    for source in (Counting(data), held(Counting(data), 0.3)):
        assert centred(source) is source
    counting = Counting(data)
    centred(held(counting, 0.3))
    assert counting.reads == 0


@pytest.mark.parametrize("kind", ["array", "store"])
def test_far_data_are_not_read_when_their_means_are_known(tmp_path, kind):
    x = spread(offset=1e4)
    source = Counting(ArrayData(x) if kind == "array" else stored(tmp_path / "a.zarr", x))
    made = centred(source)
    assert isinstance(made, Centred)
    assert source.reads == 0
    np.testing.assert_allclose(made.center, x.astype(float).mean(0), rtol=1e-12)


def test_values_are_subtracted_in_double_precision_and_what_was_given_stays():
    x = spread(offset=1e6)
    x[3, 1] = np.nan
    raw = ArrayData(x.copy(), 64)
    made = centred(raw)
    expected = (x.astype(float) - np.nanmean(x.astype(float), axis=0)).astype(np.float32)
    found = np.concatenate([made.read(index).x for index in range(made.chunks)])
    assert found.dtype == np.float32
    assert found[3, 1] == 0
    whole = np.arange(200) != 3
    np.testing.assert_allclose(found[whole], expected[whole], rtol=0, atol=1e-9)
    np.testing.assert_array_equal(raw.read(1).x, x[64:128])
    assert (made.rows, made.columns, made.bounds(1)) == (200, 6, (64, 128))
    assert made.fingerprint == raw.fingerprint


@pytest.mark.parametrize("holdout", [0.3, "cells:share=0.3,fresh=true", "rows:share=0.2"])
def test_means_are_those_of_the_cells_that_a_fit_may_see(tmp_path, holdout):
    x = spread(offset=1e3)
    x[5, 0] = np.nan
    for data in (ArrayData(x, 64), stored(tmp_path / f"{hash(holdout)}.zarr", x)):
        seen = held(data, holdout)
        cells, values = [], []
        for index in range(seen.chunks):
            chunk = seen.read(index)
            values.append(chunk.x.astype(float))
            cells.append(np.ones(chunk.x.shape, bool) if chunk.observed is None else chunk.observed)
        table = np.where(np.concatenate(cells), np.concatenate(values), np.nan)
        np.testing.assert_allclose(center_of(seen), np.nanmean(table, axis=0), rtol=1e-12)
        assert not np.array_equal(center_of(seen), center_of(data))


def test_what_was_centred_when_it_was_stored_is_not_centred_again(tmp_path):
    ibp.ingest(spread(offset=1e4), tmp_path / "a.zarr", center=True)
    ibp.append(tmp_path / "a.zarr", spread(rows=2, offset=1e9))
    assert center_of(ibp.open_dataset(tmp_path / "a.zarr")) is None


def test_scaled_values_are_centred_in_their_own_units(tmp_path):
    x = spread(offset=1e4, dtype=np.float64) * [1, 2, 3, 4, 5, 6]
    ibp.ingest(x, tmp_path / "a.zarr", scale=True)
    data = ibp.open_dataset(tmp_path / "a.zarr")
    made = centred(data)
    np.testing.assert_allclose(made.read(0).x, (x - x.mean(0)) / x.std(0), atol=1e-6)
    np.testing.assert_allclose(done_to(held(made, 0.3)).apply(x), (x - x.mean(0)) / x.std(0), atol=1e-6)
    assert done_to(data).center is transform_of(data).center is None
    np.testing.assert_allclose(made.done.undo(made.read(0).x), x, rtol=1e-9)


def test_a_center_that_is_known_is_taken_as_it_is():
    source = ArrayData(spread())
    assert with_center(source, None) is source
    made = with_center(with_center(source, np.ones(6)), np.full(6, 2.0))
    np.testing.assert_array_equal(made.read(0).x, source.read(0).x - np.float32(2))
    assert center_of(made) is made.center
    assert with_center(made, None) is source


@pytest.mark.parametrize("kind", ["array", "store", "opened"])
def test_it_is_told(tmp_path, kind):
    x = spread(offset=1e4)
    path = stored(tmp_path / "far.zarr", x).path
    thing = {"array": x, "store": path, "opened": ibp.open_dataset(path)}[kind]
    name = "array" if kind == "array" else "far.zarr"
    said = rf"^{name}: columns 0, .* and 1 more: far from zero .*: a fit takes the mean off every column$"
    with pytest.warns(UserWarning, match=said) as caught:
        as_source(thing)
    assert len(caught) == 1
