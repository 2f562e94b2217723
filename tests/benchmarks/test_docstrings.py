"""The corpus of docstrings: what is read of a library, what is dropped, and that the files are counts."""

from importlib import metadata

import numpy as np

import ibpdist as ibp
from tests.benchmarks.docstrings import (
    docstrings,
    first_of_their_kind,
    main,
    of_source,
    pruned,
    required,
    words,
    write,
)
from tests.benchmarks.perplexity import corpus

SOURCE = '''"""Of the file."""
def second(): "Of a function."
class First:
    """Of a class."""
    async def inner(self):
        """Of a method."""
x = """No docstring."""
'''


def sentence(rng, length=30, vocabulary=400):
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = ["word" + letters[k // 26] + letters[k % 26] for k in range(vocabulary)]
    return " ".join(rng.choice(names, length, replace=False))


def test_docstrings_of_a_file_come_in_its_order():
    found = list(of_source(SOURCE))
    assert found == ["Of the file.", "Of a function.", "Of a class.", "Of a method."]
    assert list(of_source("def broken(:")) == []


def test_words_are_letters_in_lower_case():
    assert words("An Array of x1 and x_array: ARRAY, 3.14") == {"array": 3, "and": 1}


def test_libraries_are_those_that_the_package_asks_for():
    found = required()
    assert {"numpy", "scipy", "pytest"} <= set(found)
    assert not {"ibpdist", "iniconfig"} & set(found)  # nor what these ask for
    assert "pytest" not in required(())
    assert sum(map(len, docstrings("click"))) > 10_000


def test_a_document_that_shares_most_words_with_an_earlier_one_is_dropped():
    """Shared words are counted by occurrence, against the shorter document."""
    bags = [
        words(text) for text in ("aaa bbb ccc ddd eee", "aaa bbb ccc ddd", "aaa aaa aaa xxx yyy", "fff ggg")
    ]
    np.testing.assert_array_equal(first_of_their_kind(bags), [0, 2, 3])
    np.testing.assert_array_equal(first_of_their_kind(bags[1:]), [0, 1, 2])


def test_a_document_is_compared_only_with_those_that_stay():
    chain = ["aaa bbb ccc ddd", "bbb ccc ddd eee", "ddd eee fff ggg", "eee fff ggg hhh"]
    np.testing.assert_array_equal(first_of_their_kind([words(text) for text in chain]), [0, 2])


def test_short_documents_and_common_and_rare_words_are_dropped():
    rng = np.random.default_rng(0)
    texts = [f"everywhere {sentence(rng)}" for _ in range(300)] + ["too short"]
    texts[7] = texts[3]
    texts[9] += " seldom"
    kept, places = pruned([words(text) for text in texts], 20)
    np.testing.assert_array_equal(places, np.delete(np.arange(300), 7))
    left = {word for bag in kept for word in bag}
    assert left <= {word for text in texts for word in words(text)} - {"everywhere", "seldom", "short"}
    assert len(left) > 390


def test_the_files_are_read_as_counts(tmp_path):
    rng = np.random.default_rng(1)
    bags = [words(sentence(rng, 9, 40)) for _ in range(12)]
    assert write(tmp_path / "corpus", bags) == write(tmp_path / "again", bags)
    vocabulary = (tmp_path / "corpus" / "vocab.txt").read_text().split()
    x = corpus(tmp_path / "corpus")
    np.testing.assert_array_equal(x, [[bag[word] for word in vocabulary] for bag in bags])
    store = tmp_path / "x.zarr"
    ibp.ingest(tmp_path / "corpus" / "docword.txt", store, vocabulary=tmp_path / "corpus" / "vocab.txt")
    data = ibp.open_dataset(store)
    np.testing.assert_array_equal(np.concatenate([data.read(index).x for index in range(data.chunks)]), x)


def test_the_command_writes_the_corpus_of_a_library(tmp_path, capsys):
    assert main([str(tmp_path), "--libraries", "click", "--words", "40"]) == 0
    told = capsys.readouterr().out
    assert f"click {metadata.version('click')}" in told
    x = corpus(tmp_path)
    assert f"{len(x):,} documents, {x.shape[1]:,} words, {x.sum():,} tokens" in told
    assert len(x) > 20
    assert (x > 0).sum(axis=0).min() >= 5
    assert (x > 0).sum(axis=0).max() < 0.35 * len(x)  # near-duplicates are dropped after common words
