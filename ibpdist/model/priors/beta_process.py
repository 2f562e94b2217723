"""The beta process by its stick-breaking construction, with K atoms and R rounds (beta_process.md 1, 2).

pi_k = V_k exp(-T_k), V_k ~ Beta(1, concentration); T_k = 0 for an atom of the first round, otherwise
T_k ~ Gamma(d_k - 1, concentration). `mass` is the expected number of atoms of a round, and with unlimited
rounds that of features of a row. K is a capacity: an atom that no row has stays, as part of the objective.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule
from ibpdist.base.structs import Array, Named, dims, replace, struct
from ibpdist.model.priors import _mass
from ibpdist.model.priors._atom_draws import AtomDraws, BetaProcessDraw
from ibpdist.model.priors._atoms import (
    Atoms,
    Level,
    Process,
    RoundPrior,
    Seen,
    begun,
    extrapolated,
    law_score,
)
from ibpdist.model.priors._base import Number, PriorSums, Vector

Branches = Literal["two", "shared"]
LEAPS, LEAPS_OF_ATOMS = 8, 300
"""Most extrapolations of an update, each after two passes and with one more: the larger of the first number
and of the second over the number of atoms. What is left is gained by the updates of the next steps."""
GAIN, LEAST_GAIN = 1e-10, 1e-7
"""Gain of a leap, relative and in nats, below which the posterior has converged."""
LONGEST, HIGHER, LOWER = 4.0, 4.0, 2.0
"""The longest first leap, in passes, and factors of the longest one after leaps that helped and did not."""


@struct("beta-process-params", since=1)
class BetaProcessParams:
    """The posterior of all atoms; feature k is atom `atom[k]`, and atoms of no feature are off in every row.

    `levels` (atom, side) are E log pi and E log(1 - pi); `laws` (level, side) shape and rate of the
    posteriors of concentration and mass, where they are learned; `concentration` and `mass` are means.
    `rows` is what the posterior was made for.
    """

    atom: Array = dims("feature")
    chance: Array = dims("atom round")
    first: Array = dims("atom side")
    later: Array = dims("atom side")
    decay: Array = dims("atom side")
    levels: Array = dims("atom side")
    laws: Array = dims("level side")
    concentration: Array = dims()
    mass: Array = dims()
    rows: Array = dims()

    @property
    def log_on(self) -> Vector:
        return np.asarray(self.levels[self.atom, 0])

    @property
    def log_off(self) -> Vector:
        return np.asarray(self.levels[self.atom, 1])

    @property
    def prevalence(self) -> Vector:
        """(atom) E pi."""
        return self.atoms.mean_prevalence()

    @property
    def atoms(self) -> Atoms:
        return Atoms(self.chance, self.first, self.later, self.decay)


State = BetaProcessParams | BetaProcessDraw
"""The posterior of the atoms, or a draw of them."""


@dataclass(frozen=True)
class BetaProcess:
    """`mass` and `concentration` are numbers, or "learn". With two `branches` the sticks of an atom of the
    first round and of a later one have posteriors of their own; the paper's is shared. Draws have none."""

    mass: _mass.Mass = "learn"
    concentration: float | Literal["learn"] = "learn"
    rounds: int = 50
    round_prior: RoundPrior = "exchangeable"
    branches: Branches = "two"

    name: ClassVar[str] = "beta_process"
    dense: ClassVar[bool] = False
    number: ClassVar[Number] = Number.CAPACITY
    uses_truncation: ClassVar[bool] = True
    fit_settings: ClassVar[Mapping[str, object]] = {}

    def __post_init__(self) -> None:
        _mass.check(self.mass)
        _mass.check(self.concentration, "concentration")
        rounds: object = self.rounds
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 1:
            raise UsageError(f"rounds is {self.rounds!r}; expected a whole number of at least 1")
        for name, known in (("round_prior", get_args(RoundPrior)), ("branches", get_args(Branches))):
            if getattr(self, name) not in known:
                raise UsageError(f"{name} is {getattr(self, name)!r}; expected one of {', '.join(known)}")

    @property
    def rules(self) -> frozenset[Rule]:
        """The bound of `paper-markov` is one of expectations: no law of rounds that could be drawn from."""
        return frozenset({Rule.MEAN} if self.round_prior == "paper-markov" else {Rule.MEAN, Rule.DRAW})

    def init(self, features: int, rows: int) -> BetaProcessParams:
        mass = _mass.start(self.mass, features, rows)
        concentration = 1.0 if self.concentration == "learn" else float(self.concentration)
        none, atom = np.zeros((features, 2)), np.arange(features)
        empty = BetaProcessParams(
            atom=atom,
            chance=np.zeros((features, self.rounds)),
            first=none,
            later=none,
            decay=none,
            levels=none,
            laws=features * np.array([[concentration, 1.0], [mass, 1.0]]),
            concentration=np.asarray(concentration),
            mass=np.asarray(mass),
            rows=np.zeros(()),
        )
        return self._blank(empty, atom)

    def log_odds(self, params: State) -> Vector:
        odds: Vector = params.log_on - params.log_off
        return odds

    def expected(self, params: State) -> Vector:
        """E pi, or pi of a draw."""
        return np.asarray(params.prevalence[params.atom])

    def update(self, params: State, sums: PriorSums, rule: Rule, rng: np.random.Generator) -> State:
        """Mean: the objective at its maximum. Draw: everything given the counts, from the posterior on."""
        if isinstance(params, BetaProcessDraw):
            return self._draws.draw(params, seen_atoms(params, sums), rng)
        if rule is not Rule.DRAW:
            return self._climbed(params, sums)
        levels = float(params.concentration), float(params.mass)
        first = self._draws.begun(params.atom, params.prevalence, *levels, rng)
        return self._draws.draw(first, seen_atoms(params, sums), rng)

    def _climbed(self, params: BetaProcessParams, sums: PriorSums) -> BetaProcessParams:
        """Passes over the blocks until the objective is flat. Every third one begins where the two before it
        lead to, and counts if it is better (beta_process.md 7)."""
        if sums.rows == 0:
            return self._blank(params, params.atom)
        seen, longest = seen_atoms(params, sums), LONGEST
        made = params if params.rows > 0 else self._begun(params, seen)
        reached = self._total(made, seen)
        for _ in range(max(LEAPS, LEAPS_OF_ATOMS // len(made.chance))):
            one = self._pass(made, seen)
            two = self._pass(one, seen)
            aim, length = self._ahead(made, one, two, longest)
            leap, before = self._pass(aim, seen), reached
            far, near = self._total(leap, seen), self._total(two, seen)
            made, reached = (leap, far) if far > near else (two, near)
            if not far > near:
                longest = max(longest / LOWER, LOWER)
            elif length == longest:
                longest *= HIGHER
            if not reached - before > max(GAIN * abs(reached), LEAST_GAIN):
                break
        return made

    def score(self, params: State, sums: PriorSums) -> dict[str, float]:
        """Terms of beta_process.md 3, of all atoms; of a draw log densities (beta_process.md 11)."""
        seen = seen_atoms(params, sums)
        on = float(seen.on @ params.levels[:, 0] + seen.off @ params.levels[:, 1])
        own = self._draws.score(params) if isinstance(params, BetaProcessDraw) else self._terms(params)
        return {"z prior": on, **own}

    def _terms(self, params: BetaProcessParams) -> dict[str, float]:
        """The objective of the atoms and of what they share."""
        concentration, mass = (
            law_score(law) if setting == "learn" else 0.0
            for setting, law in zip(self._settings, params.laws, strict=True)
        )
        own = self._process(params).score(params.atoms)
        return {**own, "concentration": concentration, "mass": mass}

    def select(self, params: State, keep: NDArray[np.intp]) -> State:
        """Atoms of dropped features become atoms of no feature, of the rounds that they had."""
        if isinstance(params, BetaProcessDraw):
            return replace(params, atom=params.atom[keep])
        return self._selected(params, keep)

    def _selected(self, params: BetaProcessParams, keep: NDArray[np.intp]) -> BetaProcessParams:
        kept, rows = replace(params, atom=params.atom[keep]), float(params.rows)
        dropped = np.setdiff1d(params.atom, kept.atom)
        if not dropped.size:
            return kept
        none = Seen(np.zeros(dropped.size), rows)
        fresh = self._from_shares(np.full(dropped.size, 0.5 / (rows + 1)), params, none)
        fresh = dataclasses.replace(fresh, chance=params.chance[dropped])
        fresh = self._process(params).sticks(fresh, none)
        return _with(kept, params.atoms.with_those(fresh, dropped))

    def capacity(self, params: State) -> int:
        return len(params.chance)

    def resized(
        self, params: BetaProcessParams, features: int, continued: NDArray[np.intp] | None = None
    ) -> BetaProcessParams:
        """Features that go on keep their atoms: the ascent of the others begins beside them, since a fit from
        nothing may end with another number of rounds, and objectives would tell of that."""
        most = self.capacity(params)
        if features > most:
            raise UsageError(f"{features} features: expected at most {most}, the number of the model")
        if continued is None or not params.rows > 0:
            return self._blank(params, np.arange(features))
        old, first = np.unique(continued, return_index=True)
        first = first[old >= 0]
        made = self._selected(params, continued[first])
        atom = np.full(features, -1)
        atom[first] = made.atom
        free = np.setdiff1d(np.arange(most), made.atom)
        atom[atom < 0] = free[: int((atom < 0).sum())]
        return replace(made, atom=atom)

    def describe(self, params: State, order: NDArray[np.intp]) -> Named:
        """Probabilities of rounds; of a draw 1 for its own."""
        return {
            "mass": ((), np.asarray(params.mass)),
            "concentration": ((), np.asarray(params.concentration)),
            "round_chance": (("feature", "round"), params.chance[params.atom[order]]),
        }

    def sample(self, features: int, rng: np.random.Generator) -> Vector:
        """Of the atoms of the first rounds."""
        mass, concentration = _mass.sample(self.mass, rng), _mass.sample(self.concentration, rng)
        found, number, later = [np.zeros(0)], 0, 0
        while number < features:
            count = rng.poisson(mass)
            decays = rng.gamma(later, 1 / concentration, count) if later else np.zeros(count)
            found.append(rng.beta(1, concentration, count) * np.exp(-decays))
            number, later = number + count, later + 1
        made: Vector = np.concatenate(found)[:features]
        return made

    @property
    def _draws(self) -> AtomDraws:
        return AtomDraws(self.mass, self.concentration, self.rounds, self.round_prior)

    @property
    def _settings(self) -> tuple[float | str, float | str]:
        """In the order of `laws`."""
        return self.concentration, self.mass

    def _process(self, params: BetaProcessParams) -> Process:
        concentration, mass = (
            Level.of(law) if isinstance(setting, str) else Level.known(setting)
            for setting, law in zip(self._settings, params.laws, strict=True)
        )
        return Process(concentration, mass, self.round_prior, self.branches == "shared")

    def _pass(self, params: BetaProcessParams, seen: Seen) -> BetaProcessParams:
        """Every block once."""
        process = self._process(params)
        atoms = process.sticks(process.rounds(params.atoms, seen), seen)
        laws = atoms.level_laws()
        return self._with_laws(_with(replace(params, rows=np.asarray(seen.rows)), atoms), laws)

    def _with_laws(self, params: BetaProcessParams, laws: Vector) -> BetaProcessParams:
        concentration, mass = (
            np.asarray(law[0] / law[1] if isinstance(setting, str) else float(setting))
            for setting, law in zip(self._settings, laws, strict=True)
        )
        return replace(params, laws=laws, concentration=concentration, mass=mass)

    def _ahead(
        self, zero: BetaProcessParams, one: BetaProcessParams, two: BetaProcessParams, longest: float
    ) -> tuple[BetaProcessParams, float]:
        """Where three points lead to, and how many passes that is worth. Rounds stay: a pass begins with
        them."""
        held = [
            np.concatenate([np.stack([each.later, each.decay]), each.laws[:, None]], axis=1)
            for each in (zero, one, two)
        ]
        found, length = extrapolated(held[0], held[1], held[2], longest)
        later, decay, laws = found[0, :-1], found[1, :-1], found[:, -1]
        first = later if self.branches == "shared" else two.first
        return self._with_laws(_with(two, Atoms(two.chance, first, later, decay)), laws), length

    def _blank(self, params: BetaProcessParams, atom: NDArray[np.intp]) -> BetaProcessParams:
        """Atoms before any data, with the levels of `params`: prevalences fall as those of sticks do."""
        count, mass = len(params.chance), float(params.mass)
        share = (mass / (1 + mass)) ** np.arange(1.0, count + 1)
        made = self._from_shares(share, params, Seen(np.zeros(count), 0.0))
        return _with(replace(params, atom=atom, rows=np.zeros(())), made)

    def _begun(self, params: BetaProcessParams, seen: Seen) -> BetaProcessParams:
        """Where the posterior of these counts begins."""
        made = self._from_shares((seen.on + 0.5) / (seen.rows + 1), params, seen)
        return _with(replace(params, rows=np.asarray(seen.rows)), made)

    def _from_shares(self, share: Vector, params: BetaProcessParams, seen: Seen) -> Atoms:
        made = begun(share, float(params.concentration), seen, self.rounds)
        return dataclasses.replace(made, first=made.later) if self.branches == "shared" else made

    def _total(self, params: BetaProcessParams, seen: Seen) -> float:
        sums = PriorSums(on=seen.on[params.atom], rows=np.asarray(seen.rows))
        return sum(self.score(params, sums).values())


def seen_atoms(params: State, sums: PriorSums) -> Seen:
    """Counts of all atoms."""
    rows, on = float(sums.rows), np.zeros(len(params.chance))
    on[params.atom] = np.clip(sums.on, 0.0, rows)
    return Seen(on, rows)


def _with(params: BetaProcessParams, atoms: Atoms) -> BetaProcessParams:
    held = {name: getattr(atoms, name) for name in ("chance", "first", "later", "decay")}
    return replace(params, **held, levels=atoms.log_prevalence())
