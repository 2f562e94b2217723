"""Records of the anchored sampler, and row state after births."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Array, Nothing, dims, replace, struct
from ibpdist.data._base import Chunk
from ibpdist.inference.ascent.coordinate import align
from ibpdist.inference.ascent.params import GaussianModelParams
from ibpdist.model.observations._base import RowState
from ibpdist.model.observations.row_noise import RowPrecision

NO_ROW = -1
"""The owner of a feature that was not born in the last step."""


class Phase(IntEnum):
    """What a step does: count who has what, births and deaths, or flips."""

    COUNT = 0
    BIRTHS = 1
    FLIPS = 2


@struct("anchored-params", since=1)
class AnchoredParams:
    """`now` are the features; the others are what the next step needs.

    `first` (feature) is the place of the anchor in the order of the coming flips. A feature born in the
    last step begins in the row `owner` (feature) with the weight `mark`. Ids from `fresh` on were never
    used. `pairs` of features are tried after the coming flips (xor.py).
    `scale` is that of newborns. `likelihood` and `cost` (of weights with mean zero) are those of the rows,
    and `weight` (feature) sums their weights. `row_noise` is the term of the noise of rows.
    """

    now: GaussianModelParams
    phase: Array = dims()
    fresh: Array = dims()
    scale: Array = dims()
    likelihood: Array = dims()
    cost: Array = dims()
    first: Array = dims("feature")
    owner: Array = dims("feature")
    mark: Array = dims("feature")
    pairs: Array = dims("pair two")
    weight: Array = dims("feature", default=0.0)
    row_noise: Array = dims(default=0.0)


@struct("anchored-row-state", since=1)
class AnchoredState:
    """Row state, and the global row at which it starts."""

    now: RowState
    start: Array = dims(reduce="min")


@struct
class FlipSums:
    """After flips: the sums of the model, and those of the columns that the pairs would make."""

    model: Any
    xors: Any


@struct
class BirthSums:
    """After births and deaths: counts of holders, the first place of one and the sum of weights, of the
    features that there were; the newborns, in the order of their rows; and what log likelihood, cost and the
    term of row noise gained."""

    on: Array = dims("feature")
    first: Array = dims("feature", reduce="min")
    weight: Array = dims("feature")
    rows: Array = dims()
    likelihood: Array = dims()
    cost: Array = dims()
    row_noise: Array = dims()
    owner: Array = dims("born", reduce="concat", along="born")
    mark: Array = dims("born", reduce="concat", along="born")
    place: Array = dims("born", reduce="concat", along="born")
    mean: Array = dims("born column", reduce="concat", along="born")


def no_anchors(features: int) -> dict[str, Any]:
    """Features without anchors, none of them newborn."""
    return {
        "first": np.full(features, np.inf),
        "owner": np.full(features, NO_ROW),
        "mark": np.zeros(features),
        "pairs": np.zeros((0, 2), np.int64),
    }


def _with_precision(state: RowState, even: bool) -> RowState:
    """Row state that has precisions of rows where there are such, and only there."""
    if even == isinstance(state.precision, Nothing):
        return state
    if even:
        return replace(state, precision=NOTHING)
    return replace(state, precision=RowPrecision(np.ones(state.z.shape[1], state.z.dtype)))


def joined(state: RowState, params: AnchoredParams, start: int, weighted: bool) -> RowState:
    """Row state for the features of `params`: newborns are with their owners. `weighted` tells whether rows
    keep weights, which row state without a feature does not show."""
    state = _with_precision(state, isinstance(params.now.observation.row_noise, Nothing))
    made = align(state, params.now)
    if made is state:
        return state
    if weighted and not state.w.shape[0]:
        made = replace(made, w=np.zeros_like(made.z))
    new = ~np.isin(params.now.ids, state.ids)
    mine = new & (params.owner >= start) & (params.owner < start + state.z.shape[1])
    for k in np.flatnonzero(mine):
        place = int(params.owner[k]) - start
        made.z[k, place] = 1
        if weighted:
            made.w[k, place] = params.mark[k]
    return made


def order(chunk: Chunk, draws: Draws) -> NDArray[np.float64]:
    """The place of each row in the order of a step of flips."""
    found: NDArray[np.float64] = draws.uniform("order", chunk.start, chunk.rows, 1)[0]
    return found


def among(old: int, born: int, draws: Draws) -> NDArray[np.intp]:
    """Which of the old features and then the newborns comes at each place: newborns at any places, the
    old ones between them as they were. Features flip in this order, which must not tell their age."""
    places = draws.generator("places").permutation(old + born)
    found = np.empty(old + born, np.intp)
    found[np.sort(places[born:])] = np.arange(old)
    found[places[:born]] = old + np.arange(born)
    return found
