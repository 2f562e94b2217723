"""Fits with moves: small planted problems begun at a damaged truth, and places that forget row state."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ibpdist.base.structs import pack, unpack
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.engine.serial import Serial
from ibpdist.engine.sweeps import sweeps
from ibpdist.engine.work import Workbench
from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import ModelParams
from ibpdist.inference.ascent.search import Search
from ibpdist.inference.starts.begin import beginnings
from ibpdist.inference.starts.subsample_fit import sums_of
from tests.support.planted_rows import planted


@dataclass(frozen=True, eq=False)
class Given:
    """Begins at the globals that suit columns z (row, feature) of the complete data x."""

    x: np.ndarray
    z: np.ndarray
    name: ClassVar[str] = "given"

    def ask(self, model, features, survey, known, draws):
        return None

    def look(self, chunk, question, draws):
        raise AssertionError("nothing is asked")

    def init(self, model, features, survey, known, draws):
        z, rng = self.z.T.astype(np.float64), draws.generator("given")
        params = ModelParams(
            observation=model.observation.init(survey, len(z), rng),
            **beginnings(model, z.sum(axis=1), survey, rng, features),
        )
        return Coordinate(model, len(z)).update(params, sums_of(z, self.x), draws)[0]


@dataclass(frozen=True)
class Rows:
    """A source of rows in chunks of `width`, some cells missing."""

    x: np.ndarray
    observed: np.ndarray | None
    width: int

    @property
    def chunks(self):
        return -(-len(self.x) // self.width)

    def bounds(self, index):
        return index * self.width, min(len(self.x), (index + 1) * self.width)

    def read(self, index):
        rows = slice(*self.bounds(index))
        seen = None if self.observed is None else self.observed[rows]
        return Chunk(index, rows.start, np.ascontiguousarray(self.x[rows]), seen)


class Record:
    """All parameters of a fit as bytes would have them, and the row state that was saved."""

    def __init__(self):
        self.published, self.saved = {}, {}

    def publish(self, step, params):
        self.published[step] = packed(params)

    def params(self, step):
        return unpacked(self.published[step])

    def state(self, chunk, step):
        known = [at for at, index in self.saved if index == chunk and at <= step]
        return (max(known), unpacked(self.saved[max(known), chunk])) if known else None

    def save(self, step, first, states):
        self.saved |= {(step, first + at): packed(state) for at, state in enumerate(states)}
        return {}


@dataclass
class Forgetful:
    """Forgets what `lost(chunk, step)` names; `losses` counts."""

    lost: object
    losses: int = 0
    states: dict = field(default_factory=dict)

    def get(self, chunk):
        held = self.states.get(chunk)
        if held is not None and self.lost(chunk, held[0]):
            self.losses += 1
            return None
        return held

    def put(self, chunk, step, state):
        self.states[chunk] = (step, state)


def packed(record):
    outline, arrays = pack(record)
    return json.dumps(outline), {name: (a.dtype.str, a.shape, a.tobytes()) for name, a in arrays.items()}


def unpacked(held):
    outline, arrays = held
    made = {name: np.frombuffer(b, dtype).reshape(shape).copy() for name, (dtype, shape, b) in arrays.items()}
    return unpack(json.loads(outline), made)


def search(system="lg-vi-infinite", features=8, begin=None, agenda=None, **settings):
    """A system with moves from a given or a random start."""
    made = build(system, features, settings={"start": "random", "moves": True} | settings)
    fit = made.fit if begin is None else dataclasses.replace(made.fit, begin=begin)
    return Search(fit, made.agenda if agenda is None else agenda)


def damaged(seed, kind="useless", rows=60, columns=12, noise=0.4):
    """x, and columns z to begin at: two features as one, one as its complement, one missing or two
    complements, and one of no use or a constant one."""
    x, z, _ = planted(seed, rows, columns, (0.3, 0.4, 0.25, 0.35, 0.5), noise)
    union, fifth = np.maximum(z[:, 0], z[:, 1]), z[:, 4]
    if kind == "constant":
        return x, np.column_stack([union, 1 - z[:, 2], 1 - z[:, 3], fifth, np.ones(rows)])
    third = fifth * (np.arange(rows) % 3 == 0)
    useless = np.random.default_rng([seed, 9]).random(rows) < 0.05
    return x, np.column_stack([union, 1 - z[:, 2], fifth, third, useless])


def example(kind):
    """A search, its rows in four chunks, and a seed, such that many moves are accepted."""
    x, z = damaged(4, kind)
    return search(features=7, begin=Given(x, z)), Rows(x, None, 15), 4


def bench(alg, source, seed, history=None, memo=None):
    return Workbench(alg, source, history or Record(), seed, memo=memo)


def steps(alg, source, seed, most=400, settled=True, history=None, memo=None):
    """Snapshots up to the step after which nothing is tried, and the workbench."""
    place, found = bench(alg, source, seed, history, memo), []
    for now in sweeps(alg, Serial(place), seed):
        found.append(now)
        if now.step >= most or (settled and now.trace["settled"]):
            break
    return found, place


def decisions(alg, snapshots):
    """(step, name, gain, accepted) of the moves decided on."""
    names = alg.agenda.names
    return [
        (now.step, names[int(now.trace["move"]) - 1], now.trace["gain"], bool(now.trace["accepted"]))
        for now in snapshots
        if now.trace["move"]
    ]
