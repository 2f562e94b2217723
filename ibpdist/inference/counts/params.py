"""What a fit of counts by collapsed means knows: globally, of rows, and in sums over rows (counts.md 4)."""

from __future__ import annotations

from typing import Any

from ibpdist.base.structs import Array, dims, struct


@struct("token-params", since=1)
class TokenParams:
    """What the next step sees, and how the last one ended.

    `y` (column, feature) are expected tokens; `shape`, `odds` (feature) those of the weights and the log odds
    of having the feature; `eta` the concentration of the words; `own` is 1 where the rows are in y, and 0
    where it was made of something else; `folds` is how often rows then look for their tokens before the first
    step. `on` (feature), `rows` and `change`, the tokens that changed their feature as a share of all, are of
    the last step. `scored` hidden tokens have the log density `recent[-1]` (step) in nats, and had those
    before it in the steps before.
    """

    prior: Any
    y: Array = dims("column feature")
    shape: Array = dims("feature")
    odds: Array = dims("feature")
    eta: Array = dims()
    own: Array = dims()
    folds: Array = dims()
    ids: Array = dims("feature")
    on: Array = dims("feature")
    rows: Array = dims()
    change: Array = dims()
    scored: Array = dims()
    recent: Array = dims("step")


@struct("token-row-state", since=1)
class TokenRowState:
    """Of the rows of a chunk: expected tokens `y` of each feature, and the rate of the weights."""

    y: Array = dims("row feature", reduce="concat")
    rate: Array = dims("row", reduce="concat")


@struct
class TokenStepSums:
    """Sums over rows. `y`: expected tokens; `on`: sum f; `seen`, `exposed`: of the fixed point of the shapes;
    `change`, `tokens`: by how much y changed, and the tokens of the rows; `nats`, `scored`: log density of
    the hidden tokens, and how many there are."""

    y: Array = dims("column feature")
    on: Array = dims("feature")
    seen: Array = dims("feature")
    exposed: Array = dims("feature")
    rows: Array = dims()
    change: Array = dims()
    tokens: Array = dims()
    nats: Array = dims()
    scored: Array = dims()
