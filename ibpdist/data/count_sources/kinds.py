"""Which format of counts a file has, and how it is opened."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.count_sources._base import CountTable
from ibpdist.data.count_sources.compressed_rows import is_sparse_npz, sparse_npz
from ibpdist.data.count_sources.docword import Docword
from ibpdist.data.count_sources.lda_c import LdaC
from ibpdist.data.count_sources.matrix_market import MatrixMarket
from ibpdist.data.count_sources.text import TextFile

_DOCUMENT = re.compile(r"\d+( \d+:\d+)+ *\Z")
Words = NDArray[Any] | None
OPEN: Mapping[str, Callable[[Path, Words, bool], CountTable]] = {
    "docword": lambda path, words, turned: Docword(path, words),
    "lda-c": lambda path, words, turned: LdaC(path, words),
    "matrix market": MatrixMarket,
    "npz": lambda path, words, turned: sparse_npz(path, words),
}


def kind_of(path: Path, suffix: str) -> str | None:
    """The format of a file of counts; None of other files."""
    if suffix == ".mtx":
        return "matrix market"
    if suffix == ".h5ad":
        return "anndata"
    if suffix == ".npz":
        return "npz" if is_sparse_npz(path) else None
    lines = TextFile(path).first(4) if suffix in (".txt", ".dat", ".ldac", ".data") else []
    sizes = [line.strip().isdigit() for line in lines]
    if sizes[:3] == [True] * 3 and len(lines[-1].split()) > 1:
        return "docword"
    if lines and _DOCUMENT.match(lines[0]):
        return "lda-c"
    return None


def open_counts(kind: str, path: Path, vocabulary: Path | None, turned: bool) -> CountTable:
    """The table of a file that has no names of its own; `turned` takes its columns as rows."""
    if turned and kind != "matrix market":
        raise refuse_turned(path.name)
    return OPEN[kind](path, None if vocabulary is None else words_of(vocabulary), turned)


def refuse_turned(name: str) -> UsageError:
    return UsageError(f"{name}: its columns cannot be taken as rows: turn the matrix first")


def words_of(path: Path) -> NDArray[Any]:
    """The words of a vocabulary, one a line."""
    try:
        words = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        raise InputError("does not exist: check the name", file=str(path), kind="file") from None
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text: save the file as UTF-8", file=path.name, kind="format") from None
    empty = next((at for at, word in enumerate(words) if not word.strip()), None)
    if empty is not None:
        raise InputError(f"line {empty + 1} holds no word", file=path.name, kind="format")
    return np.array([word.strip() for word in words], dtype=np.str_)
