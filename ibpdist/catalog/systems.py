"""Every supported system, one line each: a name, its axes, and what can be set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import DRAW, HARD, MEAN, Rule, Rules
from ibpdist.base.words import PREDICTION
from ibpdist.catalog.methods import IN_TURN, METHODS, MethodOptions, default_start, starts

if TYPE_CHECKING:
    from ibpdist.catalog.methods import Algorithm
    from ibpdist.model.observations._base import ObservationKind
    from ibpdist.model.priors._base import Prior
    from ibpdist.model.weights._base import Weights, WeightsKind


@dataclass(frozen=True)
class System:
    """A row of the capability table."""

    name: str
    method: str
    prior: str
    weights: str
    rules: Rules
    summary: str
    observation: str = "gaussian"

    @property
    def prior_type(self) -> type[Prior]:
        found: type[Prior] = _priors()[self.prior]
        return found

    @property
    def weights_type(self) -> type[WeightsKind]:
        found: type[WeightsKind] = _weights()[self.weights]
        return found

    @property
    def observation_type(self) -> type[ObservationKind]:
        found: type[ObservationKind] = _observations()[self.observation]
        return found

    @property
    def counts(self) -> bool:
        """Whether it is for counts, or for real-valued data."""
        return self.observation_type.counts

    @property
    def sampler(self) -> bool:
        return self.rules.z is Rule.DRAW

    @property
    def objective(self) -> str:
        """What its objective is called: a fit that hides tokens is compared by how well it predicts them."""
        return PREDICTION if "hidden" in METHODS[self.method].settings else "objective"

    @property
    def in_turn(self) -> bool:
        """Whether it takes the rows one after the other, so that one process holds them all."""
        return self.method in IN_TURN

    @property
    def lacks(self) -> tuple[str, ...]:
        """Settings of its parts that it does not have: rows in turn have no intercept, features that are
        present or absent have one noise for all rows, and draws have no posterior with branches."""
        found = (("intercept",) if self.in_turn else ()) + (("branches",) if self.sampler else ())
        return found if self.weights_type.has_weights else (*found, "row_noise")

    @property
    def defaults(self) -> Mapping[str, object]:
        """Settings unless told otherwise, where they are not those of the axis."""
        parts = (self.weights_type, self.observation_type, self.prior_type)
        found = {name: value for part in parts for name, value in part.fit_settings.items()}
        return found | (dict(self.observation_type.draw_settings) if self.sampler else {})


STARTS = (
    "auto", "random", "rows", "svd", "spectral", "principal", "independent", "best", "documents", "fit",
    "empty",
)  # fmt: skip
"""How a fit may begin."""


def _table(*rows: tuple[Any, ...]) -> dict[str, System]:
    """Systems by name; the fields of each in the order of `System`."""
    return {row[0]: System(*row) for row in rows}


SYSTEMS: Mapping[str, System] = _table(
    ("lg-vi-finite", "ascent", "beta_bernoulli", "unit", MEAN, "K features, present or absent"),
    ("lg-vi-infinite", "ascent", "stick_breaking", "unit", MEAN, "unknown number, present or absent"),
    ("fa-vi-finite", "ascent", "beta_bernoulli", "normal", MEAN, "K factors, sparse in the rows"),
    ("lg-vi-beta-process", "ascent", "beta_process", "unit", MEAN, "beta process, present or absent"),
    ("fa-vi-infinite", "ascent", "stick_breaking", "normal", MEAN, "unknown number of sparse factors"),
    ("fa-vi-beta-process", "ascent", "beta_process", "normal", MEAN, "beta process of sparse factors"),
    (
        "fa-vi-dense",
        "ascent",
        "always",
        "normal",
        MEAN,
        "factor analysis: every row has all",
        "gaussian_joint",
    ),
    ("lg-vi-finite-hard", "ascent", "beta_bernoulli", "unit", HARD, "hard assignment, K features"),
    ("lg-vi-infinite-hard", "ascent", "stick_breaking", "unit", HARD, "hard assignment, unknown number"),
    ("fa-vi-finite-hard", "ascent", "beta_bernoulli", "normal", HARD, "hard assignment, K factors"),
    ("fa-vi-infinite-hard", "ascent", "stick_breaking", "normal", HARD, "hard assignment of factors"),
    ("fa-vi-finite-positive", "ascent", "beta_bernoulli", "exponential", MEAN, "K factors, positive weights"),
    (
        "fa-vi-infinite-positive",
        "ascent",
        "stick_breaking",
        "exponential",
        MEAN,
        "unknown number of factors, positive weights",
    ),
    ("ica-vi-finite", "ascent", "beta_bernoulli", "laplace", MEAN, "K independent components"),
    ("ica-vi-infinite", "ascent", "stick_breaking", "laplace", MEAN, "unknown number of components"),
    ("ica-vi-beta-process", "ascent", "beta_process", "laplace", MEAN, "beta process of components"),
    ("ica-vi-finite-hard", "ascent", "beta_bernoulli", "laplace", HARD, "hard assignment, K components"),
    ("ica-vi-infinite-hard", "ascent", "stick_breaking", "laplace", HARD, "hard assignment of components"),
    ("lg-gibbs-finite", "gibbs", "beta_bernoulli", "unit", DRAW, "exact sampler, K features"),
    ("lg-gibbs-infinite", "anchored", "buffet", "unit", DRAW, "exact sampler, unknown number"),
    ("fa-gibbs-finite", "gibbs", "beta_bernoulli", "normal", DRAW, "exact sampler, K factors"),
    ("fa-gibbs-infinite", "anchored", "buffet", "normal", DRAW, "exact sampler, unknown number of factors"),
    ("ica-gibbs-finite", "gibbs", "beta_bernoulli", "laplace", DRAW, "exact sampler, K components"),
    ("ica-gibbs-infinite", "anchored", "buffet", "laplace", DRAW, "exact sampler, unknown number"),
    ("lg-collapsed-finite", "collapsed", "beta_bernoulli", "unit", DRAW, "rows in turn, K features"),
    ("lg-collapsed-infinite", "collapsed", "buffet", "unit", DRAW, "rows in turn, unknown number"),
    ("lg-uncollapsed-finite", "uncollapsed", "beta_bernoulli", "unit", DRAW, "rows in turn, simpler"),
    ("lg-uncollapsed-infinite", "uncollapsed", "buffet", "unit", DRAW, "rows in turn, simpler"),
    ("lg-particle", "particle", "buffet", "unit", DRAW, "particle filter, a baseline"),
    *(
        (f"counts-{name}", "collapsed_means", prior, "gamma", MEAN, summary, "poisson")
        for name, prior, summary in (
            ("dense", "always", "topics of counts: every row has all"),
            ("finite", "beta_bernoulli", "topics of counts, K features"),
            ("infinite", "stick_breaking", "topics of counts, unknown number"),
            ("beta-process", "beta_process", "topics of counts, beta process"),
        )
    ),
    *(
        (f"counts-{name}-hard", "token_modes", prior, "gamma", HARD, summary, "poisson_factors")
        for name, prior, summary in (
            ("finite", "beta_bernoulli", "hard assignment of counts, K features"),
            ("infinite", "stick_breaking", "hard assignment of counts, unknown number"),
            ("beta-process", "beta_process", "hard assignment of counts, beta process"),
        )
    ),
    ("nmf-vi", "token_modes", "always", "gamma", MEAN, "variational factors of counts", "poisson_factors"),
    ("nmf", "token_modes", "always", "gamma", MEAN, "factors of counts, Lee and Seung", "poisson_points"),
    *(
        (f"counts-gibbs-{name}", "token_draws", prior, "gamma", DRAW, summary, "poisson")
        for name, prior, summary in (
            ("finite", "beta_bernoulli", "exact sampler of counts, K features"),
            ("beta-process", "beta_process", "exact sampler of counts, beta process"),
        )
    ),
)


def build(
    system: str,
    features: int,
    *,
    inner: int = 1,
    settings: Mapping[str, object] | None = None,
    burn: int = 0,
) -> Algorithm:
    """The algorithm of a system with at most `features` features; settings go to the axis that has them,
    the others to the method. `burn` steps of a sampler are not kept."""
    from ibpdist.model.model import CountModel, Model

    row = find(system)
    wanted = {**row.defaults, **(settings or {})}
    prior = _make(row.prior_type, wanted)
    weights = _make(row.weights_type, wanted)
    observation = _make(row.observation_type, wanted)
    _refuse_foreign(row, {**row.defaults, **(settings or {})})
    kind: type[Any] = CountModel if row.counts else Model
    model, method = kind(prior, weights, observation, row.rules), METHODS[row.method]
    unknown = [name for name in wanted if name not in method.settings]
    if unknown:
        raise UsageError(_unknown("setting", unknown[0], settings_of(system)))
    return method.make(model, MethodOptions(features, inner, burn, wanted))


LACKED: Mapping[str, tuple[object, str]] = {
    "intercept": (False, "a system of all rows at once, such as lg-gibbs-infinite"),
    "row_noise": ("none", "a system with weights, such as fa-vi-infinite"),
    "branches": ("two", "a variational fit, such as counts-beta-process"),
}
"""Settings that some systems lack: as they are there, and which systems have them."""


def _refuse_foreign(row: System, wanted: Mapping[str, object]) -> None:
    """Refuse what the parts of a system have and the system has not."""
    for name in row.lacks:
        off, having = LACKED[name]
        if name in wanted and wanted[name] != off:
            raise UsageError(f"{name}: {row.name} has none; use {having}")


def entries(system: str, settings: Mapping[str, object]) -> int:
    """Numbers that a row keeps for each feature: z, and w where there are weights; twice as many while a
    move is tried, since rows can go back."""
    row = find(system)
    moves = "moves" in METHODS[row.method].settings and settings.get("moves", True)
    each = 2 if row.weights_type.has_weights and not row.counts else 1
    return each * (2 if moves else 1)


def rows_held(system: str, settings: Mapping[str, object], columns: int, features: int) -> int:
    """About how many whole rows the start of a fit, or of the fit before a sampler, holds in memory."""
    row, name = find(system), str(settings.get("start", "auto"))
    default = default_start(row.prior_type, row.weights_type)
    begin = starts().get(default if name in ("auto", "fit") else name)
    return 0 if begin is None else int(begin.rows_held(columns, features))


def most_features(system: str, settings: Mapping[str, object]) -> int:
    """The most features a fit may come to whose number is left to the data."""
    from ibpdist.model.priors._base import Number

    row = find(system)
    number = row.prior_type.number
    if number is Number.UNLIMITED:
        raise UsageError(f"K = auto: {system} has no limit and K is where it begins; use a number")
    if number is Number.CAPACITY or row.counts:
        raise UsageError(
            f"K = auto: objectives of {system} at different K do not compare; give a number, or compare "
            f"several with ibpdist choose --system {system} -K 10,20,40"
        )
    if number is Number.GIVEN:
        raise UsageError(f"K = auto: {system} has a given number of features; use {_infinite(row)}")
    if settings.get("start", "auto") == "random":
        raise UsageError("K = auto: a random start has a given number of features; use another start")
    return row.weights_type.most_features


def _infinite(row: System) -> str:
    from ibpdist.model.priors._base import Number

    same = (row.weights, row.observation, row.rules)
    close = [
        other.name
        for other in SYSTEMS.values()
        if other.prior_type.number is Number.TRUNCATED
        and (other.weights, other.observation, other.rules) == same
    ]
    return f"{close[0]}, or a number" if close else "a number"


def of_result(attributes: Mapping[Any, Any]) -> System:
    """The system that a result says it is of."""
    return find(str(attributes["system"]))


def weights_of(name: str) -> Weights:
    """Weights of real-valued data by name."""
    if name not in weights_names():
        raise UsageError(_unknown("weights", name, weights_names()))
    found: Weights = _weights()[name]()
    return found


def weights_names() -> list[str]:
    """Names of all weights of real-valued data."""
    return [name for name, axis in _weights().items() if not axis.counts]


def find(system: str) -> System:
    if system not in SYSTEMS:
        raise UsageError(_unknown("system", system, list(SYSTEMS)))
    return SYSTEMS[system]


def settings_of(system: str) -> list[str]:
    """Names of what can be set, in the order of the axes."""
    row = find(system)
    axes: tuple[Any, ...] = (row.prior_type, row.weights_type, row.observation_type)
    names = [f.name for axis in axes for f in fields(axis)] + list(METHODS[row.method].settings)
    return [name for name in names if name not in row.lacks]


def _make(axis: type[Any], wanted: dict[str, object]) -> Any:
    """The axis with its own settings, which are taken out of `wanted`."""
    return axis(**{f.name: wanted.pop(f.name) for f in fields(axis) if f.name in wanted})


def _unknown(what: str, name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, 1)
    hint = f"; did you mean {close[0]}?" if close else f"; known: {', '.join(known)}"
    return f"unknown {what} {name!r}{hint}"


@cache
def _priors() -> dict[str, Any]:
    from ibpdist.model.priors.always import Always
    from ibpdist.model.priors.beta_bernoulli import BetaBernoulli
    from ibpdist.model.priors.beta_process import BetaProcess
    from ibpdist.model.priors.buffet import Buffet
    from ibpdist.model.priors.stick_breaking import StickBreaking

    return {axis.name: axis for axis in (BetaBernoulli, StickBreaking, BetaProcess, Always, Buffet)}


@cache
def _weights() -> dict[str, Any]:
    from ibpdist.model.weights.exponential import Exponential
    from ibpdist.model.weights.gamma import Gamma
    from ibpdist.model.weights.laplace import Laplace
    from ibpdist.model.weights.normal import Normal
    from ibpdist.model.weights.unit import Unit

    return {axis.name: axis for axis in (Unit, Normal, Laplace, Exponential, Gamma)}


@cache
def _observations() -> dict[str, Any]:
    from ibpdist.model.observations.gaussian import Gaussian
    from ibpdist.model.observations.joint import Joint
    from ibpdist.model.observations.poisson import Poisson, PoissonFactors, PoissonPoints

    return {axis.name: axis for axis in (Gaussian, Joint, Poisson, PoissonFactors, PoissonPoints)}
