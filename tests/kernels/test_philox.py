"""The counter-based generator: published vectors, and numbers that depend on the row alone."""

import numpy as np
import pytest

from ibpdist.kernels.philox import blocks, uniforms, uniforms_of

VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]
KEY = np.array([7, 11, 13], np.uint32)


def words(text):
    return np.array([int(word, 16) for word in text.split()], np.uint64)


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(counter, key, expected):
    """Philox 4x32-10, the known answers of Random123."""
    found = blocks(words(counter)[None], words(key))
    assert found[0].tolist() == words(expected).tolist()


def scalar_philox(counter, key):
    """Ten rounds on Python integers."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p, q = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(q >> 32) ^ c[1] ^ k[0], q & 0xFFFFFFFF, (p >> 32) ^ c[3] ^ k[1], p & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def test_many_counters_against_python_integers():
    rng = np.random.default_rng(1)
    counters = rng.integers(0, 2**32, (50, 4), dtype=np.uint64)
    key = rng.integers(0, 2**32, 2, dtype=np.uint64)
    expected = [scalar_philox(map(int, c), map(int, key)) for c in counters]
    assert blocks(counters, key).tolist() == expected


def test_a_uniform_is_52_bits_of_its_own_counter():
    """Entry (j, r): counter (row low, row high, j // 2, key 2), two words for each of a pair."""
    start = 2**32 - 1
    found = uniforms(KEY, start, 3, 5)
    for j, r in np.ndindex(5, 3):
        row = start + r
        four = scalar_philox((row & 0xFFFFFFFF, row >> 32, j // 2, 13), (7, 11))
        high, low = four[2 * (j % 2) : 2 * (j % 2) + 2]
        assert found[j, r] == (((high << 32 | low) >> 12) + 0.5) * 2.0**-52


@pytest.mark.parametrize("width", [1, 2, 7])
def test_independent_of_where_a_block_starts(width):
    whole = uniforms(KEY, 100, 20, width)
    parts = [uniforms(KEY, 100 + a, b - a, width) for a, b in [(0, 1), (1, 14), (14, 20)]]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole)


def test_width_adds_numbers_and_changes_none():
    np.testing.assert_array_equal(uniforms(KEY, 5, 9, 8)[:3], uniforms(KEY, 5, 9, 3))


def test_every_part_of_the_key_and_every_entry_matters():
    base = uniforms(KEY, 0, 50, 4)
    for at in range(3):
        other = KEY.copy()
        other[at] ^= 1
        assert not np.isin(uniforms(other, 0, 50, 4), base).any()
    assert np.unique(base).size == base.size


def test_uniform_in_the_open_interval():
    """Moments, extremes, and no correlation between neighbours in rows and in width."""
    u = uniforms(KEY, 0, 50_000, 4)
    assert 0 < u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    error = 1 / np.sqrt(12 * u.size)
    assert abs(u.mean() - 0.5) < 4 * error
    assert abs(u.var() - 1 / 12) < 4 / np.sqrt(180 * u.size)
    centred = (u - 0.5) * np.sqrt(12)
    for pair in (centred[0] * centred[1], centred[1] * centred[2], centred[0, 1:] * centred[0, :-1]):
        assert abs(pair.mean()) < 4 / np.sqrt(pair.size)


def test_no_rows_and_no_width():
    assert uniforms(KEY, 0, 0, 3).shape == (3, 0)
    assert uniforms(KEY, 0, 3, 0).shape == (0, 3)


def test_rows_in_any_order():
    rows = np.array([7, 2**33, 3, 7, 100])
    found = uniforms_of(KEY, rows, 5)
    for place, row in enumerate(rows):
        np.testing.assert_array_equal(found[:, place : place + 1], uniforms(KEY, int(row), 1, 5))
    assert uniforms_of(KEY, rows[:0], 5).shape == (5, 0)
