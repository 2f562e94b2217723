"""What a campaign is: a grid of fits of one dataset, to and from YAML.

Every key may be one value or a list. A key with several values is a dim of the summary; system,
truncation and restart always are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Any, Self, TypeVar

from pydantic import BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ibpdist.base.errors import UsageError
from ibpdist.catalog.spec import FitSpec, Holdout, Name, Setting, Spec, Truncation, positive, setting_error
from ibpdist.data.subsample import HALF
from ibpdist.runs.restarts import seed_of

T = TypeVar("T")
ALWAYS = ("system", "truncation")
KEYS = ("steps", "rtol", "inner", "holdout")
DIMS = {"steps": "step_limit"}
"""Dims that have another name than their key: the summary has the steps that were made."""
MOST = 100_000
"""Fits of a campaign: each has a line in its manifest and a folder."""
Labels = Mapping[str, Any]


def _several(value: object) -> object:
    """One value as a list; refuses an empty list and repeated values."""
    if not isinstance(value, list):
        return [value]
    if not value:
        raise ValueError("expected a value, or a list of at least one")
    twice = [one for at, one in enumerate(value) if one in value[:at]]
    if twice:
        raise ValueError(f"{twice[0]!r} occurs twice in the list")
    return value


Several = Annotated[list[T], BeforeValidator(_several)]


class CampaignSpec(Spec):
    """Systems x truncation levels x settings x restarts of one dataset.

    The keys are those of a `FitSpec`, and `start`. `seed` is that of the first restart; the others
    have seeds derived from it. `holdout` scores every fit on what it did not see. `chains`, `burn` and
    `thin` are for the samplers among the systems, `stability` and `subsample` for the others.
    """

    data: Name
    system: Several[Annotated[str, Field(min_length=1, max_length=64)]]
    truncation: Several[Truncation]
    restarts: int = Field(default=1, gt=0)
    seed: int = Field(default=0, ge=0)
    steps: Several[Annotated[int, Field(gt=0)]] = Field(default=[1000])
    rtol: Several[Annotated[float, Field(ge=0, lt=1)]] = Field(default=[1e-6])
    inner: Several[Annotated[int, Field(gt=0)]] = Field(default=[1])
    holdout: Several[Holdout] = Field(default=[0.0])
    checkpoint: int = Field(default=10, gt=0)
    chains: int = Field(default=1, gt=0)
    burn: int | None = Field(default=None, ge=0)
    thin: int = Field(default=1, gt=0)
    stability: int | None = Field(default=None, ge=2)
    subsample: float = Field(default=HALF, gt=0, lt=1)
    start: Several[str] | None = None
    set: dict[str, Several[Setting]] = Field(default_factory=dict)

    @field_validator("system", "start")
    @classmethod
    def _known(cls, value: list[str] | None, info: Any) -> list[str] | None:
        from ibpdist.catalog import systems

        known = {"system": tuple(systems.SYSTEMS), "start": systems.STARTS}[info.field_name]
        for one in value or []:
            if one not in known:
                raise ValueError(f"{one!r} is not known; expected one of {', '.join(known)}")
        return value

    @field_validator("system")
    @classmethod
    def _of_one_kind(cls, value: list[str]) -> list[str]:
        """Refuse fits whose scores do not compare: of cells of real-valued data and of tokens of counts."""
        from ibpdist.catalog.systems import find

        other = [one for one in value if find(one).counts != find(value[0]).counts]
        if other:
            kinds = {True: "counts", False: "real-valued data"}
            raise ValueError(
                f"{value[0]} is for {kinds[find(value[0]).counts]} and {other[0]} for "
                f"{kinds[find(other[0]).counts]}, so their scores do not compare: make two campaigns"
            )
        return value

    @field_validator("chains", "burn", "thin")
    @classmethod
    def _of_samplers(cls, value: int | None, info: Any) -> int | None:
        from ibpdist.catalog.systems import find

        given = value != cls.model_fields[info.field_name].default
        if given and not any(find(one).sampler for one in info.data.get("system", [])):
            raise ValueError("is for samplers, and no system is one")
        return value

    @field_validator("stability")
    @classmethod
    def _of_fits(cls, value: int | None, info: Any) -> int | None:
        from ibpdist.catalog.systems import find

        if value is not None and all(find(one).sampler for one in info.data.get("system", [])):
            raise ValueError("is for fits that look for an optimum, and every system is a sampler")
        return value

    @field_validator("subsample")
    @classmethod
    def _of_subsamples(cls, value: float, info: Any) -> float:
        if value != HALF and info.data.get("stability", 0) is None:
            raise ValueError("no subsamples are asked for: give stability, their number")
        return value

    @field_validator("set")
    @classmethod
    def _usable(cls, value: dict[str, list[Any]], info: Any) -> dict[str, list[Any]]:
        """Refuse a setting that some system does not have: part of the grid would be empty."""
        from ibpdist.catalog.systems import settings_of

        for name, settings in value.items():
            if name == "start" and info.data.get("start") is not None:
                raise setting_error(
                    name, settings[0], "sets the same option as the key start: give one of them"
                )
            for system in info.data.get("system", []):
                if name not in settings_of(system):
                    known = ", ".join(settings_of(system))
                    raise setting_error(name, settings[0], f"{system} has no such setting; known: {known}")
            for setting in settings:
                positive(name, setting)
        return value

    @model_validator(mode="after")
    def _in_bounds(self) -> Self:
        """Refuse more fits than a campaign holds, and values that a system does not take."""
        keys = {name: getattr(self, name) for name in (*ALWAYS, *KEYS)}
        sizes = {name: len(some) for name, some in (keys | self.settings).items()}
        fits = math.prod(sizes.values()) * self.restarts
        if fits > MOST:
            largest = (
                "restarts" if self.restarts >= max(sizes.values()) else max(sizes, key=sizes.__getitem__)
            )
            count = self.restarts if largest == "restarts" else sizes[largest]
            reason = f"makes a grid of {fits:,} fits; expected at most {MOST:,}, in several campaigns"
            raise self._fault(largest, count, reason)
        for system in self.system:
            self._try(system)
        return self

    def _try(self, system: str) -> None:
        """Build a system with each value of each setting, beside the first values of the others."""
        from ibpdist.catalog import systems

        first = {name: some[0] for name, some in self.settings.items()}
        asked = [first, *({**first, name: one} for name, some in self.settings.items() for one in some[1:])]
        features = next((one for one in self.truncation if one != "auto"), 1)
        for wanted in asked:
            try:
                systems.build(system, int(features), settings=wanted)
            except UsageError as error:
                raise self._refused(system, wanted, str(error)) from None

    def _refused(self, system: str, wanted: Mapping[str, Any], reason: str) -> PydanticCustomError:
        """The error of a system with the setting that it does not take and its value."""
        first = reason.split(":")[0].split(" ")[0]
        name = next(
            (one for one, value in wanted.items() if one == first or f"{one}={value}" in reason), None
        )
        if name is None:
            return setting_error("system", system, reason)
        rest = re.sub(rf"^{name}(:| is) .*?[:;] (?=expected)", "", reason)
        return self._fault(name, wanted[name], f"{system}: {rest}")

    def _fault(self, name: str, value: Any, reason: str) -> PydanticCustomError:
        return setting_error(name, value, reason, ("set",) if name in self.set else ())

    @property
    def settings(self) -> dict[str, list[Any]]:
        """Settings of the systems, the start among them."""
        return dict(self.set) if self.start is None else {"start": self.start, **self.set}

    def dims(self) -> dict[str, list[Any]]:
        """The dims of the grid with their values, restarts last."""
        keys = {name: getattr(self, name) for name in KEYS}
        swept = {dim_of(name): some for name, some in (keys | self.settings).items() if len(some) > 1}
        always = {name: getattr(self, name) for name in ALWAYS}
        return always | swept | {"restart": list(range(self.restarts))}

    def cells(self) -> Iterator[Cell]:
        """Every fit of the grid with its labels; restarts of the same kind follow one another."""
        keys = {name: getattr(self, name) for name in (*ALWAYS, *KEYS)}
        grid, dims = keys | self.settings, self.dims()
        for values in product(*grid.values()):
            chosen = dict(zip(grid, values, strict=True))
            labels = {dim_of(name): value for name, value in chosen.items()}
            for restart in range(self.restarts):
                marks = {name: (labels | {"restart": restart})[name] for name in dims}
                yield Cell(marks, self._fit(chosen, restart))

    def _fit(self, chosen: Mapping[str, Any], restart: int) -> FitSpec:
        own = {name: chosen[name] for name in (*ALWAYS, *KEYS)}
        settings = {name: chosen[name] for name in self.settings}
        seed = seed_of(self.seed, restart)
        from ibpdist.catalog.systems import find

        if find(chosen["system"]).sampler:
            own |= {"chains": self.chains, "burn": self.burn, "thin": self.thin}
        else:
            own |= {"stability": self.stability, "subsample": self.subsample}
        return FitSpec.make(data=self.data, seed=seed, checkpoint=self.checkpoint, set=settings, **own)


@dataclass(frozen=True)
class Cell:
    """A fit of a grid: its labels by dim, and its spec."""

    labels: Labels
    spec: FitSpec


def dim_of(key: str) -> str:
    """The dim along which a key varies."""
    return DIMS.get(key, key)


def in_words(labels: Labels) -> str:
    """The labels of a fit in words: lg-vi-infinite, K = 20, mass 5, restart 3."""
    forms = {"truncation": "K = {}", "system": "{}"}
    return ", ".join(forms.get(name, f"{name} {{}}").format(value) for name, value in labels.items())
