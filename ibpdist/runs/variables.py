"""Every variable of a result: group, name, dims, what it is, and its unit.

What writes a result takes dims from here, and what opens one adds `long_name` and `units` to its variables.
The export, the report and the table of the README read the same table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ibpdist.base.structs import Named

if TYPE_CHECKING:
    import xarray as xr

DATA, SQUARED, NATS = "units of the data", "squared units of the data", "nats"
PER_CELL = "nats per hidden cell"


@dataclass(frozen=True)
class Variable:
    """A variable of a result. In `dims` one in parentheses is there in some results only, and `a|b` is
    either of two."""

    name: str
    dims: str
    sentence: str
    unit: str = ""

    def forms(self) -> Iterator[tuple[str, ...]]:
        """The dims that it may have."""
        choices = [_choices(dim) for dim in self.dims.split()]
        yield from (tuple(filter(None, dims)) for dims in product(*choices))

    def dims_of(self, ndim: int) -> tuple[str, ...]:
        """Its dims in a result where it has `ndim` of them."""
        return next(dims for dims in self.forms() if len(dims) == ndim)

    def attributes(self) -> dict[str, str]:
        return {"long_name": self.sentence} | ({"units": self.unit} if self.unit else {})


@dataclass(frozen=True)
class Group:
    """A group of a result. `files` is how it is exported: a file for each array, or one table for all."""

    name: str
    dims: str
    sentence: str
    variables: tuple[Variable, ...]
    files: Literal["arrays", "table", "none"] = "none"

    def __getitem__(self, name: str) -> Variable:
        return {variable.name: variable for variable in self.variables}[name]

    def named(self, values: Mapping[str, Any]) -> Named:
        """Values by name with their dims."""
        arrays = {name: np.asarray(value) for name, value in values.items()}
        return {name: (self[name].dims_of(array.ndim), array) for name, array in arrays.items()}


PARAMS = Group(
    "params",
    "feature",
    "parameters of the fit, features by falling prevalence",
    (
        Variable("mean", "feature column", "the features: mean of each entry of the dictionary", DATA),
        Variable("mean_sd", "feature column", "standard deviation of each entry of the dictionary", DATA),
        Variable("prevalence", "feature", "share of the rows that have the feature, in falling order"),
        Variable("active", "feature", "expected in more than half a row; their number is the answer"),
        Variable("chance", "feature", "probability that a new row has the feature"),
        Variable("log_odds", "feature", "expected log odds of the feature in a row, before its data"),
        Variable("id", "feature", "number of the feature, never used again when it is gone"),
        Variable("noise", "(column)", "variance of the noise", SQUARED),
        Variable("scale", "(feature)", "variance of the entries of the dictionary", SQUARED),
        Variable("spread", "column", "variance of the column in the data", SQUARED),
        Variable(
            "intercept", "column", "value that every row has beside its features, with `intercept`", DATA
        ),
        Variable("intercept_sd", "column", "standard deviation of the intercept, with `intercept`", DATA),
        Variable("weight_mean", "feature", "mean of the weights of rows that have the feature, for `fa`"),
        Variable("tokens", "feature", "of counts: expected number of tokens of the feature"),
        Variable("weight_shape", "feature", "of counts: shape of the gamma weights of the feature"),
        Variable("eta", "", "of counts: concentration of the words of a feature, where it is drawn"),
        Variable("score", "", "of counts: log density of hidden tokens of the rows", "nats per hidden token"),
        Variable("scored_tokens", "", "of counts: number of hidden tokens"),
        Variable("row_freedom", "", "degrees of freedom of the noise of rows, with `row_noise`"),
        Variable("mass", "", "expected number of features of a row; with rounds, of atoms of a round"),
        Variable("concentration", "", "of a beta process: the larger, the fewer rows share a feature"),
        Variable(
            "round_chance",
            "feature round",
            "probability of each round, of a beta process; 1 for that of a draw",
        ),
        Variable("common", "column", "share of the most frequent value, of the cells that were looked at"),
        Variable(
            "start_objective", "start", "objective of the short fits that a fit began with", "nats per cell"
        ),
        Variable("start_active", "start", "active features of each short fit that stand out of the noise"),
    ),
    "arrays",
)
ROWS = Group(
    "rows",
    "row, feature",
    "features of each row",
    (
        Variable("z", "row feature", "probability that the row has the feature; read when it is used"),
        Variable(
            "w", "row feature", "weight of the feature in the row if it has it, for `fa`, `ica`, `counts`"
        ),
        Variable("precision", "row", "noise of a typical row over that of the row, with `row_noise`"),
    ),
    "arrays",
)
_TERMS = (
    Variable("likelihood", "(chain) step", "expected log likelihood of the data", NATS),
    Variable("prediction", "(chain) step", "log density of hidden tokens of counts", NATS),
    Variable("counts", "(chain) step", "expected log likelihood of counts by mean field", NATS),
    Variable("words", "(chain) step", "prior and entropy of the words of features by mean field", NATS),
    Variable("shapes", "(chain) step", "prior of the shapes of weights of counts, of a sampler", NATS),
    Variable("dictionary", "(chain) step", "prior and entropy of the dictionary", NATS),
    Variable("weights", "(chain) step", "prior and entropy of the weights", NATS),
    Variable("weight means", "(chain) step", "prior of the means of the weights, of a sampler", NATS),
    Variable("z prior", "(chain) step", "prior of who has which feature", NATS),
    Variable("z entropy", "(chain) step", "entropy of who has which feature", NATS),
    Variable(
        "sticks",
        "(chain) step",
        "prior and entropy of the sticks of an infinite prior or of a beta process",
        NATS,
    ),
    Variable("decays", "(chain) step", "prior and entropy of the decays of a beta process", NATS),
    Variable("rounds", "(chain) step", "prior and entropy of the rounds of a beta process", NATS),
    Variable("prevalence", "(chain) step", "prior and entropy of the prevalences of a finite prior", NATS),
    Variable("unused", "(chain) step", "features of a finite prior that were removed", NATS),
    Variable("tail", "(chain) step", "features beyond the truncation of an infinite prior", NATS),
    Variable("mass", "(chain) step", "prior of a learned mass", NATS),
    Variable("concentration", "(chain) step", "prior of a learned concentration", NATS),
    Variable("row noise", "(chain) step", "noise of rows: likelihood, prior and entropy", NATS),
    Variable("noise", "(chain) step", "prior of learned variances of the noise", NATS),
    Variable("scale", "(chain) step", "prior of learned variances of the dictionary", NATS),
)
TERMS = tuple(variable.name for variable in _TERMS)
"""What the objective is the sum of, as far as a model has it."""
TRACE = Group(
    "trace",
    "(chain), step",
    "the objective, or of a sampler the log joint density, and its terms after every step; `bound` is the "
    "objective without the tail and the priors of learned variances and mass",
    (
        Variable("objective", "(chain) step", "objective of a fit, log joint density of a sampler", NATS),
        Variable("bound", "(chain) step", "objective without tail and priors of variances and mass", NATS),
        Variable("active", "(chain) step", "number of active features"),
        *_TERMS,
        Variable("magnitude", "(chain) step", "size of the sums that cancel in the likelihood", NATS),
        Variable("trial", "(chain) step", "objective of the trial of a move", NATS),
        Variable("move", "(chain) step", "number of the move decided in this step, from 1; 0 without one"),
        Variable("gain", "(chain) step", "gain of the objective by the move", NATS),
        Variable("accepted", "(chain) step", "1 when the move was accepted"),
        Variable("settled", "(chain) step", "1 when no move is left to try"),
        Variable("heat", "(chain) step", "factor of the variances in this step of annealing"),
        Variable("warming", "(chain) step", "1 in the steps of the fit that a chain starts from"),
        Variable("slope", "(chain) step", "mean gain of the objective in the last steps, of counts", NATS),
        Variable("entries", "(chain) step", "number of features of all rows together"),
        Variable("singletons", "(chain) step", "number of features that one row has"),
        Variable("evidence", "(chain) step", "log evidence as the particle filter estimates it", NATS),
        Variable("effective", "(chain) step", "effective number of particles"),
    ),
    "table",
)
DIAGNOSIS = Group(
    "diagnosis",
    "feature, feature_",
    "what features explain, and which need a look",
    (
        Variable("explained", "feature", "share of the variance of the data that the feature explains alone"),
        Variable("explained_together", "", "share of the variance of the data that all features explain"),
        Variable("constant", "feature", "active, and nearly the same in all rows"),
        Variable("dense", "feature", "in more than 95 % of the rows, in different amounts"),
        Variable("idle", "feature", "active, and explains nothing"),
        Variable("rare", "feature", "active in very few rows"),
        Variable("correlation", "feature feature_", "correlation of two features over the rows"),
        Variable("cosine", "feature feature_", "cosine of two features, columns in units of the noise"),
        Variable("same_rows", "feature feature_", "two features in nearly the same rows"),
        Variable("same_shape", "feature feature_", "two features of nearly the same shape"),
        Variable("used_up", "", "all available features are in use"),
    ),
    "arrays",
)
HELDOUT = Group(
    "heldout",
    "evaluation, estimate",
    "held-out scores that `evaluate` keeps with the run",
    (
        Variable("score", "evaluation estimate", "log density of hidden cells given visible ones", PER_CELL),
        Variable("error", "evaluation estimate", "Monte Carlo error of the score", PER_CELL),
        Variable("disagree", "evaluation estimate", "number of rows in which the annealed chains disagree"),
        Variable("cells", "evaluation", "number of hidden cells"),
        Variable("rows", "evaluation", "number of rows with hidden cells"),
        Variable("data", "evaluation", "path of the dataset"),
        Variable("fingerprint", "evaluation", "hash of the dataset"),
        Variable("protocol", "evaluation", "which cells are hidden"),
        Variable("method", "evaluation", "how the score is computed"),
    ),
    "table",
)
TRANSFORM = Group(
    "transform",
    "column",
    "what `ingest`, or the fit itself, subtracted and divided by; new rows are treated alike",
    (
        Variable("center", "column", "subtracted from the column", DATA),
        Variable("scale", "column", "divides the column after centring", DATA),
    ),
    "arrays",
)
RESTARTS = Group(
    "restarts",
    "restart",
    "objective, seed and stop reason of every start",
    (
        Variable("seed", "restart", "seed of the start"),
        Variable("objective", "restart", "objective after the last step", NATS),
        Variable("steps", "restart", "number of steps"),
        Variable("stop", "restart", "why the fit stopped"),
    ),
    "table",
)
STABILITY = Group(
    "stability",
    "subsample, feature",
    "how often each active feature comes back in fits of subsamples of the rows, with `--stability`",
    (
        Variable("returns", "feature", "share of the subsamples whose fit has the feature"),
        Variable("stable", "feature", "comes back in at least three quarters of the subsamples"),
        Variable("present", "subsample feature", "whether the fit of the subsample has the feature"),
        Variable("match", "subsample feature", "number of the feature in the fit of the subsample, or -1"),
        Variable("similarity", "subsample feature", "cosine of the two features"),
        Variable("agreement", "subsample feature", "share of the rows in which both fits agree who has it"),
        Variable("rows", "subsample", "number of rows of the subsample"),
        Variable("stop", "subsample", "why the fit of the subsample stopped"),
    ),
    "arrays",
)
CONSENSUS = Group(
    "consensus",
    "feature, column",
    "features that come back in at least three quarters of the subsamples, as these find them",
    (
        Variable("mean", "feature column", "mean of the feature over the subsamples that have it", DATA),
        Variable("sd", "feature column", "standard deviation over the subsamples that have it", DATA),
    ),
    "arrays",
)
POSTERIOR = Group(
    "posterior",
    "chain, draw",
    "number of features, log joint density, noise, scale, mass, ...: the layout of ArviZ",
    (
        Variable("log_joint", "chain draw", "log joint density", NATS),
        Variable("features", "chain draw", "number of features"),
        Variable("log_likelihood", "chain draw", "log likelihood of the data", NATS),
        Variable("log_evidence", "chain draw", "log evidence as the particle filter estimates it", NATS),
        Variable("entries", "chain draw", "number of features of all rows together"),
        Variable("singletons", "chain draw", "number of features that one row has"),
        Variable("mass", "chain draw", "expected number of features of a row"),
        Variable("noise", "chain draw", "variance of the noise", SQUARED),
        Variable("log_noise", "chain draw", "mean over the columns of the log variance of the noise"),
        Variable("scale", "chain draw", "variance of the entries of the dictionary", SQUARED),
        Variable("log_scale", "chain draw", "mean over the features of the log variance of their entries"),
        Variable("row_freedom", "chain draw", "degrees of freedom of the noise of rows, with `row_noise`"),
        Variable("eta", "chain draw", "of counts: concentration of the words of a feature"),
        Variable(
            "concentration", "chain draw", "of a beta process: the larger, the fewer rows share a feature"
        ),
    ),
    "table",
)
DRAWS = Group(
    "draws",
    "chain, draw, place",
    "the features of each draw, and who has them unless that is too much",
    (
        Variable("mean", "chain draw place column", "the features: entries of the dictionary", DATA),
        Variable("prevalence", "chain draw place", "share of the rows that have the feature"),
        Variable("chance", "chain draw place", "probability that a new row has the feature"),
        Variable("id", "chain draw place", "number of the feature, the same in all draws of a chain"),
        Variable("mass", "chain draw", "expected number of features of a row"),
        Variable("noise", "chain draw (column)", "variance of the noise", SQUARED),
        Variable("scale", "chain draw (place)", "variance of the entries of the dictionary", SQUARED),
        Variable("intercept", "chain draw column", "value that every row has, with `intercept`", DATA),
        Variable("weight_mean", "chain draw place", "mean of the weights of the feature, for `fa`"),
        Variable("row_freedom", "chain draw", "degrees of freedom of the noise of rows, with `row_noise`"),
        Variable("weight_shape", "chain draw place", "of counts: shape of the weights of the feature"),
        Variable("tokens", "chain draw place", "of counts: number of tokens of the feature"),
        Variable("eta", "chain draw", "of counts: concentration of the words of a feature"),
        Variable(
            "concentration", "chain draw", "of a beta process: the larger, the fewer rows share a feature"
        ),
        Variable("z", "chain draw row place", "whether the row has the feature"),
    ),
)
DIAGNOSTICS = Group(
    "diagnostics",
    "variable",
    "R-hat and effective draws of what is in `/posterior`",
    (
        Variable("mean", "variable", "mean of all draws"),
        Variable("sd", "variable", "standard deviation of all draws"),
        Variable("mcse", "variable", "Monte Carlo error of the mean"),
        Variable("rhat", "variable", "R-hat, 1 when chains have mixed"),
        Variable("ess_bulk", "variable", "effective number of draws for the centre"),
        Variable("ess_tail", "variable", "effective number of draws for the tails"),
        Variable("draws", "variable", "number of draws of each chain that have the variable"),
    ),
    "table",
)
INTERNALS = Group(
    "internals",
    "",
    "what `transform`, `resume` and `--from` need; not for readers",
    (
        Variable("state", "byte", "parameters as the algorithm keeps them"),
        Variable("basis", "group|basis feature component", "directions of the covariance of the dictionary"),
        Variable("spectrum", "group component", "variances along these directions"),
        Variable("group", "column", "group of columns with the same covariance"),
        Variable("centre", "group|basis feature", "what the intercept owes to the dictionary"),
        Variable("intercept_error", "column", "variance of the intercept given the dictionary"),
    ),
)
GROUPS: Mapping[str, Group] = {
    group.name: group
    for group in (
        PARAMS, ROWS, TRACE, DIAGNOSIS, HELDOUT, TRANSFORM, RESTARTS,
        STABILITY, CONSENSUS, POSTERIOR, DRAWS, DIAGNOSTICS, INTERNALS,
    )
}  # fmt: skip
"""Groups of a result by name."""


def labelled(result: xr.DataTree) -> xr.DataTree:
    """A result whose variables have `long_name` and `units`, their own if they have some; the tree that was
    given, with attributes."""
    for name in GROUPS.keys() & result.children.keys():
        for variable in GROUPS[name].variables:
            if variable.name in result[name].variables:
                held = result[name][variable.name].attrs
                own = {"units": held["units"]} if "units" in held else {}
                held.update(variable.attributes() | own)
    return result


def _choices(dim: str) -> tuple[str, ...]:
    return (dim.strip("()"), "") if dim.startswith("(") else tuple(dim.split("|"))
