"""A model: a prior, weights, an observation, and a rule for each latent group, checked together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic

from ibpdist.base.errors import UsageError
from ibpdist.base.rules import MEAN, Rule, Rules
from ibpdist.model.observations._base import Observation, Params, Sums
from ibpdist.model.priors._base import Prior
from ibpdist.model.weights._base import RowDensity, Weights


@dataclass(frozen=True)
class Model(Generic[Params, Sums]):
    """prior x weights x observation under `rules`; an impossible pair is refused in a sentence."""

    prior: Prior
    weights: Weights
    observation: Observation[Params, Sums]
    rules: Rules = MEAN

    def __post_init__(self) -> None:
        wanted = [
            (self.rules.prior, self.prior.name, self.prior.rules),
            (self.rules.weights, f"{self.weights.name} weights", self.weights.rules),
            (self.rules.dictionary, f"{self.observation.name} dictionary", self.observation.rules),
        ]
        for rule, name, known in wanted:
            if rule not in known:
                raise UsageError(f"{name}: no update by {rule}; it knows {', '.join(sorted(known))}")
        if self.observation.dense and not self.prior.dense:
            raise UsageError(
                f"{self.observation.name}: rows have every feature, but not with {self.prior.name}"
            )
        if self.observation.dense and self.weights.density is not RowDensity.CLOSED:
            raise UsageError(
                f"{self.observation.name}: the weights of a row are integrated out, which needs normal ones, "
                f"not {self.weights.name}"
            )
        drawn = {rule is Rule.DRAW for rule in self._every_rule()}
        if len(drawn) > 1:
            raise UsageError("rules: draw everything or nothing; a mixture bounds nothing")

    @property
    def draws(self) -> bool:
        """Whether this is a sampler."""
        return self.rules.z is Rule.DRAW

    def _every_rule(self) -> tuple[Rule, ...]:
        return self.rules.z, self.rules.weights, self.rules.prior, self.rules.dictionary


AnyModel = Model[Any, Any]
