"""The content of the page: a result or a campaign, its log, and numbers by the path of their variable."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.catalog import systems
from ibpdist.catalog.spec import FitSpec
from ibpdist.evaluate import groups, posterior
from ibpdist.evaluate.fitted import spec_of
from ibpdist.report import chains
from ibpdist.report.html import ranking
from ibpdist.report.html.measures import CELLS, DRAWN_TOKENS, TOKENS, Measures
from ibpdist.report.html.numbers import Number
from ibpdist.report.html.rows import Seen, look, look_at_tokens

Event = Mapping[str, Any]
Values = NDArray[Any]
LISTED = 60
"""Features that are shown one by one."""
LEAST_IMAGE = 9
"""Columns from which a square number of them is taken for an image."""
HERE = ("summary", "stability", "features", "number", "members", "groups")
"""Nodes that no result holds, but for `stability` over subsamples."""
OF_ONE_DRAW = ("diagnosis", "rows")
"""Nodes of a sampler's result that tell of its last draw alone."""

REDUCTIONS: Mapping[str, Callable[[Values], float]] = {
    "sum": lambda values: float(values.sum()),
    "max": lambda values: float(values.max()),
    "min": lambda values: float(values.min()),
    "mean": lambda values: float(values.mean()),
    "median": lambda values: float(np.median(values)),
    "spread": lambda values: float(values.max() - values.min()),
    "extreme": lambda values: float(np.abs(values).max()),
    "last": lambda values: float(values.ravel()[-1]),
}
"""Reductions of a variable to one number; numbers that are not finite are left out."""


class Facts:
    """Numbers of a single run, or of a campaign and its best fit.

    result: the tree of the fit that is shown (xarray DataTree as `open_result` gives it).
    campaign: what `open_campaign` gives, or None.
    logs: the events of each start of a single run, or those of a campaign.
    image: (height, width) when the columns of a row are the pixels of an image.
    stability: of the active features of the result over the other restarts of a campaign (xarray Dataset
    as `consensus.stability` makes it), None with fewer than two.
    """

    def __init__(
        self,
        path: Path,
        result: Any,
        campaign: Any = None,
        logs: Sequence[Sequence[Event]] = (),
        image: tuple[int, int] | None = None,
        stability: Any = None,
    ) -> None:
        self.path, self.result, self.campaign, self.logs = path, result, campaign, logs
        self.sampled, self.attrs = "draws" in result.children, result.attrs
        self.stability: Any = None if self.sampled else stability
        self.counts = systems.of_result(self.attrs).counts
        self.image = image_of(result, not self.counts) if image is None else checked(result, image)
        self._known: dict[str, tuple[tuple[str, ...], Values]] = {}

    @cached_property
    def summary(self) -> Any:
        return None if self.campaign is None else self.campaign.summary

    @cached_property
    def features(self) -> Any:
        """Of a sampler: its features over the draws, those that most draws have first; None of a fit."""
        return posterior.features(self.result) if self.sampled else None

    @cached_property
    def number(self) -> Any:
        """Of a sampler: the share of the draws that have each number of features."""
        return posterior.number(self.result).to_dataset() if self.sampled else None

    @cached_property
    def members(self) -> Any:
        """Of a sampler: `features` of each row, over the draws; None when they were not kept."""
        if not self.sampled or "z" not in self.result["draws"]:
            return None
        return posterior.rows(self.result)

    @cached_property
    def groups(self) -> Any:
        """What rows of different groups share, by the first covariate that makes groups; None without one,
        and of a sampler."""
        if self.sampled or not self.has("rows/z"):
            return None
        by = groups.covariate(self.result["rows"].to_dataset())
        return None if by is None else groups.shared_features(self.result, by)

    @property
    def predicts(self) -> bool:
        """Whether the objective is the log density of hidden tokens."""
        return self.has("params/scored_tokens")

    @property
    def listed(self) -> bool:
        """Whether features are shown as lists of words."""
        return self.counts and self.image is None and self.has(f"{self.feature_node}/mean")

    @property
    def measures(self) -> Measures:
        """The words and units of what fits are compared by."""
        return CELLS if not self.counts else TOKENS if self.predicts else DRAWN_TOKENS

    @property
    def scaled(self) -> bool:
        """Whether features have weights in rows; draws of those are not kept."""
        return systems.of_result(self.attrs).weights_type.has_weights

    @property
    def row_node(self) -> str:
        """The node of z of the rows."""
        return "members" if self.sampled else "rows"

    @property
    def feature_node(self) -> str:
        """The node of `mean` and `prevalence` of the features that are shown."""
        return "features" if self.sampled else "params"

    @cached_property
    def active(self) -> list[int]:
        """Positions of the active features, most frequent first, of counts those with most tokens first; of
        a sampler those that are not rare."""
        if self.sampled:
            return [int(k) for k in np.flatnonzero(self.values("features/share") >= chains.RARE)]
        which = np.flatnonzero(self.values("params/active"))
        level = self.values("params/tokens" if self.counts else "params/prevalence")[which]
        return [int(k) for k in which[np.argsort(-level, kind="stable")]]

    @property
    def shown(self) -> list[int]:
        return self.active[:LISTED]

    @cached_property
    def seen(self) -> Seen | None:
        """The summary of the rows; None for a result without rows or without a dictionary."""
        if not self.has(f"{self.row_node}/z") or not self.has(f"{self.feature_node}/mean"):
            return None
        if not self.sampled:
            rows = self.result["rows"].to_dataset()
            return look_at_tokens(rows) if self.counts else look(rows, self.values("params/mean"))
        summary = look(self.members, self.values("features/mean"))
        return dataclasses.replace(summary, together=self.values("members/together"))

    @cached_property
    def bests(self) -> list[dict[str, int]]:
        """The position in the summary of the best fit of each hold-out."""
        return [] if self.summary is None else ranking.bests(self.summary)

    @property
    def best_at(self) -> dict[str, int]:
        """The position in the summary of the fit that is shown: the best one of the first hold-out."""
        return self.bests[0] if self.bests else {}

    @cached_property
    def scored(self) -> bool:
        """Whether fits of the campaign have held-out scores."""
        return self.has("summary/heldout") and bool(np.isfinite(self.values("summary/heldout")).any())

    @cached_property
    def spec(self) -> FitSpec | None:
        """The spec of the fit; None when it cannot be read."""
        try:
            return spec_of(self.result)
        except UsageError:
            return None

    def labels(self, dim: str, node: str) -> Values | None:
        """Labels along a dim, if it has any."""
        held = self.result[node]
        return np.asarray(held[dim].values) if dim in held.coords else None

    @cached_property
    def columns(self) -> Values | None:
        return self.labels("column", "params")

    @cached_property
    def uncertain(self) -> bool:
        """Whether features have standard deviations; those of a single draw are zero."""
        if self.sampled or not self.has("params/mean_sd"):
            return False
        return bool((self.values("params/mean_sd") > 0).any())

    def stability_of(self, name: str, k: int, **index: int) -> Number | None:
        """A number of the stability of feature k; None unless k is active in the best fit."""
        if not self.has(f"stability/{name}"):
            return None
        places = [int(at) for at in self._node("stability")["feature"].values]
        return self.entry(f"stability/{name}", feature=places.index(k), **index) if k in places else None

    def has(self, variable: str) -> bool:
        node, _, name = variable.partition("/")
        held = self._node(node)
        return held is not None and name in held

    def entry(self, variable: str, /, **index: int) -> Number:
        """An entry of a variable, by positions along its dims."""
        dims, values = self._find(variable)
        value = values[tuple(index[dim] for dim in dims)]
        return Number(variable, float(value), tuple((dim, index[dim]) for dim in dims))

    def reduced(self, variable: str, of: str, /, **index: int) -> Number:
        """A reduction of a variable along the dims that no position is given for."""
        dims, values = self._find(variable)
        part = values[tuple(index.get(dim, slice(None)) for dim in dims)].astype(np.float64)
        finite = part[np.isfinite(part)]
        value = REDUCTIONS[of](finite) if finite.size else math.nan
        return Number(variable, value, tuple((d, index[d]) for d in dims if d in index), of)

    def values(self, variable: str) -> Values:
        return self._find(variable)[1]

    def attribute(self, name: str) -> Number:
        """A number among the attributes of the result."""
        return Number(f"attrs/{name}", float(self.attrs[name]))

    def record(self, name: str) -> Mapping[str, Any]:
        """A record among the attributes, which hold it as JSON; empty when it is not there."""
        record = self._json(name)
        return record if isinstance(record, Mapping) else {}

    def records(self, name: str) -> list[Mapping[str, Any]]:
        """A list of records among the attributes; empty when it is not there."""
        records = self._json(name)
        return [one for one in records if isinstance(one, Mapping)] if isinstance(records, list) else []

    def _json(self, name: str) -> Any:
        held = self.attrs.get(name)
        try:
            return json.loads(held) if isinstance(held, str) else held
        except ValueError:
            return None

    def _find(self, variable: str) -> tuple[tuple[str, ...], Values]:
        if variable not in self._known:
            node, _, name = variable.partition("/")
            held = self._node(node)[name]
            self._known[variable] = tuple(str(dim) for dim in held.dims), np.asarray(held.values)
        return self._known[variable]

    def _node(self, name: str) -> Any:
        if name in HERE and getattr(self, name) is not None:
            return getattr(self, name)
        if name not in self.result.children or (self.sampled and name in OF_ONE_DRAW):
            return None
        return self.result[name]


def image_of(result: Any, guess: bool = True) -> tuple[int, int] | None:
    """Height and width of the images that rows are.

    As the attribute `image` says; else, with `guess`, columns without labels are taken for an image when
    their number is a square.
    """
    params = result["params"]
    if "mean" not in params:
        return None
    columns, shape = int(params["mean"].sizes["column"]), _two_numbers(result.attrs.get("image"))
    if shape is not None and math.prod(shape) == columns:
        return shape
    side = math.isqrt(columns)
    square = side * side == columns >= LEAST_IMAGE and "column" not in params.coords
    return (side, side) if square and guess else None


def _two_numbers(image: Any) -> tuple[int, int] | None:
    """Two numbers, as they are or as JSON."""
    try:
        high, wide = json.loads(image) if isinstance(image, str) else image
        return int(high), int(wide)
    except (TypeError, ValueError):
        return None


def checked(result: Any, image: tuple[int, int]) -> tuple[int, int]:
    """The size of images; UsageError when rows have another number of columns."""
    columns = int(result.attrs["columns"])
    if math.prod(image) != columns:
        raise UsageError(f"image: {image[0]} x {image[1]} pixels expected, but rows have {columns} columns")
    return image
