"""The flow of one fit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from prefect import flow
from pydantic import Field

import ibpdist as ibp
from flows import artifacts
from flows.ownership import owned
from flows.progress import stepping
from flows.steps import Where, given, perform, step
from ibpdist.base.errors import OutputInUse
from ibpdist.catalog.spec import FitSpec
from ibpdist.catalog.systems import SYSTEMS
from ibpdist.report.summary import summary
from ibpdist.runs.directory import is_run

System = Annotated[str, Field(json_schema_extra={"enum": list(SYSTEMS)})]
Count = Annotated[int, Field(ge=1)]
Setting = bool | int | float | str


@step("fit")
def fit_step(store: str, run: str, where: dict[str, Any], settings: dict[str, Any], **asked: Any) -> str:
    """Fit, or continue an interrupted fit, or return at once when it is complete; the path of the run."""
    begun = is_run(Path(run))
    if begun:
        _refuse_other(store, run, settings, asked)
    with stepping(run, asked.get("steps", FitSpec.model_fields["steps"].default)) as progress:
        if begun:
            result = ibp.resume(run, progress=progress, **where)
        else:
            result = ibp.fit(store, run=run, progress=progress, **where, **asked, **settings)
    artifacts.say(run, "summary", summary(result))
    return run


@flow(name="fit")
def fit(
    store: str,
    run: str,
    system: System = "lg-vi-infinite",
    features: Count | Literal["auto"] = "auto",
    seed: Annotated[int, Field(ge=0)] = 0,
    restarts: Count = 1,
    steps: Count | None = None,
    rtol: float | None = None,
    holdout: float | str | None = None,
    stability: Annotated[int, Field(ge=2)] | None = None,
    subsample: float | None = None,
    settings: dict[str, Setting] | None = None,
    where: Where = Where(),  # noqa: B008  (frozen)
) -> str:
    """Fit one system to a dataset; an interrupted fit is continued, a finished one is left as it is.

    Args:
        store: The dataset.
        run: The run directory to write.
        system: What to fit, a name of the catalog.
        features: Maximum number of features, or auto.
        seed: Seed of all random numbers.
        restarts: Number of starts; the one with the best objective is kept.
        steps: Maximum number of steps.
        rtol: The relative gain of the objective below which a fit has converged.
        holdout: Share of the columns to hide in half of the rows, or a recipe such as rows:share=0.1.
        stability: Number of subsamples of the rows to fit as well, to see how often each feature comes back.
        subsample: Share of the rows in each subsample; half of them by default.
        settings: Settings of the system, such as noise or mass.
        where: Where it runs; the result has the same bits.
    """
    asked = given(steps=steps, rtol=rtol, holdout=holdout, stability=stability, subsample=subsample)
    asked |= {"system": system, "K": features, "seed": seed, "restarts": restarts}
    with owned(run):
        return perform(fit_step, store, run, where.options(), settings or {}, **asked)


def _refuse_other(store: str, run: str, settings: dict[str, Any], asked: dict[str, Any]) -> None:
    """Refuse a run that holds another fit."""
    named = {"truncation" if name == "K" else name: value for name, value in asked.items()}
    ours = FitSpec.make(data=str(Path(store).absolute()), set=settings, **named).model_dump()
    theirs = FitSpec.read(Path(run) / "spec.yaml").model_dump()
    known = theirs | {"data": ours["data"]} if _same_place(ours["data"], theirs["data"]) else theirs
    other = [f"{name} {known[name]!r}" for name in ours if ours[name] != known[name]]
    if other:
        raise OutputInUse(f"{run}: holds a fit with {', '.join(other)}; choose another run")


def _same_place(ours: str, theirs: str) -> bool:
    """Whether two paths are those of one dataset; data in memory have none."""
    return Path(theirs).is_absolute() and Path(ours).resolve() == Path(theirs).resolve()
