"""What progress must know of the fits of a command to estimate the time left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def of_system(
    system: str,
    K: int | str,
    steps: int | None,
    rtol: float | None = None,
    fits: int = 1,
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """Options of `stepping` for a number of fits of a system, one after the other; fits with names have
    theirs told."""
    from ibpdist.base.timeleft import stopping
    from ibpdist.catalog.spec import FitSpec
    from ibpdist.catalog.systems import find
    from ibpdist.runs.planning import PLANNED

    default = FitSpec.model_fields
    limit = default["steps"].default if steps is None else steps
    tolerance = default["rtol"].default if rtol is None else rtol
    features = PLANNED if isinstance(K, str) else K
    known = stopping(find(system).sampler, limit, tolerance, features)
    told = {"names": names} if names else {}
    return {"steps": limit, "stopping": known, "fits": len(names) or fits, **told}


def of_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `stepping` for a fit with these options of the command line."""
    starts, parts = options["restarts"] or 1, options["stability"]
    names: list[str] = []
    if parts:
        from ibpdist.runs.nested import names_of, together

        names = names_of(starts, 0) + together(parts)
    return of_system(options["system"], options["K"], options["steps"], options["rtol"], starts, names)


def of_run(run: Path) -> dict[str, Any]:
    """Options of `stepping` for a run that is continued: for its incomplete starts and subsamples. Nothing is
    known of a run that cannot be read, and whoever opens it says why."""
    from ibpdist.base.errors import IbpError
    from ibpdist.catalog.spec import FitSpec
    from ibpdist.runs.nested import nested_fits, together
    from ibpdist.runs.result import is_complete

    try:
        spec = FitSpec.read(run / "spec.yaml")
    except IbpError:
        return {}
    missing = [fit for fit in nested_fits(spec) if not is_complete(fit.folder(run))]
    left = [fit.words for fit in missing if fit.of_all_rows]
    left += together(len(missing) - len(left))
    names = left if spec.stability else ()
    return of_system(spec.system, spec.truncation, spec.steps, spec.rtol, len(left) or 1, names)
