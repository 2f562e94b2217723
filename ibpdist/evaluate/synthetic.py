"""Data with a planted truth: prior x weights x noise, any number of rows, in memory or as a store.

    pi ~ prior,   A_kd ~ N(0, scale),   z_nk ~ Bernoulli(pi_k),   x_nd ~ N(sum_k z_nk w_nk A_kd, noise_d)

Everything about a row is a function of (seed, row): rows are made in blocks whose size depends
on the number of columns alone, so chunking changes no bit and a longer dataset begins with the
shorter one. Kinds: `linear-gaussian` (w = 1), `factor-analysis` (w normal), `positive-factors` (w
exponential) and `images` (four shapes on a 6 x 6 grid, every shape in half of the images).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.threads import one_thread
from ibpdist.data import layout

if TYPE_CHECKING:
    import xarray as xr

    from ibpdist.base.progress import Count
    from ibpdist.data.store import Dataset
    from ibpdist.model.weights._base import Weights

Vector = NDArray[np.float64]
Matrix = NDArray[Any]

KINDS = {
    "linear-gaussian": "unit",
    "factor-analysis": "normal",
    "positive-factors": "exponential",
    "images": "unit",
}
"""Weights of each kind."""

SHAPES = {
    "cross": (".#....", "######", ".#....", ".#....", ".#....", ".#...."),
    "frame": ("......", "......", "..####", "..#..#", "..#..#", "..####"),
    "block": ("......", "......", "......", "...##.", "...##.", "......"),
    "diagonal": (".....#", "....#.", "...#..", "..#...", ".#....", "#....."),
}
"""The planted features of `images`."""

PRIORS = ("stick_breaking", "beta_bernoulli", "beta_process")

_BLOCK_ROWS, _BLOCK_CELLS = 1024, 1 << 20


@dataclass(frozen=True)
class Recipe:
    """What to draw. `noise` and `scale` are variances; `missing` is a share of the cells."""

    kind: str
    rows: int
    columns: int
    features: int
    noise: tuple[float, ...]
    seed: int
    prior: str
    weights: str
    mass: float
    scale: float
    missing: float
    dtype: str

    @property
    def block(self) -> int:
        """Rows that are drawn together: bounded in cells, and never a matter of chunking."""
        fitting = max(1, _BLOCK_CELLS // self.columns)
        return min(_BLOCK_ROWS, 1 << (fitting.bit_length() - 1))


@dataclass(frozen=True)
class Planted:
    """The global truth: `prevalence` (feature), `dictionary` (feature, column), `noise` (column)."""

    prevalence: Vector
    dictionary: Vector
    noise: Vector


@dataclass(frozen=True)
class Drawn:
    """Rows and their truth: `x` (row, column), `z` and `w` (row, feature), `observed` (row, column) or None.

    `x` is zero where a cell is missing.
    """

    x: Matrix
    z: NDArray[np.bool_]
    w: Matrix
    observed: NDArray[np.bool_] | None


def recipe(
    kind: str,
    rows: int,
    columns: int | None = None,
    features: int | None = None,
    noise: float | Sequence[float] = 0.25,
    seed: int = 0,
    *,
    prior: str = "stick_breaking",
    weights: str | None = None,
    mass: float | None = None,
    scale: float = 1.0,
    missing: float = 0.0,
    dtype: str = "float32",
) -> Recipe:
    """A checked recipe; `mass` is half the number of features unless given."""
    if kind not in KINDS:
        raise UsageError(f"there is no synthetic data {kind!r}; choose one of {', '.join(KINDS)}")
    columns, features = _sizes(kind, columns, features)
    made = Recipe(
        kind=kind,
        rows=rows,
        columns=columns,
        features=features,
        noise=_variances(noise, columns),
        seed=seed,
        prior=prior.replace("-", "_"),
        weights=weights or KINDS[kind],
        mass=max(features, 1) / 2 if mass is None else mass,
        scale=scale,
        missing=missing,
        dtype=dtype,
    )
    _check(made)
    return made


def plant(made: Recipe) -> Planted:
    """Draw what all rows share."""
    noise = np.asarray(made.noise)
    if made.kind == "images":
        return Planted(np.full(len(SHAPES), 0.5), shapes(), noise)
    prevalence = _prevalence(made, Draws(made.seed).generator("prevalence"))
    rng = Draws(made.seed).generator("dictionary")
    dictionary = np.sqrt(made.scale) * rng.standard_normal((made.features, made.columns))
    return Planted(prevalence, dictionary, noise)


def draw(made: Recipe, planted: Planted, start: int, stop: int) -> Drawn:
    """The rows `start .. stop` of a recipe."""
    with one_thread():
        parts = [_rows_of_block(made, planted, b, start, stop) for b in _blocks(made, start, stop)]
    observed = [part.observed for part in parts if part.observed is not None]
    return Drawn(
        np.concatenate([part.x for part in parts]),
        np.concatenate([part.z for part in parts]),
        np.concatenate([part.w for part in parts]),
        np.concatenate(observed) if observed else None,
    )


def synthetic(
    kind: str,
    rows: int,
    columns: int | None = None,
    features: int | None = None,
    noise: float | Sequence[float] = 0.25,
    seed: int = 0,
    **options: Any,
) -> xr.Dataset:
    """Data in memory with its truth: x, z, (w,) dictionary, prevalence, noise; missing cells are NaN.

    `options` are those of `recipe`: prior, weights, mass, scale, missing, dtype.
    """
    import xarray as xr

    made = recipe(kind, rows, columns, features, noise, seed, **options)
    planted = plant(made)
    drawn = draw(made, planted, 0, rows)
    x = drawn.x if drawn.observed is None else np.where(drawn.observed, drawn.x, np.nan).astype(made.dtype)
    held: dict[str, Any] = {"x": (("row", "column"), x), "z": (("row", "feature"), drawn.z)}
    if _weights(made).has_weights:
        held["w"] = (("row", "feature"), drawn.w)
    return xr.Dataset(held | truth(planted), attrs=described(made))


def synthesise(
    kind: str,
    store: str | Path,
    *,
    rows: int,
    columns: int | None = None,
    features: int | None = None,
    noise: float | Sequence[float] = 0.25,
    seed: int = 0,
    keep_z: bool = False,
    chunk_rows: int | None = None,
    overwrite: bool = False,
    progress: Count | None = None,
    **options: Any,
) -> Dataset:
    """Write synthetic data to a store, a chunk at a time, with the truth beside them.

    The store holds dictionary, prevalence and noise; with `keep_z` also z and w, which are
    gathered in memory. `chunk_rows` is that of the store; `options` are those of `recipe`.
    """
    from ibpdist.data.output_path import refuse_place
    from ibpdist.data.store import create, open_dataset

    refuse_place(store)
    made = recipe(kind, rows, columns, features, noise, seed, **options)
    planted, kept = plant(made), []
    step = layout.default_chunk_rows(made.columns, np.dtype(made.dtype))
    held = create(
        store,
        columns=made.columns,
        dtype=made.dtype,
        chunk_rows=chunk_rows,
        attributes=described(made),
        overwrite=overwrite,
    )
    with held as writer:
        for start in range(0, rows, step):
            drawn = draw(made, planted, start, min(start + step, rows))
            writer.append(drawn.x, drawn.observed)
            kept += [(drawn.z, drawn.w)] if keep_z else []
            if progress:
                progress(min(start + step, rows), rows)
        for name, (dims, values) in (truth(planted) | _row_truth(kept)).items():
            writer.put(name, dims, values)
    return open_dataset(store)


def stored(store: Dataset, name: str) -> Matrix:
    """A planted array of a synthetic store: dictionary, prevalence, noise, and z or w if they were kept."""
    if name not in store.extras:
        raise UsageError(f"{store.path}: holds no planted {name}; it needs data made by `ibpdist synth`")
    return store.extra(name)  # noqa: S610


def truth(planted: Planted) -> dict[str, tuple[tuple[str, ...], Vector]]:
    """The planted globals with their dims, as they are stored beside the data."""
    return {
        "dictionary": (("feature", "column"), planted.dictionary),
        "prevalence": (("feature",), planted.prevalence),
        "noise": (("column",), planted.noise),
    }


def _row_truth(kept: list[tuple[NDArray[np.bool_], Matrix]]) -> dict[str, tuple[tuple[str, ...], Matrix]]:
    if not kept:
        return {}
    z, w = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    held: dict[str, tuple[tuple[str, ...], Matrix]] = {"z": (("row", "feature"), z)}
    return held | ({"w": (("row", "feature"), w)} if w.shape[1] else {})


def described(made: Recipe) -> dict[str, Any]:
    """The recipe as attributes."""
    kept = {
        name: getattr(made, name) for name in ("kind", "seed", "prior", "weights", "mass", "scale", "missing")
    }
    return kept | ({"image": [6, 6]} if made.kind == "images" else {})


def shapes() -> Vector:
    """(4, 36) the planted images, a shape a row."""
    return np.array(
        [[cell == "#" for line in shape for cell in line] for shape in SHAPES.values()], dtype=float
    )


def _blocks(made: Recipe, start: int, stop: int) -> Iterator[int]:
    yield from range(start // made.block, -(-stop // made.block))


def _rows_of_block(made: Recipe, planted: Planted, block: int, start: int, stop: int) -> Drawn:
    """A whole block is made and cut, so that the product has one shape and one set of bits."""
    first = block * made.block
    whole = _block(made, planted, block)
    cut = slice(max(start - first, 0), min(stop - first, made.block))
    observed = None if whole.observed is None else whole.observed[cut]
    return Drawn(whole.x[cut], whole.z[cut], whole.w[cut], observed)


def _block(made: Recipe, planted: Planted, block: int) -> Drawn:
    draws, first, width = Draws(made.seed), block * made.block, len(planted.prevalence)
    weights = _weights(made)
    z = planted.prevalence[:, None] > draws.uniform("z", first, made.block, width)
    normals = draws.normal("w", first, made.block, width if weights.has_weights else 0)
    w = weights.sample(width, made.block, normals) if weights.has_weights else normals
    y = weights.combine(z, w).T.astype(made.dtype)
    # The cells come from a generator keyed by the block: several times faster than by the cell.
    shape = (made.block, made.columns)
    x: Matrix = draws.at(block).generator("noise").standard_normal(shape, dtype=np.dtype(made.dtype))
    x *= np.sqrt(planted.noise).astype(made.dtype)
    x += y @ planted.dictionary.astype(made.dtype)
    if not made.missing:
        return Drawn(x, z.T, w.T.astype(made.dtype), None)
    observed = draws.at(block).generator("missing").random(shape, dtype=np.float32) >= made.missing
    x[~observed] = 0
    return Drawn(x, z.T, w.T.astype(made.dtype), observed)


def _prevalence(made: Recipe, rng: np.random.Generator) -> Vector:
    from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
    from ibpdist.model.priors.beta_process import BetaProcess
    from ibpdist.model.priors.stick_breaking import StickBreaking

    if not made.features:
        return np.empty(0)
    prior = {p.name: p for p in (StickBreaking, BetaBernoulli, BetaProcess)}[made.prior]
    return prior(mass=made.mass).sample(made.features, rng)


def _weights(made: Recipe) -> Weights:
    from ibpdist.catalog import systems

    return systems.weights_of(made.weights)


def _sizes(kind: str, columns: int | None, features: int | None) -> tuple[int, int]:
    if kind == "images":
        if columns not in (None, 36) or features not in (None, len(SHAPES)):
            raise UsageError("images have 36 columns and 4 features; leave both out")
        return 36, len(SHAPES)
    if columns is None or features is None:
        raise UsageError(f"synthetic data {kind!r} needs a number of columns and a number of features")
    return columns, features


def _variances(noise: float | Sequence[float], columns: int) -> tuple[float, ...]:
    values = np.asarray(noise, dtype=float)
    return tuple(float(v) for v in (np.full(max(columns, 0), values) if values.ndim == 0 else values.ravel()))


def _check(made: Recipe) -> None:
    """Refuse a recipe in one sentence."""
    from ibpdist.catalog import systems

    known = systems.weights_names()
    wrong = {
        f"rows is {made.rows}, expected at least 1": made.rows < 1,
        f"columns is {made.columns}, expected at least 1": made.columns < 1,
        f"features is {made.features}, expected 0 or more": made.features < 0,
        f"seed is {made.seed}, expected 0 or more": made.seed < 0,
        f"noise has {len(made.noise)} variances, expected one for each of {made.columns} columns": (
            len(made.noise) != made.columns
        ),
        "noise is a variance, expected a positive number": not all(0 < v < np.inf for v in made.noise),
        f"mass is {made.mass}, expected a positive number": not 0 < made.mass < np.inf,
        f"scale is {made.scale}, expected a positive variance": not 0 < made.scale < np.inf,
        f"missing is {made.missing}, expected a share from 0 to below 1": not 0 <= made.missing < 1,
        f"there is no prior {made.prior!r}; choose one of {', '.join(PRIORS)}": made.prior not in PRIORS,
        f"there are no weights {made.weights!r}; choose {' or '.join(known)}": made.weights not in known,
        f"dtype is {made.dtype!r}, expected float32 or float64": made.dtype not in ("float32", "float64"),
    }
    for sentence, holds in wrong.items():
        if holds:
            raise UsageError(sentence)
