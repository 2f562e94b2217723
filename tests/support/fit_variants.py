"""Variants of a fit on a command line, tables of results, and what a fit predicts of cells."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

import ibpdist as ibp
from ibpdist.catalog.spec import scalar

Matrix = NDArray[np.float64]
SYSTEM = "fa-vi-infinite"


@dataclass(frozen=True)
class Variant:
    """A system with settings, as pairs of name and value."""

    system: str = SYSTEM
    settings: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return " ".join([self.system, *(f"{name}={value}" for name, value in self.settings)])

    def fit(self, x: Matrix, features: int, seed: int = 0, **more: Any) -> xr.DataTree:
        """A fit in this process; `more` are options that are not the variant's."""
        options = dict(self.settings) | more
        result: xr.DataTree = ibp.fit(x, system=self.system, K=features, seed=seed, serial=True, **options)
        return result


def add_variants(parser: argparse.ArgumentParser) -> None:
    """Options --system and --set."""
    parser.add_argument("--system", nargs="+", default=[SYSTEM], help="systems to fit")
    parser.add_argument(
        "--set",
        nargs="*",
        action="append",
        type=_pair,
        metavar="NAME=VALUE",
        help="settings of the fits; each --set is a variant, and an empty one has default settings",
    )


def variants_of(options: argparse.Namespace) -> list[Variant]:
    """Every system with each of the groups of settings."""
    groups = [tuple(group) for group in options.set or [[]]]
    return [Variant(system, group) for system, group in product(options.system, groups)]


def _pair(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE")
    return name, scalar(value)


def predicted(result: xr.DataTree, x: Matrix) -> Matrix:
    """(row, column) posterior mean of the cells of rows, of which NaN are not seen, in their units."""
    made: Matrix = ibp.transform(result, x, serial=True)["mean"].values
    return made


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width, the first to the left."""
    widths = [max(len(line[i]) for line in (header, *rows)) for i in range(len(header))]
    lines = []
    for line in (header, *rows):
        cells = [line[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(line[1:], widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
