"""Tokens that are held out: exact draws without replacement, whatever the chunks."""

import numpy as np
import pytest
from scipy.stats import chisquare, hypergeom

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data._base import Chunk
from ibpdist.data.arrays import ArrayData
from ibpdist.data.entries import entries_of
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.data.splits import held, parse_split
from ibpdist.kernels.token_split import hide_tokens
from tests.support.matrices import values


def counts(rows=40, columns=9, seed=0):
    return np.random.default_rng(seed).poisson(1.3, (rows, columns)).astype(float)


def test_seen_and_hidden_tokens_are_those_of_the_rows():
    x, split = counts(), HeldTokens(share=0.5, rows=0.4, seed=3)
    source = ArrayData(x, 16)
    seen, chosen = values(split.train(source)), split.chosen(0, 40)
    lengths = x.sum(axis=1)
    least, most = (np.where(chosen, how(lengths / 2), lengths) for how in (np.floor, np.ceil))
    assert (least <= seen.sum(axis=1)).all()
    assert (seen.sum(axis=1) <= most).all()
    assert 0 < chosen.sum() < 40
    assert (seen <= x).all()
    hidden = []
    for index in range(source.chunks):
        chunk = source.read(index)
        entries = entries_of(chunk)
        hidden.append(entries.with_counts(split.hidden(chunk.start, entries)).dense(9, x.dtype))
    np.testing.assert_array_equal(np.concatenate(hidden) + seen, x)


def test_chunks_do_not_matter():
    x, split = counts(60), HeldTokens(rows=1.0, seed=1)
    whole = values(split.train(ArrayData(x, 60)))
    for chunk_rows in (1, 7, 16):
        np.testing.assert_array_equal(values(split.train(ArrayData(x, chunk_rows))), whole)
    assert (values(HeldTokens(rows=1.0, seed=2).train(ArrayData(x, 60))) != whole).any()


def test_the_draws_are_hypergeometric():
    """Of 5 + 3 + 2 tokens 4 are hidden: how many of the first kind, over 20,000 rows."""
    size = 20_000
    starts = np.arange(0, 3 * size + 1, 3)
    columns = np.tile([5, 3, 2], size)
    key = np.array([11, 12], np.uint64)
    hidden = hide_tokens(np.arange(size), starts, columns, np.full(size, 4), key).reshape(-1, 3)
    assert (hidden.sum(axis=1) == 4).all()
    for at, kind in enumerate((5, 3, 2)):
        seen = np.bincount(hidden[:, at], minlength=5)
        law = hypergeom(10, kind, 4).pmf(np.arange(5))
        assert chisquare(seen[law > 0], size * law[law > 0]).pvalue > 1e-4
    both = np.corrcoef(hidden[:-1, 0], hidden[1:, 0])[0, 1]
    assert abs(both) < 4 / np.sqrt(size), "rows are independent"


def test_short_rows_keep_what_they_have():
    x = np.array([[0.0, 0, 0], [1, 0, 0], [1, 0, 1], [0, 3, 0]])
    seen = values(HeldTokens(share=0.5, rows=1.0).train(ArrayData(x, 4)))
    assert seen.sum(axis=1).tolist()[:3] == [0, 1, 1]
    assert seen.sum(axis=1)[3] in (1, 2)


def test_the_number_of_hidden_tokens_is_rounded_at_random():
    """Of seven tokens a tenth, 0.7 on average; of one none."""
    x = np.zeros((4000, 2))
    x[:, 0] = np.tile([7.0, 1.0], 2000)
    hidden = (x - values(HeldTokens(share=0.1, rows=1.0).train(ArrayData(x, 500)))).sum(axis=1)
    assert set(hidden[::2]) == {0.0, 1.0}
    assert hidden[::2].mean() == pytest.approx(0.7, abs=4 * np.sqrt(0.21 / 2000))
    assert not hidden[1::2].any()


def test_the_recipe_as_text():
    split = parse_split("tokens:share=0.3,rows=1,seed=4")
    assert split == HeldTokens(0.3, 1.0, 4)
    assert parse_split(split.text) == split
    source = ArrayData(counts(), 16)
    assert held(source, split.text).fingerprint == split.train(source).fingerprint != source.fingerprint


@pytest.mark.parametrize(
    ("text", "words"),
    [("tokens:share=1", "share is 1.0: expected more than 0"), ("tokens:rows=0", "rows is 0.0: expected")],
)
def test_wrong_recipes(text, words):
    with pytest.raises(UsageError, match=words):
        parse_split(text)


@pytest.mark.parametrize(("value", "words"), [(0.5, "is no count"), (-1.0, "is no count")])
def test_what_is_no_count_is_refused_with_its_place(value, words):
    x = counts(6, 4)
    x[5, 2] = value
    with pytest.raises(InputError, match=words) as error:
        entries_of(Chunk(0, 100, x))
    assert (error.value.row, error.value.column, error.value.value) == (105, 2, f"{value:g}")


def test_missing_counts_are_refused():
    x, observed = counts(3, 2), np.ones((3, 2), bool)
    observed[1, 0] = False
    with pytest.raises(InputError, match="counts have no missing cells") as error:
        entries_of(Chunk(0, 7, np.where(observed, x, 0.0), observed))
    assert (error.value.row, error.value.column) == (8, 0)


def test_entries_and_dense_counts_are_the_same():
    x = counts(8, 5)
    entries = entries_of(Chunk(0, 0, x))
    np.testing.assert_array_equal(entries.dense(5, x.dtype), x)
    np.testing.assert_array_equal(entries.lengths, x.sum(axis=1))
    assert entries.rows == 8
