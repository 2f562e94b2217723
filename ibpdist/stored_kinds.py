"""Where each stored record is defined, by its tag.

Tags are what files hold, so they stay for ever; a module that moves changes its line here.
"""

from __future__ import annotations

from collections.abc import Mapping

HOMES: Mapping[str, str] = {
    "always-params": "ibpdist.priors.always",
    "anchored-params": "ibpdist.algorithms.anchors",
    "anchored-row-state": "ibpdist.algorithms.anchors",
    "beta-bernoulli-params": "ibpdist.priors.beta_bernoulli",
    "buffet-params": "ibpdist.priors.buffet",
    "chain": "ibpdist.algorithms.sequential",
    "chain-report": "ibpdist.algorithms.chains",
    "chain-reports": "ibpdist.algorithms.chains",
    "covariance-question": "ibpdist.algorithms.looks",
    "data-facts": "ibpdist.algorithms.chains",
    "failed-question": "ibpdist.algorithms.batch",
    "feature-draw": "ibpdist.runs.draws",
    "gaussian-params": "ibpdist.observations.dictionary",
    "member-params": "ibpdist.algorithms.batch",
    "members": "ibpdist.algorithms.batch",
    "model-params": "ibpdist.algorithms.params",
    "nothing": "ibpdist.algorithms.search",
    "row-state": "ibpdist.observations._base",
    "sample-question": "ibpdist.algorithms.looks",
    "search-params": "ibpdist.algorithms.search",
    "search-progress": "ibpdist.algorithms.stand",
    "search-row-state": "ibpdist.algorithms.search",
    "started-by-fit-params": "ibpdist.algorithms.warmed",
    "stick-breaking-params": "ibpdist.priors.stick_breaking",
    "survey": "ibpdist.observations._base",
}

TAG_OF_CLASS: Mapping[str, str] = {
    "AlwaysParams": "always-params",
    "AnchoredParams": "anchored-params",
    "AnchoredState": "anchored-row-state",
    "BetaBernoulliParams": "beta-bernoulli-params",
    "BuffetParams": "buffet-params",
    "Chain": "chain",
    "CovarianceQuestion": "covariance-question",
    "Drawn": "feature-draw",
    "Facts": "data-facts",
    "GaussianParams": "gaussian-params",
    "Left": "failed-question",
    "MemberParams": "member-params",
    "Members": "members",
    "ModelParams": "model-params",
    "Nothing": "nothing",
    "RowState": "row-state",
    "SampleQuestion": "sample-question",
    "SearchParams": "search-params",
    "SearchState": "search-row-state",
    "Stand": "search-progress",
    "StickBreakingParams": "stick-breaking-params",
    "Survey": "survey",
    "Told": "chain-report",
    "ToldOf": "chain-reports",
    "WarmedParams": "started-by-fit-params",
}
"""Tags of the records that the first format named by their class."""
