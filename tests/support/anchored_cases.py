"""The anchored sampler as a transition of the joint law, on small problems."""

from __future__ import annotations

import numpy as np

from ibpdist.base.structs import NOTHING, Nothing, combine, replace
from ibpdist.data._base import Chunk
from ibpdist.inference.gibbs.anchored import Anchored
from ibpdist.inference.gibbs.anchors import AnchoredState, Phase, joined
from ibpdist.model.observations.row_noise import RowPrecision


def cut(chunk, sizes):
    """The chunk as chunks of these sizes."""
    ends = np.cumsum(sizes)
    return [
        Chunk(i, a, chunk.x[a:b], None if chunk.observed is None else chunk.observed[a:b])
        for i, (a, b) in enumerate(zip(ends - sizes, ends, strict=True))
    ]


def rows_of(state, rows):
    """Row state of some rows."""
    precision = NOTHING if isinstance(state.precision, Nothing) else RowPrecision(state.precision.mean[rows])
    return replace(state, z=state.z[:, rows], w=state.w[:, rows], precision=precision)


def precision_of(held):
    """Precisions of the rows of several states."""
    if isinstance(held[0].precision, Nothing):
        return NOTHING
    return RowPrecision(np.concatenate([state.precision.mean for state in held]))


def split(state, chunks):
    """Row state of each chunk."""
    return [
        AnchoredState(
            rows_of(state, slice(c.start, c.start + c.rows)),
            np.asarray(c.start),
        )
        for c in chunks
    ]


def step(alg, chunks, states, params, draws):
    """One step of all chunks."""
    made = [alg.local(c, state, params, draws) for c, state in zip(chunks, states, strict=True)]
    sums = made[0][1]
    for _, more in made[1:]:
        sums = combine(sums, more)
    return [state for state, _ in made], *alg.update(params, sums, draws)


def after_flips(alg, now, draws):
    """Parameters as a step of flips leaves them: births come next."""
    scale = alg.observation.common_scale(now.observation, draws.generator("first scale"))
    return replace(alg.initial(now), phase=np.asarray(int(Phase.BIRTHS)), scale=np.asarray(scale))


def whole(states):
    """Row state of all chunks together."""
    held = [state.now for state in states]
    return replace(
        held[0],
        precision=precision_of(held),
        z=np.concatenate([state.z for state in held], axis=1),
        w=np.concatenate([state.w for state in held], axis=1),
    )


def transition(alg, sizes, more=0):
    """Both steps of a sweep over chunks of these sizes, and `more` counts of the rows after them."""

    def both(chunk, now, state, draws):
        chunks = cut(chunk, sizes)
        states, params = split(state, chunks), after_flips(alg, now, draws)
        first = (2 + more) * draws.step
        for at in range(2 + more):
            if at >= 2:
                met = zip(chunks, states, strict=True)
                states = [replace(s, now=aligned(s.now, params, c.start)) for c, s in met]
                params = alg.initial(params.now)
            states, params, _ = step(alg, chunks, states, params, draws.at(first + at))
        return params.now, aligned(whole(states), params)

    return both


def aligned(state, params, start=0):
    """Row state for the features of the parameters, none of which are newborn."""
    return joined(state, params, start, state.w.shape[0] > 0)


def anchored(joint, **settings):
    return Anchored(joint.model(), **settings)
