"""A model: a prior, weights, an observation, and a rule for each latent group, checked together."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import MEAN, Rule, Rules
from ibpdist.model.observations._base import Observation, ObservationKind, Params, Sums
from ibpdist.model.observations.poisson import Poisson, PoissonFactors, PoissonPoints
from ibpdist.model.priors._base import Prior
from ibpdist.model.weights._base import RowDensity, Weights, WeightsKind
from ibpdist.model.weights.gamma import Gamma


@dataclass(frozen=True)
class Model(Generic[Params, Sums]):
    """prior x weights x observation under `rules`; an impossible pair is refused in a sentence."""

    prior: Prior
    weights: Weights
    observation: Observation[Params, Sums]
    rules: Rules = MEAN

    def __post_init__(self) -> None:
        refuse_rules(self.prior, self.weights, self.observation, self.rules)
        refuse_sparse(self.observation, self.prior)
        if self.observation.dense and self.weights.density is not RowDensity.CLOSED:
            raise UsageError(
                f"{self.observation.name}: the weights of a row are integrated out, which needs normal ones, "
                f"not {self.weights.name}"
            )

    @property
    def draws(self) -> bool:
        """Whether this is a sampler."""
        return self.rules.z is Rule.DRAW


AnyModel = Model[Any, Any]


Counts = TypeVar("Counts", Poisson, PoissonFactors | PoissonPoints, covariant=True)


@dataclass(frozen=True)
class CountModel(Generic[Counts]):
    """prior x gamma weights x counts under `rules`."""

    prior: Prior
    weights: Gamma
    observation: Counts
    rules: Rules = MEAN

    def __post_init__(self) -> None:
        refuse_rules(self.prior, self.weights, self.observation, self.rules)
        refuse_sparse(self.observation, self.prior)


def refuse_sparse(observation: ObservationKind, prior: Prior) -> None:
    """Refuse a prior that chooses features of an observation whose rows have all."""
    if observation.dense and not prior.dense:
        raise UsageError(f"{observation.name}: rows have every feature, but not with {prior.name}")


def refuse_rules(prior: Prior, weights: WeightsKind, observation: ObservationKind, rules: Rules) -> None:
    """Refuse rules that a part of a model has no update by, and weights of another kind of data."""
    wanted = [
        (rules.prior, _with_settings(prior), prior.rules),
        (rules.weights, f"{weights.name} weights", weights.rules),
        (rules.dictionary, f"{observation.name} dictionary", observation.rules),
    ]
    for rule, name, known in wanted:
        if rule not in known:
            raise UsageError(f"{name}: no update by {rule}; it knows {', '.join(sorted(known))}")
    if weights.counts != observation.counts:
        kinds = {True: "counts", False: "real-valued data"}
        raise UsageError(
            f"{observation.name}: cells are {kinds[observation.counts]}, and {weights.name} weights are "
            f"those of {kinds[weights.counts]}"
        )
    if len({rule is Rule.DRAW for rule in (rules.z, rules.weights, rules.prior, rules.dictionary)}) > 1:
        raise UsageError("rules: draw everything or nothing; a mixture bounds nothing")


def _with_settings(prior: Any) -> str:
    """The name of a prior, with settings that are not the defaults."""
    told = [
        f"{f.name}={getattr(prior, f.name)}" for f in fields(prior) if getattr(prior, f.name) != f.default
    ]
    return f"{prior.name} with {', '.join(told)}" if told else str(prior.name)


TokenModel = CountModel[Poisson]
"""Counts whose weights and words are integrated out, or drawn."""
FactorModel = CountModel[PoissonFactors | PoissonPoints]
"""Counts by mean field."""
