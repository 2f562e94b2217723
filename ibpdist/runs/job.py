"""What is fitted to what: a spec with its algorithm and its data, opened."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ibpdist import catalog
from ibpdist.algorithms._base import Parallel
from ibpdist.algorithms.sweeps import Converged, Rising, Rule, StepLimit, tolerance
from ibpdist.data._base import Source
from ibpdist.data.arrays import as_source
from ibpdist.errors import InputError
from ibpdist.observations.tiles import tile_rows
from ibpdist.spec import FitSpec


@dataclass(frozen=True)
class Job:
    """A fit, ready to run anywhere."""

    spec: FitSpec
    algorithm: Parallel
    source: Source

    @property
    def seed(self) -> int:
        return self.spec.seed

    @property
    def checkpoint(self) -> int:
        return self.spec.checkpoint

    def rules(self) -> list[Rule]:
        """When the fit stops, and when it must not go on."""
        source, monotone = self.source, self.algorithm.monotone()
        guard = Rising(source.rows * source.columns, tolerance(source.dtype.itemsize), monotone)
        converged: list[Rule] = [Converged(self.spec.rtol)] if monotone else []
        return [guard, *converged, StepLimit(self.spec.steps)]

    def attributes(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What a result says about where it comes from; records as JSON."""
        said = {name: _plain(value) for name, value in facts.items()}
        own = {
            "system": self.spec.system,
            "truncation": features_for(self.spec, self.source),
            "seed": str(self.spec.seed),
        }
        tile = tile_rows(self.source.columns, self.source.dtype.itemsize)
        return {"spec": self.spec.dump(), **own, **said, "tile": tile}


def job_of(spec: FitSpec, source: Source | None = None) -> Job:
    """A spec with its algorithm and its data, which are opened unless they are given."""
    data = source if source is not None else as_source(spec.data)
    if data.rows == 0:
        raise InputError("has no rows", file=spec.data)
    if spec.holdout:
        from ibpdist.data.splits import held

        data = held(data, spec.holdout)
    features = features_for(spec, data)
    return Job(spec, catalog.build(spec.system, features, inner=spec.inner, settings=spec.set), data)


def features_for(spec: FitSpec, source: Source) -> int:
    """The truncation level: as given, or the most that `auto` may come to on these data."""
    if spec.truncation != "auto":
        return spec.truncation
    return max(1, min(source.rows, source.columns, catalog.most_features(spec.system, spec.set)))


def _plain(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
