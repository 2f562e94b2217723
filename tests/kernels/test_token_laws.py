"""Laws of words: a product of matrices whose rows have the same bits in any block."""

import numpy as np
import pytest

from ibpdist.kernels.token_laws import LANES, add_laws


@pytest.mark.parametrize("rows", [0, 1, LANES - 1, LANES, 2 * LANES + 3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_product_is_added(rows, dtype):
    rng = np.random.default_rng(0)
    shares, y, floor = rng.random((rows, 7)), rng.random((11, 7)).astype(dtype), rng.random(rows)
    before = rng.random((rows, 11))
    laws = before.copy()
    add_laws(shares, y, floor, laws)
    np.testing.assert_allclose(laws, before + shares @ y.T.astype(float) + floor[:, None], rtol=1e-13)


def test_a_row_has_the_same_bits_in_any_block():
    rng = np.random.default_rng(1)
    shares, y, floor = rng.random((50, 33)), rng.random((20, 33)), rng.random(50)
    whole = np.zeros((50, 20))
    add_laws(shares, y, floor, whole)
    for part in (slice(0, 1), slice(7, 40), slice(49, 50), slice(3, 19)):
        laws = np.zeros((part.stop - part.start, 20))
        add_laws(shares[part], y, floor[part], laws)
        np.testing.assert_array_equal(laws, whole[part])
