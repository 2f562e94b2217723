"""Features as lists of words."""

import numpy as np
import pytest

from ibpdist.report.words import top_words


def test_words_with_the_largest_shares_come_first():
    mean = np.array([[0.1, 0.6, 0.3], [0.5, 0.2, 0.3]])
    assert top_words(mean, ["oil", "bank", "wheat"], 2) == [
        [("bank", 0.6), ("wheat", 0.3)],
        [("oil", 0.5), ("wheat", 0.3)],
    ]


@pytest.mark.parametrize("count", [1, 3, 7, 40])
def test_they_are_those_of_a_sort(count):
    mean = np.random.default_rng(0).dirichlet(np.ones(40), 5)
    for shares, words in zip(mean, top_words(mean, np.arange(40), count), strict=True):
        order = np.argsort(-shares)[:count]
        assert [word for word, _ in words] == [str(at) for at in order]
        assert [share for _, share in words] == shares[order].tolist()


def test_equal_shares_are_in_the_order_of_columns():
    mean = np.array([[0.1, 0.2, 0.1, 0.2, 0.2, 0.2]])
    assert [word for word, _ in top_words(mean, list("abcdef"), 3)[0]] == ["b", "d", "e"]
    assert [word for word, _ in top_words(mean, list("abcdef"), 5)[0]] == ["b", "d", "e", "f", "a"]


def test_few_columns_no_labels_and_no_features():
    assert top_words(np.array([[0.4, 0.6]]), None) == [[("column 1", 0.6), ("column 0", 0.4)]]
    assert top_words(np.zeros((0, 3)), None) == []
