"""Where each stored record is defined, by its tag.

Tags are what files hold, so they stay for ever; a module that moves changes its line here.
"""

from __future__ import annotations

from collections.abc import Mapping

HOMES: Mapping[str, str] = {
    "always-params": "ibpdist.model.priors.always",
    "anchored-params": "ibpdist.inference.gibbs.anchors",
    "anchored-row-state": "ibpdist.inference.gibbs.anchors",
    "beta-bernoulli-params": "ibpdist.model.priors.beta_bernoulli",
    "beta-process-params": "ibpdist.model.priors.beta_process",
    "buffet-params": "ibpdist.model.priors.buffet",
    "chain": "ibpdist.inference.in_turn.sequential",
    "chain-report": "ibpdist.inference.in_turn.chains",
    "chain-reports": "ibpdist.inference.in_turn.chains",
    "covariance-question": "ibpdist.inference.starts.start_questions",
    "data-facts": "ibpdist.inference.in_turn.chains",
    "documents-question": "ibpdist.inference.counts.documents",
    "failed-question": "ibpdist.inference.batch",
    "feature-draw": "ibpdist.runs.posterior_draws",
    "factorised-counts-params": "ibpdist.model.observations.factorised_counts",
    "gaussian-params": "ibpdist.model.observations.gaussian_params",
    "intercept": "ibpdist.model.observations.intercept",
    "member-params": "ibpdist.inference.batch",
    "members": "ibpdist.inference.batch",
    "model-params": "ibpdist.inference.ascent.params",
    "short-fits": "ibpdist.inference.ascent.params",
    "nothing": "ibpdist.base.structs",
    "row-noise": "ibpdist.model.observations.row_noise",
    "row-precision": "ibpdist.model.observations.row_noise",
    "row-state": "ibpdist.model.observations._base",
    "rows-question": "ibpdist.inference.starts.start_questions",
    "sample-question": "ibpdist.inference.starts.start_questions",
    "scattered-params": "ibpdist.model.observations.gaussian_params",
    "search-params": "ibpdist.inference.ascent.search_progress",
    "search-progress": "ibpdist.inference.ascent.search_progress",
    "search-row-state": "ibpdist.inference.ascent.search_progress",
    "slab": "ibpdist.model.weights._base",
    "started-by-fit-params": "ibpdist.inference.gibbs.started_by_fit",
    "stick-breaking-params": "ibpdist.model.priors.stick_breaking",
    "survey": "ibpdist.model.observations._base",
    "token-draw-params": "ibpdist.inference.counts.draws",
    "token-draw-row-state": "ibpdist.inference.counts.draws",
    "token-params": "ibpdist.inference.counts.params",
    "token-row-state": "ibpdist.inference.counts.params",
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
