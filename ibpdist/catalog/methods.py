"""How a model is fitted: methods by name, with the settings that are theirs and not the model's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import Rule

if TYPE_CHECKING:
    from ibpdist.inference._base import AnyParallel
    from ibpdist.inference.in_turn.sequential import Sequential
    from ibpdist.model.model import AnyModel, FactorModel, TokenModel
    from ibpdist.model.priors._base import Prior
    from ibpdist.model.weights._base import WeightsKind

    Algorithm = AnyParallel | Sequential

FIT = 200
"""Steps after which a fit that a sampler begins with is good enough."""


@dataclass(frozen=True)
class MethodOptions:
    """What an algorithm is made of besides the model: K, sweeps over the features in a step, steps that
    are not kept, and the settings of the method as they were given."""

    features: int
    inner: int
    burn: int
    settings: Mapping[str, object]

    def flag(self, name: str, default: bool) -> bool:
        value = self.settings.get(name, default)
        if not isinstance(value, bool):
            raise UsageError(f"{name}: {value!r}: expected true or false")
        return value

    def number(self, name: str, default: float, least: float) -> float:
        value = self.settings.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value < float("inf"):
            raise UsageError(f"{name} is {value!r}; expected a number of at least {least:g}")
        return float(value)

    def count(self, name: str, default: int) -> int:
        value = self.settings.get(name, default)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise UsageError(f"{name}: {value!r}: expected a whole number of at least 1")
        return value

    def start(self, default: str, known: Mapping[str, Any]) -> Any:
        """What makes the beginning that was asked for; `auto` is the default."""
        name = self.settings.get("start", "auto")
        chosen = default if name == "auto" else name
        if chosen not in known:
            raise UsageError(f"start: {chosen!r}: expected auto, {', '.join(known)}")
        return known[str(chosen)]()


@dataclass(frozen=True)
class Method:
    """Names of its settings, and what makes the algorithm."""

    settings: tuple[str, ...]
    make: Callable[[Any, MethodOptions], Algorithm]


def _ascent(model: AnyModel, asked: MethodOptions) -> AnyParallel:
    """Coordinate ascent with the moves that there are."""
    from ibpdist.inference.ascent.coordinate import Coordinate
    from ibpdist.inference.ascent.schedules import moves_for
    from ibpdist.inference.ascent.search import Search

    moves, anneal = asked.flag("moves", True), asked.number("anneal", 1.0, 1.0)
    begin = asked.start(default_start(model.prior, model.weights), starts())
    fit = Coordinate(model, asked.features, asked.inner, begin, anneal)
    schedule = moves_for(model) if moves else None
    return fit if schedule is None else Search(fit, schedule)


def _gibbs(model: AnyModel, asked: MethodOptions) -> AnyParallel:
    """All rows at once given the prevalences, which are drawn too; `auto` begins where a variational fit
    ends."""
    from ibpdist.inference.ascent.coordinate import Coordinate

    begin = asked.start("fit", {"fit": _random} | starts())
    return _after_fit(model, asked, Coordinate(model, asked.features, asked.inner, begin))


def _anchored(model: AnyModel, asked: MethodOptions) -> AnyParallel:
    """The same without a limit to the number of features (`most` apart)."""
    from ibpdist.inference.gibbs.anchored import Anchored

    begin = asked.start("fit", {"fit": _random, "empty": _random} | starts())
    features = 0 if asked.settings.get("start") == "empty" else asked.features
    most = asked.count("most", max(1000, 4 * asked.features))
    births = asked.count("births", 8)
    return _after_fit(model, asked, Anchored(model, features, most, asked.inner, births, begin=begin))


def _after_fit(model: AnyModel, asked: MethodOptions, sampler: AnyParallel) -> AnyParallel:
    """The sampler after a fit, unless it was to begin in another way. The fit has at most half of the
    steps that are not kept, and none when all are kept: its steps are no draws."""
    from ibpdist.inference.gibbs.started_by_fit import StartedByFit

    if asked.settings.get("start", "auto") not in ("auto", "fit"):
        return sampler
    return StartedByFit(variational(model, asked), sampler, _fit_steps(asked))


def _fit_steps(asked: MethodOptions) -> int:
    """Most steps of the fit that a sampler begins with."""
    return max(1, min(FIT, asked.burn // 2)) if asked.burn else 0


def _collapsed_means(model: TokenModel, asked: MethodOptions) -> AnyParallel:
    """Expected tokens of counts, weights and words of features integrated out."""
    from ibpdist.inference.counts.documents import Documents, RandomWords
    from ibpdist.inference.counts.means import TokenMeans

    begin = asked.start(model.weights.default_start, {one.name: one for one in (Documents, RandomWords)})
    return TokenMeans(model, asked.features, asked.number("hidden", 0.05, 0.0), begin)


def _token_modes(model: FactorModel, asked: MethodOptions) -> AnyParallel:
    """Counts by mean field; the features of a row by joint flips, where it does not have all."""
    from ibpdist.inference.counts.documents import Documents, RandomWords
    from ibpdist.inference.counts.modes import TokenModes

    begin = asked.start(model.weights.default_start, {one.name: one for one in (Documents, RandomWords)})
    return TokenModes(model, asked.features, begin)


def _token_draws(model: TokenModel, asked: MethodOptions) -> AnyParallel:
    """All rows of counts at once; `auto` begins where collapsed means end."""
    from ibpdist.inference.counts.documents import Documents, RandomWords
    from ibpdist.inference.counts.draws import TokenDraws, hand_tokens
    from ibpdist.inference.gibbs.started_by_fit import StartedByFit
    from ibpdist.model.model import CountModel

    begins = {"fit": Documents} | {one.name: one for one in (Documents, RandomWords)}
    sampler = TokenDraws(model, asked.features, asked.start("fit", begins))
    if asked.settings.get("start", "auto") not in ("auto", "fit"):
        return sampler
    observation = dataclasses.replace(model.observation, eta=model.observation.first_eta)
    means = CountModel(_prior_of_fit(model.prior), model.weights, observation)
    fit = _collapsed_means(means, MethodOptions(asked.features, asked.inner, 0, {}))
    return StartedByFit(fit, sampler, _fit_steps(asked), hand_tokens)


def _random() -> Any:
    from ibpdist.inference.starts.begin import Random

    return Random()


def _in_turn(turn: str) -> Callable[[AnyModel, MethodOptions], Algorithm]:
    """Rows one after the other; `auto` begins where a variational fit ends."""

    def make(model: AnyModel, asked: MethodOptions) -> Algorithm:
        from ibpdist.inference.in_turn.chain_started_by_fit import ChainStartedByFit
        from ibpdist.inference.in_turn.collapsed import Collapsed
        from ibpdist.inference.in_turn.in_turn import Coins, Empty, InTurn
        from ibpdist.inference.in_turn.uncollapsed import Uncollapsed

        own = int(asked.number("candidates", 0, 0))
        turns: dict[str, Any] = {"collapsed": Collapsed(), "uncollapsed": Uncollapsed(own)}
        begins = {"fit": Coins, "random": Coins, "empty": Empty}
        begin = asked.start("fit", begins)
        sampler = InTurn(model, turns[turn], asked.features, begin)
        if asked.settings.get("start", "auto") not in ("auto", "fit"):
            return sampler
        return ChainStartedByFit(sampler, variational(model, asked))

    return make


def _particle(model: AnyModel, asked: MethodOptions) -> Algorithm:
    """All rows once, by many particles."""
    from ibpdist.inference.in_turn.particle import Particles

    return Particles(model, asked.count("particles", 50))


METHODS: Mapping[str, Method] = {
    "ascent": Method(("start", "moves", "anneal"), _ascent),
    "gibbs": Method(("start",), _gibbs),
    "anchored": Method(("start", "most", "births"), _anchored),
    "collapsed": Method(("start",), _in_turn("collapsed")),
    "uncollapsed": Method(("start", "candidates"), _in_turn("uncollapsed")),
    "particle": Method(("particles",), _particle),
    "collapsed_means": Method(("start", "hidden"), _collapsed_means),
    "token_modes": Method(("start",), _token_modes),
    "token_draws": Method(("start",), _token_draws),
}
IN_TURN = ("collapsed", "uncollapsed", "particle")
"""Methods that take the rows one after the other."""


def variational(model: AnyModel, asked: MethodOptions) -> AnyParallel:
    """The fit that a sampler of this model begins with: of the same observation and weights."""
    from ibpdist.model.model import Model

    one = Model(_prior_of_fit(model.prior), model.weights, model.observation)
    return _ascent(one, MethodOptions(asked.features, asked.inner, 0, {}))


def _prior_of_fit(prior: Any) -> Prior:
    """The prior of the fit that a sampler with this one begins with: the same where a fit can have it; all
    priors that are sampled have a mass."""
    from ibpdist.model.priors.stick_breaking import StickBreaking

    found: Prior = prior if Rule.MEAN in prior.rules else StickBreaking(prior.mass)
    return found


def default_start(prior: Prior | type[Prior], weights: WeightsKind | type[WeightsKind]) -> str:
    """That of the weights, and the principal one where real-valued rows have every feature: there rotations
    are equivalent."""
    return "principal" if prior.dense and not weights.counts else weights.default_start


def starts() -> dict[str, Any]:
    """How a fit of all rows at once can begin."""
    from ibpdist.inference.starts.begin import Random, Rows, TruncatedSVD
    from ibpdist.inference.starts.best import Best
    from ibpdist.inference.starts.independent_start import Independent
    from ibpdist.inference.starts.principal import Principal
    from ibpdist.inference.starts.spectral import Spectral

    begins = (Random, Rows, TruncatedSVD, Spectral, Principal, Independent, Best)
    return {begin.name: begin for begin in begins}
