"""Draws of the atoms of a beta process given their counts, with what they share (beta_process.md 11)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from ibpdist.base.structs import Array, dims, struct
from ibpdist.kernels import atom_draws, atom_laws
from ibpdist.model.priors import _atoms
from ibpdist.model.priors._atoms import LAWS, RoundPrior, Seen
from ibpdist.model.priors._beta import Vector
from ibpdist.model.priors._mass import Mass

CONCENTRATIONS = (1e-4, 1e4)
"""Between these a learned concentration is drawn."""
SWEEPS, TRIES = 20, 4
"""Sweeps over the atoms in an update, and attempts to change the number of rounds after each."""
RARE, COMMON = 1e-6, 1 - 1e-6
"""Prevalences between which a chain begins."""


@struct("beta-process-draw", since=1)
class BetaProcessDraw:
    """A draw of all atoms; feature k is atom `atom[k]`, and atoms of no feature are off in every row.

    `chance` (atom, round) is 1 at the round of the atom. `stick` (atom, side) are log V and log(1 - V),
    `levels` (atom, side) log pi and log(1 - pi); the decay is zero in the first round alone.
    """

    atom: Array = dims("feature")
    chance: Array = dims("atom round")
    stick: Array = dims("atom side")
    decay: Array = dims("atom")
    levels: Array = dims("atom side")
    concentration: Array = dims()
    mass: Array = dims()

    @property
    def log_on(self) -> Vector:
        return np.asarray(self.levels[self.atom, 0])

    @property
    def log_off(self) -> Vector:
        return np.asarray(self.levels[self.atom, 1])

    @property
    def prevalence(self) -> Vector:
        """(atom) pi."""
        return np.exp(self.levels[:, 0])

    @property
    def rounds(self) -> NDArray[np.int64]:
        """(atom) rounds, from 1."""
        return np.asarray(1 + self.chance.argmax(axis=1), np.int64)


@dataclass(frozen=True)
class AtomDraws:
    """The settings of the prior that a draw depends on."""

    mass: Mass
    concentration: Mass
    rounds: int
    round_prior: RoundPrior

    def begun(
        self,
        atom: Array,
        prevalence: Vector,
        concentration: float,
        mass: float,
        rng: np.random.Generator,
    ) -> BetaProcessDraw:
        """Where a chain begins: at these prevalences (atom), in rounds of atoms as frequent as that, with
        breaks of one length. A posterior mean may have all atoms in the first round, and chains that begin
        there stay for long (beta_process.md 12)."""
        share = np.clip(prevalence, RARE, COMMON)
        chance = _atoms.begun(share, 1.0, Seen(np.zeros(share.size), 0.0), self.rounds).chance
        rounds = 1 + (rng.random((share.size, 1)) > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
        log_on = np.log(share) / rounds
        low, high = CONCENTRATIONS
        if self.concentration == "learn":
            concentration = float(np.clip(concentration, low, high))
        stick = np.stack([log_on, np.log(-np.expm1(log_on))], axis=1)
        return self._state(atom, rounds, -log_on * (rounds - 1), stick, concentration, mass)

    def draw(self, at: BetaProcessDraw, seen: Seen, rng: np.random.Generator) -> BetaProcessDraw:
        """Atoms and concentration, with the mass integrated out, and then the mass."""
        rounds, decay, stick = at.rounds, np.array(at.decay), np.array(at.stick)
        atoms = atom_laws.AtomState(rounds, decay, stick[:, 0].copy(), stick[:, 1].copy())
        numbers = atom_laws.Numbers(rng.integers(1 << 32, size=2, dtype=np.uint64), np.zeros(1, np.int64))
        fixed, level = self._fixed(seen), float(at.concentration)
        level = atom_draws.draw_atoms(numbers, fixed, atoms, level, SWEEPS, TRIES)
        mass = float(at.mass)
        if self.mass == "learn":
            mass = rng.gamma(_atoms.VAGUE + len(decay)) / (_atoms.VAGUE + atoms.rounds.max())
        made = np.stack([atoms.log_on, atoms.log_off], axis=1)
        return self._state(at.atom, atoms.rounds, atoms.decays, made, level, mass)

    def score(self, at: BetaProcessDraw) -> dict[str, float]:
        """Log densities of the atoms, of log concentration and of log mass."""
        level, mass, rounds = float(at.concentration), float(at.mass), at.rounds
        later = rounds > 1
        before, decay = rounds[later] - 1.0, at.decay[later]
        decays = before * np.log(level) - gammaln(before) + (before - 1) * np.log(decay) - level * decay
        count = len(rounds) * np.log(mass) - mass * rounds.max()
        return {
            "sticks": float(np.sum(np.log(level) + (level - 1) * at.stick[:, 1])),
            "decays": float(decays.sum()),
            "rounds": float(count) - self._company(rounds),
            "concentration": _log_prior(level) if self.concentration == "learn" else 0.0,
            "mass": _log_prior(mass) if self.mass == "learn" else 0.0,
        }

    def _fixed(self, seen: Seen) -> atom_laws.Fixed:
        low, high = CONCENTRATIONS if self.concentration == "learn" else (self.concentration,) * 2
        return atom_laws.Fixed(
            seen.on,
            seen.off,
            self.length(len(seen.on)),
            int(LAWS[self.round_prior]),
            _atoms.VAGUE,
            _atoms.VAGUE,
            float(np.log(low)),
            float(np.log(high)),
        )

    def length(self, atoms: int) -> Vector:
        """(round) log f of each last round, where sum_{last >= max d} f is what the prior says of max d."""
        last = np.arange(1.0, self.rounds + 1)
        if self.mass == "learn":
            found = -(atoms + _atoms.VAGUE) * np.log(_atoms.VAGUE + last)
        else:
            found = -float(self.mass) * last
        found[:-1] += np.log(-np.expm1(np.diff(found)))
        return np.asarray(found)

    def _company(self, rounds: NDArray[np.int64]) -> float:
        """What is paid for the numbers of atoms of the rounds."""
        if self.round_prior == "exchangeable":
            return float(gammaln(len(rounds) + 1))
        return float(gammaln(np.bincount(rounds) + 1).sum())

    def _state(
        self,
        atom: Array,
        rounds: NDArray[np.int64],
        decay: Vector,
        stick: Vector,
        concentration: float,
        mass: float,
    ) -> BetaProcessDraw:
        return BetaProcessDraw(
            atom=atom,
            chance=np.eye(self.rounds)[rounds - 1],
            stick=stick,
            decay=decay,
            levels=levels_of(decay, stick),
            concentration=np.asarray(concentration),
            mass=np.asarray(mass),
        )


def levels_of(decay: Vector, stick: Vector) -> Vector:
    """(atom, side) log pi and log(1 - pi) of decays and sticks."""
    on = stick[:, 0] - decay
    with np.errstate(divide="ignore"):
        near = np.logaddexp(stick[:, 1], stick[:, 0] + np.log(-np.expm1(-decay)))
        off = np.where((decay > 0) & (on < -0.7), np.log1p(-np.exp(on)), near)
    return np.stack([on, off], axis=1)


def _log_prior(level: float) -> float:
    """Log density of the logarithm of a learned concentration or mass, but for the cut of the first."""
    shape = _atoms.VAGUE
    return float(shape * np.log(shape) - gammaln(shape) + shape * np.log(level) - shape * level)
