"""The variational posterior of the atoms of a beta process, and the blocks that raise the objective.

    q(d_k) = chance_k,  q(V_k | d_k = 1) = Beta(first_k),  q(V_k | d_k > 1) = Beta(later_k),
    q(T_k | d_k > 1) = Gamma(decay_k),  q(concentration) and q(mass) gamma laws of shape and rate.

Each block is its own maximum given the others (beta_process.md 4 to 6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, entr, gammaln, logsumexp

from ibpdist.kernels import decayed_sticks, rounds
from ibpdist.model.priors._beta import Vector, log_moments
from ibpdist.model.priors._octaves import octaves

RoundPrior = Literal["exchangeable", "paper-exact", "paper-markov"]
LAWS = {
    "exchangeable": rounds.EXCHANGEABLE,
    "paper-exact": rounds.EXACT,
    "paper-markov": rounds.MARKOV,
}
"""What is paid for atoms of one round, by name of the prior of rounds."""
VAGUE = 0.01
"""Shape and rate of the gamma priors of a learned concentration and a learned mass."""
TINY, FAR = 1e-300, 25.0
"""The least change that another is divided by, and the largest log of an extrapolated parameter."""
GONE = 1e-12
"""Probability of later rounds below which a decay stays as it is."""


@dataclass(frozen=True)
class Level:
    """E x and E log x of the concentration or the mass."""

    mean: float
    log: float

    @classmethod
    def known(cls, value: float) -> Level:
        return cls(value, float(np.log(value)))

    @classmethod
    def of(cls, law: Vector) -> Level:
        """Of a gamma law (shape, rate)."""
        return cls(float(law[0] / law[1]), float(digamma(law[0]) - np.log(law[1])))


@dataclass(frozen=True)
class Seen:
    """Counts of the atoms (atom) and the number of rows."""

    on: Vector
    rows: float

    @property
    def off(self) -> Vector:
        return self.rows - self.on


@dataclass(frozen=True)
class Atoms:
    """q of every atom: `chance` (atom, round), the others (atom, side)."""

    chance: Vector
    first: Vector
    later: Vector
    decay: Vector

    @cached_property
    def moved(self) -> Vector:
        """(atom) probability of a round after the first."""
        return np.asarray(self.chance[:, 1:].sum(axis=1))

    @cached_property
    def mean_decay(self) -> Vector:
        """(atom) E T given a later round."""
        return np.asarray(self.decay[:, 0] / self.decay[:, 1])

    @cached_property
    def log_decay(self) -> Vector:
        """(atom) E log T given a later round."""
        return np.asarray(digamma(self.decay[:, 0]) - np.log(self.decay[:, 1]))

    @cached_property
    def decay_entropy(self) -> Vector:
        u, v = self.decay.T
        return np.asarray(u - np.log(v) + gammaln(u) + (1 - u) * digamma(u))

    @cached_property
    def first_logs(self) -> tuple[Vector, Vector]:
        """(atom) E log V and E log(1 - V) of the first round."""
        return log_moments(self.first)

    @cached_property
    def later_logs(self) -> tuple[Vector, Vector]:
        """(atom) the same of later rounds."""
        return log_moments(self.later)

    @cached_property
    def absence(self) -> Vector:
        """(atom) E[-log(1 - V exp(-T))] given a later round."""
        return np.asarray(decayed_sticks.absences(self.later, self.decay, *octaves()))

    @cached_property
    def sticks(self) -> tuple[Vector, Vector]:
        """(atom) entropies of the sticks of the first round and of later ones."""
        return _entropy(self.first, self.first_logs), _entropy(self.later, self.later_logs)

    def log_prevalence(self) -> Vector:
        """(atom, side) E log pi and E log(1 - pi)."""
        first, moved = self.chance[:, 0], self.moved
        on = first * self.first_logs[0] + moved * (self.later_logs[0] - self.mean_decay)
        return np.stack([on, first * self.first_logs[1] - moved * self.absence], axis=1)

    def mean_prevalence(self) -> Vector:
        """(atom) E pi."""
        u, v = self.decay.T
        shrunk = np.exp(-u * np.log1p(1 / v))
        one, other = (tau[:, 0] / tau.sum(axis=1) for tau in (self.first, self.later))
        return np.asarray(self.chance[:, 0] * one + self.moved * other * shrunk)

    def last_round(self) -> float:
        """E max d."""
        below = np.cumsum(self.chance, axis=1)[:, :-1]
        return float(1 + (1 - np.prod(np.minimum(below, 1.0), axis=0)).sum())

    def level_laws(self) -> Vector:
        """(level, side) shape and rate of q(concentration) and of q(mass)."""
        count, first, moved = len(self.chance), self.chance[:, 0], self.moved
        later = float((self.chance @ np.arange(self.chance.shape[1])).sum())
        logs = first * self.first_logs[1] + moved * (self.later_logs[1] - self.mean_decay)
        made = [[count + later, -float(logs.sum())], [count, self.last_round()]]
        return np.asarray(made) + VAGUE

    def with_those(self, others: Atoms, places: NDArray[np.intp]) -> Atoms:
        """These with others at some places."""
        held = {name: getattr(self, name).copy() for name in ("chance", "first", "later", "decay")}
        for name, values in held.items():
            values[places] = getattr(others, name)
        return Atoms(**held)


@dataclass(frozen=True)
class Process:
    """What the atoms share: levels, the prior of rounds, and whether both branches have one stick."""

    concentration: Level
    mass: Level
    round_prior: RoundPrior
    shared: bool

    def rounds(self, atoms: Atoms, seen: Seen) -> Atoms:
        """Rounds of the atoms, the most frequent ones first."""
        order = np.argsort(-seen.on, kind="stable")
        law = LAWS[self.round_prior]
        own = self._own(atoms, seen)
        return replace(atoms, chance=rounds.sweep_rounds(own, atoms.chance, order, self.mass.mean, law))

    def _own(self, atoms: Atoms, seen: Seen) -> Vector:
        """(atom, round) what the objective says of each round, but for the other atoms."""
        level, later = self.concentration, np.arange(atoms.chance.shape[1] - 1.0)
        (on_first, off_first), (on, off), entropy = atoms.first_logs, atoms.later_logs, atoms.sticks
        first = seen.on * on_first + (seen.off + level.mean - 1) * off_first + entropy[0]
        base = seen.on * on + (level.mean - 1) * off + entropy[1]
        base -= (seen.on + level.mean) * atoms.mean_decay + seen.off * atoms.absence - atoms.decay_entropy
        rest = (later + 1) * level.log - gammaln(later + 1) + later * atoms.log_decay[:, None]
        return np.concatenate([first[:, None], base[:, None] + rest], axis=1)

    def sticks(self, atoms: Atoms, seen: Seen) -> Atoms:
        """Sticks and decays."""
        level, moved, none = self.concentration.mean, atoms.moved, np.zeros(len(seen.on))
        begun = np.where(self.shared, atoms.chance[:, 0], none)
        weight = moved if self.shared else np.ones(len(seen.on))
        rest = np.arange(atoms.chance.shape[1] - 1.0)
        shape = atoms.chance[:, 1:] @ rest / np.maximum(moved, GONE)
        later, decay = decayed_sticks.climb(
            atoms.later,
            atoms.decay,
            seen.on,
            seen.off * begun + level - 1,
            seen.off * weight,
            shape,
            seen.on + level,
            seen.off,
            moved > GONE,
            *octaves(),
        )
        first = later if self.shared else np.stack([1 + seen.on, level + seen.off], axis=1)
        return replace(atoms, first=first, later=later, decay=decay)

    def score(self, atoms: Atoms) -> dict[str, float]:
        """What the atoms add to the objective beside E log p(z), by name."""
        level, mass, moved = self.concentration, self.mass, atoms.moved
        first, later = atoms.chance[:, 0], np.arange(atoms.chance.shape[1] - 1.0)
        logs = (atoms.first_logs[1], atoms.later_logs[1])
        sticks = sum(
            share * (level.log + (level.mean - 1) * log + entropy)
            for share, log, entropy in zip((first, moved), logs, atoms.sticks, strict=True)
        )
        each = (later + 1) * level.log - gammaln(later + 1) + later * atoms.log_decay[:, None]
        each += (atoms.decay_entropy - level.mean * atoms.mean_decay)[:, None]
        count = len(first) * mass.log - mass.mean * atoms.last_round() - self._company(atoms)
        return {
            "sticks": float(np.sum(sticks)),
            "decays": float((atoms.chance[:, 1:] * each).sum()),
            "rounds": float(count + entr(atoms.chance).sum()),
        }

    def _company(self, atoms: Atoms) -> float:
        """What is paid for the numbers of atoms of the rounds: log K! for labels without a meaning, and the
        paper's sum_r E log C_r! or its bound."""
        chance = atoms.chance
        if self.round_prior == "exchangeable":
            return float(gammaln(len(chance) + 1))
        if self.round_prior == "paper-exact":
            held = rounds.counts(chance)
            return float((held @ gammaln(1.0 + np.arange(held.shape[1]))).sum())
        totals = chance.sum(axis=0)
        return float(rounds.SECOND * (totals + totals**2 - np.square(chance).sum(axis=0)).sum())


def _entropy(tau: Vector, logs: tuple[Vector, Vector]) -> Vector:
    """Of Beta(tau), from its log moments."""
    one, other = tau.T
    return np.asarray(betaln(one, other) - (one - 1) * logs[0] - (other - 1) * logs[1])


def begun(share: Vector, concentration: float, seen: Seen, rounds: int) -> Atoms:
    """Atoms of prevalences near `share` (atom): where an ascent begins.

    The round less one is Poisson with mean concentration times -log share, as it is for an atom of that
    prevalence where the concentration is one, cut at the last round; of the breaks the last is the stick's.
    """
    size, later = np.maximum(-np.log(share), 1e-6), np.arange(float(rounds))
    weight = later * np.log(concentration * size)[:, None] - gammaln(later + 1)
    chance = np.exp(weight - logsumexp(weight, axis=1, keepdims=True))
    before = chance @ later
    mean, rate = size * before / (1 + before) + 1e-3, seen.on + concentration
    odds = np.expm1(np.maximum(size - mean, 1e-3))
    first = np.stack([1 + seen.on, concentration + seen.off], axis=1)
    later_sticks = np.stack([1 + seen.on, (1 + seen.on) * odds], axis=1)
    return Atoms(chance, first, later_sticks, np.stack([np.maximum(rate * mean, 1.0), rate], axis=1))


def law_score(law: Vector) -> float:
    """E log p - E log q of a level with this gamma posterior."""
    shape, rate = (float(value) for value in law)
    level = Level.of(law)
    prior = VAGUE * np.log(VAGUE) - gammaln(VAGUE) + (VAGUE - 1) * level.log - VAGUE * level.mean
    entropy = shape - np.log(rate) + gammaln(shape) + (1 - shape) * digamma(shape)
    return float(prior + entropy)


def extrapolated(zero: Vector, one: Vector, two: Vector, longest: float) -> tuple[Vector, float]:
    """Where three points of positive numbers lead to whose distances shrink by one factor, and how many
    steps that is worth: squared extrapolation of logarithms (Varadhan and Roland 2008)."""
    logs = np.log(np.stack([zero, one, two]))
    step, bend = logs[1] - logs[0], logs[2] - 2 * logs[1] + logs[0]
    size = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), TINY)
    length = min(max(size, 1.0), longest)
    return np.exp(np.clip(logs[0] + 2 * length * step + length**2 * bend, -FAR, FAR)), length
