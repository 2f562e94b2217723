"""A corpus from a package registry: the docstrings of libraries that are installed, as bags of words.

    python -m tests.benchmarks.docstrings FOLDER [--libraries numpy scipy ...] [--words 60]

Without --libraries these are the libraries that ibpdist and its extras `test` and `benchmark` ask for by
name. Files are read and never imported, so the corpus depends on the installed versions alone. A word is a
run of at least three letters, in lower case. In this order the command drops

    docstrings with fewer than --words words,
    common words: those of more than a fifth of the docstrings,
    near-duplicates: docstrings that share more than .6 of the words of the shorter one with an earlier one
        that is kept,
    rare words: those of fewer than five docstrings.

FOLDER gets docword.txt and vocab.txt, which `ibpdist ingest docword.txt --vocabulary vocab.txt` reads and
`tests.benchmarks.perplexity --data FOLDER` too. The command prints what became of each library, and a
fingerprint of the counts.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

EXTRAS = ("test", "benchmark")
COMMON, RARE = 0.2, 5
"""Words of more than this share of the documents, and of fewer than so many documents, are dropped."""
ALIKE = 0.6
BLOCK = 256
WORD = re.compile(r"[a-z]{3,}")
NAME = re.compile(r"[A-Za-z0-9._-]+")
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

Bag = Counter[str]


def required(extras: Sequence[str] = EXTRAS) -> list[str]:
    """Libraries that ibpdist and its extras ask for by name, as far as they are installed."""
    found = set()
    for line in metadata.requires("ibpdist") or []:
        wanted, _, marker = line.partition(";")
        name = NAME.match(wanted)
        extra = re.search(r"extra == ['\"](\w+)['\"]", marker)
        if name and (extra is None or extra[1] in extras):
            found.add(name[0].lower())
    installed = {one.metadata["Name"].lower() for one in metadata.distributions()}
    return sorted(found & installed)


def docstrings(library: str) -> Iterator[str]:
    """The docstrings of all Python files of a library, in the order of files and lines."""
    one = metadata.distribution(library)
    for file in sorted(str(file) for file in one.files or [] if file.suffix == ".py"):
        path = Path(str(one.locate_file(file)))
        if path.is_file():
            yield from of_source(path.read_text("utf-8", errors="replace"))


def of_source(text: str) -> Iterator[str]:
    """The docstrings of a file, none of one that is no Python of this version."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError):
            return
    nodes = [node for node in ast.walk(tree) if isinstance(node, DOCUMENTED)]
    for node in sorted(nodes, key=lambda node: getattr(node, "lineno", 0)):
        yield ast.get_docstring(node) or ""


def words(text: str) -> Bag:
    return Counter(WORD.findall(text.lower()))


def frequencies(bags: Sequence[Bag]) -> Bag:
    """In how many documents words are."""
    return Counter(word for bag in bags for word in bag)


def without(bags: Sequence[Bag], dropped: set[str]) -> list[Bag]:
    return [Counter({word: count for word, count in bag.items() if word not in dropped}) for bag in bags]


def pruned(bags: Sequence[Bag], least: int) -> tuple[list[Bag], NDArray[np.intp]]:
    """Documents of at least so many words, without near-duplicates, common words and rare words; and which
    documents are left."""
    places = np.array([place for place, bag in enumerate(bags) if bag.total() >= least], np.intp)
    long = [bags[place] for place in places]
    common = {word for word, count in frequencies(long).items() if count > COMMON * len(long)}
    kept = without(long, common)
    different = first_of_their_kind(kept)
    kept = [kept[place] for place in different]
    rare = {word for word, count in frequencies(kept).items() if count < RARE}
    return without(kept, rare), places[different]


def first_of_their_kind(bags: Sequence[Bag]) -> NDArray[np.intp]:
    """Documents that share at most ALIKE of the words of the shorter one with each earlier one that stays."""
    tokens, lengths = occurrences(bags), np.array([bag.total() for bag in bags])
    stays = np.ones(len(bags), bool)
    for start in range(0, len(bags), BLOCK):
        shared = (tokens[start : start + BLOCK] @ tokens.T).tocoo()
        first, second = shared.row + start, shared.col
        alike = (second < first) & (shared.data > ALIKE * np.minimum(lengths[first], lengths[second]))
        order = np.argsort(first[alike], kind="stable")
        for one, earlier in zip(first[alike][order], second[alike][order], strict=True):
            stays[one] &= not stays[earlier]
    return np.flatnonzero(stays)


def occurrences(bags: Sequence[Bag]) -> csr_array:
    """(document, k-th occurrence of a word) ones: documents share sum_v min(x_v, y_v) tokens."""
    numbers: dict[tuple[str, int], int] = {}
    columns, starts = [], [0]
    for bag in bags:
        for word, count in bag.items():
            columns += [numbers.setdefault((word, again), len(numbers)) for again in range(count)]
        starts.append(len(columns))
    ones = np.ones(len(columns), np.int32)
    return csr_array((ones, np.array(columns, np.int64), starts), shape=(len(bags), len(numbers)))


def write(folder: Path, bags: Sequence[Bag]) -> str:
    """Write docword.txt and vocab.txt; the fingerprint of the former."""
    vocabulary = sorted(frequencies(bags))
    number = {word: place for place, word in enumerate(vocabulary, 1)}
    lines = [
        f"{document} {number[word]} {bag[word]}\n"
        for document, bag in enumerate(bags, 1)
        for word in sorted(bag)
    ]
    text = "".join([f"{len(bags)}\n{len(vocabulary)}\n{len(lines)}\n", *lines])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "docword.txt").write_text(text)
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in vocabulary))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--libraries", nargs="+", metavar="NAME")
    parser.add_argument("--words", type=int, default=60, help="the fewest words of a document")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    bags: list[Bag] = []
    owners: list[str] = []
    for library in options.libraries or required():
        made = [words(text) for text in docstrings(library)]
        bags += made
        owners += [f"{library} {metadata.version(library)}"] * len(made)
    kept, places = pruned(bags, options.words)
    fingerprint = write(options.folder, kept)
    for owner, count in Counter(owners[place] for place in places).items():
        print(f"{count:6,} {owner}")
    tokens = sum(bag.total() for bag in kept)
    print(f"{len(kept):,} documents, {len(frequencies(kept)):,} words, {tokens:,} tokens, {fingerprint}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
