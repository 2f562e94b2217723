"""Samplers that take rows in turn, as tests need them: transitions, and turns that are wrong on purpose."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ibpdist.inference.in_turn.collapsed import Collapsed, CollapsedTable
from ibpdist.inference.in_turn.in_turn import InTurn
from ibpdist.inference.in_turn.sequential import Chain
from ibpdist.inference.in_turn.uncollapsed import Uncollapsed
from ibpdist.inference.missing_cells import impute

TURNS = {"collapsed": Collapsed(), "uncollapsed": Uncollapsed(), "candidates": Uncollapsed(6)}


def transition(joint, turn, features=3, **settings):
    """A sweep of a sampler as a transition (tests/support/joint_infinite.py)."""
    sampler = InTurn(joint.model(), turn, features, **settings)

    def step(chunk, params, state, draws):
        chain, _ = sampler.sweep(chunk, Chain(params, state), draws)
        return chain.params, chain.state

    return step


def planted(rows=30, columns=6, features=3, noise=0.3, seed=0):
    """x (row, column) and z (feature, row)."""
    rng = np.random.default_rng(seed)
    z = (rng.random((features, rows)) < 0.4).astype(float)
    x = z.T @ rng.normal(size=(features, columns)) + np.sqrt(noise) * rng.normal(size=(rows, columns))
    return x, z


def swept(table, logits, births):
    """The table after a turn of all rows, without making anything anew; slots grow as they must."""
    at = 0
    while at < len(births):
        at += table.advance(at, np.ascontiguousarray(logits[at:, : table.ids.size]), births[at:])
        if at < len(births):
            table.grow()
    return table


@dataclass(frozen=True)
class OtherOdds:
    """Prior odds over `rows` in place of N: a function of the law."""

    turn: object
    rows: object

    def check(self, observation):
        self.turn.check(observation)

    def table(self, data, state, given):
        law = given.law._replace(rows=float(self.rows(given.law)))
        return self.turn.table(data, state, replace(given, law=law))


ONE_LESS = OtherOdds(Collapsed(), lambda law: law.rows - 1)
"""m / (N - 1), as printed (samplers.md 17)."""


def over_all(mass, features):
    """(m + mass / K) / (N - 1 + mass), as printed (samplers.md 17)."""
    return OtherOdds(Collapsed(), lambda law: law.rows - 1 + mass - mass / features)


@dataclass(frozen=True)
class DroppedFirst:
    """Features of a row alone are gone before its shared entries move (samplers.md 17, 18)."""

    def check(self, observation):
        Collapsed().check(observation)

    def table(self, data, state, given):
        params = given.params.observation
        x = impute(data, state.z, params.mean, params.noise, given.draws)
        return DroppingTable(x, state.z.astype(float), state.ids, given.law, given.first)


class DroppingTable(CollapsedTable):
    """One row at a time, its own features taken away first."""

    def advance(self, first, logits, births):
        size = self.features
        z = self.z[:, :size].T.astype(float)
        kept = (z.sum(axis=1) - z[:, first]) > 0
        CollapsedTable.__init__(
            self, self.x, z[kept], self.ids[:size][kept], self.law, int(self.tables.sizes[1])
        )
        self.renew()
        wide = np.pad(logits[:1], ((0, 0), (0, self.ids.size)))[:, : self.ids.size]
        return super().advance(first, np.ascontiguousarray(wide), births[:1])


@dataclass(frozen=True)
class ByAge:
    """Rows ask for their features in the order in which these were born."""

    def check(self, observation):
        Collapsed().check(observation)

    def table(self, data, state, given):
        return AgedTable(data.x, state.z.astype(float), state.ids, given.law, given.first)


class AgedTable(CollapsedTable):
    """One row at a time, the oldest feature first."""

    def advance(self, first, logits, births):
        age = np.append(np.argsort(self.ids[: self.features]), np.arange(self.features, self.ids.size))
        for name, axes in self.axes.items():
            table = getattr(self.tables, name)
            for axis in axes:
                table[:] = np.take(table, age, axis)
        return super().advance(first, logits[:1], births[:1])
