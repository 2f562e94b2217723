"""Every supported system, one line each: a name, its axes, and what can be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import Any

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import DRAW, HARD, MEAN, Rule, Rules
from ibpdist.catalog.methods import IN_TURN, METHODS, Asked

FACTORS = {"noise": "column", "scale": "feature"}
"""For fits of features with weights (factors.md 1); samplers of them are as they were."""


@dataclass(frozen=True)
class System:
    """A row of the capability table."""

    name: str
    method: str
    prior: str
    weights: str
    rules: Rules
    summary: str

    @property
    def observation(self) -> str:
        """Rows that have every feature have all weights at once."""
        return "gaussian_joint" if self.prior == "always" else "gaussian"

    @property
    def sampler(self) -> bool:
        return self.rules.z is Rule.DRAW

    @property
    def in_turn(self) -> bool:
        """Whether it takes the rows one after the other, so that one process holds them all."""
        return self.method in IN_TURN

    @property
    def defaults(self) -> Mapping[str, object]:
        """Settings unless told otherwise, where they are not those of the axis."""
        return FACTORS if self.weights == "normal" and not self.sampler else {}


MOST, MOST_FACTORS = 1000, 80
"""The most features that `auto` may come to, without and with weights."""
STARTS = ("auto", "random", "rows", "svd", "spectral", "principal", "fit", "empty")
"""How a fit may begin."""


def _table(*rows: tuple[str, str, str, str, Rules, str]) -> dict[str, System]:
    return {row[0]: System(*row) for row in rows}


SYSTEMS: Mapping[str, System] = _table(
    ("lg-vi-finite", "ascent", "beta_bernoulli", "unit", MEAN, "K features, present or absent"),
    ("lg-vi-infinite", "ascent", "stick_breaking", "unit", MEAN, "unknown number, present or absent"),
    ("fa-vi-finite", "ascent", "beta_bernoulli", "normal", MEAN, "K factors, sparse in the rows"),
    ("fa-vi-infinite", "ascent", "stick_breaking", "normal", MEAN, "unknown number of sparse factors"),
    ("fa-vi-dense", "ascent", "always", "normal", MEAN, "factor analysis: every row has all"),
    ("lg-vi-finite-hard", "ascent", "beta_bernoulli", "unit", HARD, "hard assignment, K features"),
    ("lg-vi-infinite-hard", "ascent", "stick_breaking", "unit", HARD, "hard assignment, unknown number"),
    ("fa-vi-finite-hard", "ascent", "beta_bernoulli", "normal", HARD, "hard assignment, K factors"),
    ("fa-vi-infinite-hard", "ascent", "stick_breaking", "normal", HARD, "hard assignment of factors"),
    ("lg-gibbs-finite", "gibbs", "beta_bernoulli", "unit", DRAW, "exact sampler, K features"),
    ("lg-gibbs-infinite", "anchored", "buffet", "unit", DRAW, "exact sampler, unknown number"),
    ("fa-gibbs-finite", "gibbs", "beta_bernoulli", "normal", DRAW, "exact sampler, K factors"),
    ("fa-gibbs-infinite", "anchored", "buffet", "normal", DRAW, "exact sampler, unknown number of factors"),
    ("lg-collapsed-finite", "collapsed", "beta_bernoulli", "unit", DRAW, "rows in turn, K features"),
    ("lg-collapsed-infinite", "collapsed", "buffet", "unit", DRAW, "rows in turn, unknown number"),
    ("lg-uncollapsed-finite", "uncollapsed", "beta_bernoulli", "unit", DRAW, "rows in turn, simpler"),
    ("lg-uncollapsed-infinite", "uncollapsed", "buffet", "unit", DRAW, "rows in turn, simpler"),
    ("lg-particle", "particle", "buffet", "unit", DRAW, "particle filter, a baseline"),
)


def build(
    system: str,
    features: int,
    *,
    inner: int = 1,
    settings: Mapping[str, object] | None = None,
    burn: int = 0,
) -> Any:
    """The algorithm of a system with at most `features` features; settings go to the axis that has them,
    the others to the method. `burn` steps of a sampler are not kept."""
    from ibpdist.model.model import Model

    row = find(system)
    wanted = {**row.defaults, **(settings or {})}
    prior = _make(_priors()[row.prior], wanted)
    weights = _make(_weights()[row.weights], wanted)
    observation = _make(_observations()[row.observation], wanted)
    model, method = Model(prior, weights, observation, row.rules), METHODS[row.method]
    unknown = [name for name in wanted if name not in method.settings]
    if unknown:
        raise UsageError(_unknown("setting", unknown[0], settings_of(system)))
    return method.make(model, Asked(features, inner, burn, wanted))


def entries(system: str, settings: Mapping[str, object]) -> int:
    """Numbers that a row keeps for each feature: z, and w where there are weights; twice as many while a
    move is tried, since rows can go back."""
    row = find(system)
    moves = settings.get("moves", True) and not row.sampler
    each = 2 if _weights()[row.weights].keeps else 1
    return each * (2 if moves else 1)


def most_features(system: str, settings: Mapping[str, object]) -> int:
    """The most features a fit may come to whose number is left to the data."""
    row = find(system)
    if row.prior == "buffet":
        raise UsageError(f"K = auto: {system} has no limit and K is where it begins; use a number")
    if row.prior != "stick_breaking":
        raise UsageError(f"K = auto: {system} has a given number of features; use {_infinite(row)}")
    if settings.get("start", "auto") == "random":
        raise UsageError("K = auto: a random start has a given number of features; use another start")
    return MOST if row.weights == "unit" else MOST_FACTORS


def _infinite(row: System) -> str:
    same = (row.weights, row.observation, row.rules)
    close = [
        other.name
        for other in SYSTEMS.values()
        if other.prior == "stick_breaking" and (other.weights, other.observation, other.rules) == same
    ]
    return f"{close[0]}, or a number" if close else "a number"


def find(system: str) -> System:
    if system not in SYSTEMS:
        raise UsageError(_unknown("system", system, list(SYSTEMS)))
    return SYSTEMS[system]


def settings_of(system: str) -> list[str]:
    """Names of what can be set, in the order of the axes."""
    row = find(system)
    axes = (_priors()[row.prior], _weights()[row.weights], _observations()[row.observation])
    return [f.name for axis in axes for f in fields(axis)] + list(METHODS[row.method].settings)


def _make(axis: type[Any], wanted: dict[str, object]) -> Any:
    """The axis with its own settings, which are taken out of `wanted`."""
    return axis(**{f.name: wanted.pop(f.name) for f in fields(axis) if f.name in wanted})


def _unknown(what: str, name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"
    return f"unknown {what} {name!r}{hint}"


def _priors() -> dict[str, Any]:
    from ibpdist.model.priors.always import Always
    from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
    from ibpdist.model.priors.buffet import Buffet
    from ibpdist.model.priors.stick_breaking import StickBreaking

    return {axis.name: axis for axis in (BetaBernoulli, StickBreaking, Always, Buffet)}


def _weights() -> dict[str, Any]:
    from ibpdist.model.weights.normal import Normal
    from ibpdist.model.weights.unit import Unit

    return {axis.name: axis for axis in (Unit, Normal)}


def _observations() -> dict[str, Any]:
    from ibpdist.model.observations.gaussian import Gaussian
    from ibpdist.model.observations.joint import Joint

    return {axis.name: axis for axis in (Gaussian, Joint)}
