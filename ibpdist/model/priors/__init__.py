"""How likely is a feature to be on: the prior axis."""

from ibpdist.model.priors.beta_bernoulli import BetaBernoulli, BetaBernoulliParams
from ibpdist.model.priors.stick_breaking import StickBreaking, StickBreakingParams

__all__ = ["BetaBernoulli", "BetaBernoulliParams", "StickBreaking", "StickBreakingParams"]
