"""Features drawn as images, strip by strip. Arrays in, a file out; nothing is shown on a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ibpdist.base.errors import StorageError, UsageError
from ibpdist.data.urls import refuse_urls

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Images = NDArray[np.float64]

INK, MUTED, FRAME = "#1f2933", "#52606d", "#9aa5b1"
_CELL, _LABEL, _TITLE, _CAPTION, _GAP = 1.25, 1.35, 0.55, 0.24, 0.22
"""Inches: an image, the label of a strip, the title, a caption, the space between images."""


@dataclass(frozen=True)
class Strip:
    """A row of images (image, cell) under one label; None leaves a place empty.

    White is zero, red above, blue below; all strips of a picture share the scale unless
    `own_scale`.
    """

    label: str
    images: Sequence[ArrayLike | None]
    captions: Sequence[str] = field(default=())
    own_scale: bool = False


def draw_strips(path: str | Path, strips: Sequence[Strip], shape: tuple[int, int], title: str = "") -> Path:
    """Write a picture with one strip below the other; the format follows the name of the file."""
    refuse_urls(path)
    figure = strips_figure(strips, shape, title)
    target = Path(path)
    try:
        figure.savefig(target, dpi=160, facecolor="white")
    except OSError as error:
        raise StorageError(f"{target}: the picture cannot be written: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"{target}: {error}") from error
    return target


def strips_figure(strips: Sequence[Strip], shape: tuple[int, int], title: str = "") -> Figure:
    """The picture that `draw_strips` writes."""
    from matplotlib.figure import Figure

    width = _LABEL + max((len(s.images) for s in strips), default=1) * (_CELL + _GAP) + _GAP
    heights = [_CELL + _GAP + (_CAPTION if s.captions else 0.0) for s in strips]
    top = _TITLE if title else _GAP
    height = top + sum(heights)
    figure = Figure(figsize=(width, height))
    if title:
        figure.text(
            _GAP / width, 1 - 0.5 * top / height, title, fontsize=12, color=INK, va="center", weight="bold"
        )
    limit = _limit([s for s in strips if not s.own_scale])
    for strip, high in zip(strips, heights, strict=True):
        _strip(figure, strip, shape, top, _limit([strip]) if strip.own_scale else limit)
        top += high
    return figure


def _strip(figure: Figure, strip: Strip, shape: tuple[int, int], upper: float, limit: float) -> None:
    width, height = figure.get_size_inches()
    middle = 1 - (upper + _CELL / 2) / height
    figure.text(_GAP / width, middle, strip.label, fontsize=10, color=INK, va="center", linespacing=1.4)
    captions = [*strip.captions, *[""] * (len(strip.images) - len(strip.captions))]
    for place, (image, caption) in enumerate(zip(strip.images, captions, strict=True)):
        left = _LABEL + place * (_CELL + _GAP)
        box = (left / width, 1 - (upper + _CELL) / height, _CELL / width, _CELL / height)
        axes = figure.add_axes(box)
        _image(axes, None if image is None else _framed(image, shape), limit)
        axes.set_xlabel(caption, fontsize=8, color=MUTED, labelpad=4)


def _image(axes: Axes, image: Images | None, limit: float) -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set(color=FRAME, linewidth=0.8, linestyle="-" if image is not None else ":")
    if image is None:
        axes.text(
            0.5, 0.5, "none", transform=axes.transAxes, ha="center", va="center", color=FRAME, fontsize=9
        )
        return
    axes.imshow(image, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest", aspect="equal")


def _framed(image: ArrayLike, shape: tuple[int, int]) -> Images:
    cells: Images = np.asarray(image, dtype=float).ravel()
    if cells.size != shape[0] * shape[1]:
        raise UsageError(f"an image of {cells.size} cells is not {shape[0]} x {shape[1]}")
    return cells.reshape(shape)


def _limit(strips: Sequence[Strip]) -> float:
    """Largest absolute value, which takes the strongest colour."""
    drawn: list[Any] = [image for strip in strips for image in strip.images if image is not None]
    return max((float(np.abs(image).max(initial=0)) for image in map(np.asarray, drawn)), default=0.0) or 1.0
