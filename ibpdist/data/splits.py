"""What is held out of training, by recipe: a pure function of (seed, global row), whatever the chunks.

    cells:share=0.333,seed=7        in the last half of the rows one set of columns is hidden (scores.md 1)
    cells:share=0.333,fresh=true    the same with a set of its own for each row
    rows:share=0.1,seed=7           each row is held out with this probability
    tokens:share=0.5,rows=0.25      half of the tokens of a quarter of the rows (held_tokens.py)

`held` gives what a fit may see; `HeldCells.mask`, `HeldRows.test` and `HeldTokens.hidden` give the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk, Labels, Source
from ibpdist.data._split import TrainingPart, fingerprint, recipe, refuse_share
from ibpdist.data.dense_rows import DenseRows
from ibpdist.data.held_tokens import HeldTokens
from ibpdist.data.wrapped import Wrapped

Mask = NDArray[np.bool_]
_TILE_CELLS = 1 << 18


@dataclass(frozen=True)
class HeldCells:
    """In the last `rows` of the rows a `share` of the columns is hidden: one set, or a fresh one a row."""

    share: float = 1 / 3
    rows: float = 0.5
    seed: int = 0
    fresh: bool = False

    def __post_init__(self) -> None:
        refuse_share("share", self.share)
        if not 0 < self.rows <= 1:
            raise UsageError(f"cells: rows is {self.rows}: expected more than 0 and at most 1")

    def train(self, source: Source) -> Source:
        """The source with the hidden cells unobserved."""
        if source.columns < 2:
            raise UsageError("cells cannot be held out of a single column: hold out rows")
        if isinstance(source, DenseRows):
            raise UsageError("cells of sparse data cannot be held out: hold out rows, rows:share=0.1")
        return HiddenCells(source, self)

    def mask(self, source: Source, index: int) -> Mask:
        """(row, column) the hidden cells of a chunk that are observed."""
        hidden = self.hidden(*source.bounds(index), source.rows, source.columns)
        observed = source.read(index).observed
        return hidden if observed is None else hidden & observed

    def hidden(self, start: int, stop: int, rows: int, columns: int) -> Mask:
        """(row, column) the hidden cells of rows start to stop, observed or not."""
        first = rows - int(rows * self.rows)
        out = np.zeros((stop - start, columns), dtype=bool)
        begin = max(start, first)
        if begin < stop:
            out[begin - start :] = self._sets(begin, stop, columns) if self.fresh else self.columns(columns)
        return out

    @property
    def text(self) -> str:
        return describe(self)

    def columns(self, columns: int) -> Mask:
        """(column,) the columns of the common set."""
        uniforms = Draws(self.seed).uniform("held cells", 0, 1, columns).T
        chosen: Mask = _smallest(uniforms, self._count(columns))[0]
        return chosen

    def _sets(self, start: int, stop: int, columns: int) -> Mask:
        step = max(1, _TILE_CELLS // columns)
        draws, count = Draws(self.seed), self._count(columns)
        parts = [
            _smallest(draws.uniform("held cells", at, min(step, stop - at), columns).T, count)
            for at in range(start, stop, step)
        ]
        return np.concatenate(parts)

    def _count(self, columns: int) -> int:
        return min(columns - 1, max(1, round(self.share * columns)))


@dataclass(frozen=True)
class HeldRows:
    """Each row is held out with probability `share`; later rows change nothing for earlier ones."""

    share: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        refuse_share("share", self.share)

    def train(self, source: Source) -> Source:
        """The other rows, numbered without gaps."""
        return SomeRows(source, self, test=False)

    def test(self, source: Source) -> Source:
        """The rows held out, numbered without gaps."""
        return SomeRows(source, self, test=True)

    @property
    def text(self) -> str:
        return describe(self)

    def hidden(self, start: int, stop: int) -> Mask:
        """(row,) which of rows start to stop are held out."""
        mask: Mask = Draws(self.seed).uniform("held rows", start, stop - start, 1)[0] < self.share
        return mask


Split = HeldCells | HeldRows | HeldTokens
_KINDS: dict[str, type[Split]] = {"cells": HeldCells, "rows": HeldRows, "tokens": HeldTokens}


def held(source: Source, split: Split | str | float) -> Source:
    """What a fit may see; a number is the share of columns hidden in the last half of the rows."""
    return as_split(split).train(source)


def as_split(split: Split | str | float) -> Split:
    """A recipe from its text or from a share."""
    if isinstance(split, str):
        return parse_split(split)
    return HeldCells(share=float(split)) if isinstance(split, int | float) else split


def parse_split(text: str) -> Split:
    """The recipe in a text like `cells:share=0.2,seed=7`."""
    kind, _, rest = text.strip().partition(":")
    if kind not in _KINDS:
        raise UsageError(f"held-out {text!r}: starts with {kind!r}, expected {', '.join(_KINDS)}")
    known = {field.name: field.type for field in fields(_KINDS[kind])}
    values: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in rest.split(","))):
        name, _, value = part.partition("=")
        if name not in known:
            raise UsageError(f"held-out {text!r}: unknown key {name!r}, expected one of {', '.join(known)}")
        values[name] = _value(text, name, value, str(known[name]))
    return _KINDS[kind](**values)


def describe(split: Split) -> str:
    """The text that `parse_split` reads."""
    kind = next(name for name, known in _KINDS.items() if isinstance(split, known))
    return recipe(kind, split)


class HiddenCells(TrainingPart):
    """A source in which the cells of a recipe are not observed."""

    def read(self, index: int) -> Chunk:
        chunk = self.source.read(index)
        stop = chunk.start + chunk.rows
        visible = ~self.split.hidden(chunk.start, stop, self.rows, self.columns)
        if visible.all():
            return chunk
        observed = visible if chunk.observed is None else visible & chunk.observed
        return Chunk(index, chunk.start, np.where(observed, chunk.x, self.dtype.type(0)), observed)


class RowSplit(Protocol):
    """Decides of each row whether it is hidden."""

    def hidden(self, start: int, stop: int) -> Mask: ...

    @property
    def text(self) -> str:
        """What tells it from other splits; the fingerprint of its rows depends on it."""
        ...


class SomeRows(Wrapped):
    """The training or the test rows of a source. Chunks without such rows are left out.

    Which rows they are is decided once and kept, a bit for each row of the source.
    """

    def __init__(self, source: Source, split: RowSplit, *, test: bool) -> None:
        super().__init__(source)
        self.split, self._test = split, test
        self._packed = [np.packbits(self._decided(index)) for index in range(source.chunks)]
        sizes = np.array([int(self._kept(index).sum()) for index in range(source.chunks)])
        self._origin = np.flatnonzero(sizes)
        self._starts = np.concatenate([[0], np.cumsum(sizes[self._origin])])
        if not self.rows:
            role = "held out" if test else "left to train on"
            raise UsageError(f"no row of {source.rows} is {role}: choose another share or seed")

    @property
    def rows(self) -> int:
        return int(self._starts[-1])

    @property
    def chunks(self) -> int:
        return len(self._origin)

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.source, self.split.text, "test" if self._test else "train")

    def origin(self, index: int) -> NDArray[np.intp]:
        """Numbers in the whole source of the rows of a chunk."""
        at = int(self._origin[index])
        rows: NDArray[np.intp] = self.source.bounds(at)[0] + np.flatnonzero(self._kept(at))
        return rows

    def bounds(self, index: int) -> tuple[int, int]:
        if not 0 <= index < self.chunks:
            raise IndexError(f"chunk {index} of {self.chunks}")
        return int(self._starts[index]), int(self._starts[index + 1])

    def read(self, index: int) -> Chunk:
        self.bounds(index)
        return self.part(self.source.read(int(self._origin[index])))

    def part(self, chunk: Chunk) -> Chunk:
        """These rows of a chunk of the source, which has some, as `read` gives them."""
        index, kept = int(np.searchsorted(self._origin, chunk.index)), self._kept(chunk.index)
        return chunk.taken(kept, index, self.bounds(index)[0])

    def row_coords(self, index: int) -> dict[str, Labels]:
        origin = int(self._origin[index])
        kept = self._kept(origin)
        return {name: labels[kept] for name, labels in self.source.row_coords(origin).items()}

    def _kept(self, origin: int) -> Mask:
        """(row,) which rows of a chunk of the source are among these."""
        start, stop = self.source.bounds(origin)
        return np.unpackbits(self._packed[origin], count=stop - start).view(np.bool_)

    def _decided(self, origin: int) -> Mask:
        hidden = self.split.hidden(*self.source.bounds(origin))
        return hidden if self._test else ~hidden


def _smallest(uniforms: NDArray[np.float64], count: int) -> Mask:
    """(row, column) the `count` smallest entries of each row."""
    out = np.zeros(uniforms.shape, dtype=bool)
    np.put_along_axis(out, np.argpartition(uniforms, count - 1, axis=1)[:, :count], True, axis=1)
    return out


def _value(text: str, name: str, value: str, kind: str) -> Any:
    try:
        if kind == "bool":
            return {"true": True, "false": False}[value.casefold()]
        return int(value) if kind == "int" else float(value)
    except (ValueError, KeyError):
        raise UsageError(f"held-out {text!r}: {name} is {value!r}, which is not a {kind}") from None
