"""What progress must know of the fits of a command to estimate the time left."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def of_system(
    system: str, K: int | str, steps: int | None, rtol: float | None = None, fits: int = 1
) -> dict[str, Any]:
    """Options of `stepping` for a number of fits of a system, one after the other."""
    from ibpdist.base.timeleft import stopping
    from ibpdist.catalog.spec import FitSpec
    from ibpdist.catalog.systems import find
    from ibpdist.runs.fit import PLANNED

    default = FitSpec.model_fields
    limit = default["steps"].default if steps is None else steps
    tolerance = default["rtol"].default if rtol is None else rtol
    features = PLANNED if isinstance(K, str) else K
    known = stopping(find(system).sampler, limit, tolerance, features)
    return {"steps": limit, "stopping": known, "fits": fits}


def of_run(run: Path) -> dict[str, Any]:
    """Options of `stepping` for a run that is continued: for its incomplete starts. Nothing is known of a run
    that cannot be read, and whoever opens it says why."""
    from ibpdist.base.errors import IbpError
    from ibpdist.catalog.spec import FitSpec
    from ibpdist.runs.restarts import folder
    from ibpdist.runs.result import is_complete

    try:
        spec = FitSpec.read(run / "spec.yaml")
    except IbpError:
        return {}
    ended = sum(is_complete(folder(run, start)) for start in range(spec.restarts))
    return of_system(spec.system, spec.truncation, spec.steps, spec.rtol, spec.restarts - ended)
