"""The result of a sampler: chains side by side, of which draws are kept.

    /posterior    (chain, draw) numbers that do not depend on how features are named; ArviZ reads them
    /draws        (chain, draw, ...) the features of each draw, in no particular order
    /diagnostics  R-hat and effective draws of what is in /posterior
    /trace        (chain, step) terms of the log joint density

`/params`, `/rows` and `/internals` are the last draw of the first chain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from ibpdist.base.errors import StorageError
from ibpdist.engine._base import Engine
from ibpdist.inference._base import AnyParallel, Info
from ibpdist.inference.batch import terms_of
from ibpdist.inference.stopping import Snapshot, Stop
from ibpdist.runs import posterior_draws, result, variables
from ibpdist.runs.diagnostics import diagnostics
from ibpdist.runs.directory import RunDirectory
from ibpdist.runs.job import SamplerJob
from ibpdist.runs.loop import Ended, Progress, to_end
from ibpdist.runs.posterior_draws import ROWS_KEPT, Drawn, DrawStore, Plan
from ibpdist.storage import events, records
from ibpdist.storage.checked import ADVICE

RENAMED = {
    "objective": "log_joint", "active": "features",
    "likelihood": "log_likelihood", "evidence": "log_evidence",
}  # fmt: skip
SAME = ("entries", "singletons")
"""Terms of a step that are kept as scalars of a draw, under another name or their own."""


def sample(
    run: RunDirectory,
    job: SamplerJob,
    engine: Engine,
    progress: Progress | None = None,
    first: object | None = None,
) -> None:
    """Finish the run of a sampler, new or interrupted."""
    spec = job.spec
    plan = Plan(spec.steps, spec.burned, spec.thin)
    entries = job.source.rows * job.truncation * spec.chains * len(plan.kept())
    views = job.views(engine)
    keeper = DrawStore(run.path / "draws", plan, views, rows=entries <= ROWS_KEPT)
    _refuse_lost_draws(run)
    with records.storage_errors(run.path):
        ended = to_end(run, job, engine, progress, first, keeper)
        _write(run, job, views[0], plan, ended)
        run.events.add("finished", step=ended.last.step, stop=ended.stop.code)
        run.history.prune_finished()
        posterior_draws.remove(keeper.folder)


def _refuse_lost_draws(run: RunDirectory) -> None:
    """The draws of a finished sampler are in its result only: without that they cannot be made again."""
    log = events.read(run.path / "events.jsonl")
    if any(event["event"] == "finished" for event in log):
        raise StorageError(f"{run.path / 'result.json'}: is missing, as is or was its result; {ADVICE}")


def _write(
    run: RunDirectory,
    job: SamplerJob,
    first: tuple[AnyParallel, Engine],
    plan: Plan,
    ended: Ended,
) -> None:
    chains, member = job.spec.chains, ended.last.params.members[0]
    terms = [{step: terms_of(c, levels) for step, levels in ended.terms.items()} for c in range(chains)]
    last = Snapshot(ended.last.step, member.params, Info.of(terms[0][ended.last.step]))
    posterior = _posterior(run, plan, terms)
    run.events.add("ended", **_numbers(run.path, posterior, ended, member.stop))
    more = {"posterior": posterior, "diagnostics": diagnostics(posterior), "trace": _traces(terms)}
    facts = job.attributes({k: v for k, v in run.identity.items() if k not in ("schema", "nonce", "spec")})
    ending = result.Ending(last, member.stop, terms[0], facts)
    staged = result.stage(run.path, *first, job.source, ending, more)
    posterior_draws.write(run.path / "draws", staged, plan, chains)
    result.publish(run.path, staged)


def _numbers(path: Path, posterior: xr.Dataset, ended: Ended, stop: Stop) -> dict[str, Any]:
    """Numbers for a campaign: mean log joint density of the draws, their most frequent number of features."""
    spent = sum(event["seconds"] for event in events.read(path / "events.jsonl") if event["event"] == "step")
    number = np.bincount(posterior["features"].values.astype(int).ravel())
    return {
        "step": ended.last.step,
        "seconds": round(spent, 3),
        "stop": stop.code.value,
        "reason": stop.sentence,
        "objective": float(posterior["log_joint"].mean()),
        "active": int(number.argmax()),
    }


def _posterior(run: RunDirectory, plan: Plan, terms: list[dict[int, dict[str, float]]]) -> xr.Dataset:
    """The scalars of every kept draw."""
    kept = plan.kept()
    place = {step: at for at, step in enumerate(kept)}
    names = [name for name in (*RENAMED, *SAME) if name in terms[0][kept[0]]] if kept else []
    held: dict[str, Any] = {
        RENAMED.get(name, name): np.array([[chain[step][name] for step in kept] for chain in terms])
        for name in names
    }
    for step, chain, drawn in posterior_draws.read(run.path / "draws"):
        for name, value in _scalars(drawn).items():
            held.setdefault(name, np.full((len(terms), len(kept)), np.nan))[chain, place[step]] = value
    coords = {"chain": np.arange(len(terms)), "draw": np.arange(len(kept)), "step": ("draw", kept)}
    return xr.Dataset(variables.POSTERIOR.named(held), coords)


def _scalars(drawn: Drawn) -> dict[str, float]:
    """Mass, variances and freedom; of variances that differ by column the mean of their logarithms."""
    scalars = {"mass": float(drawn.mass)}
    for name in ("row_freedom", "eta", "concentration"):
        if np.isfinite(getattr(drawn, name)):
            scalars[name] = float(getattr(drawn, name))
    for name in ("noise", "scale"):
        values = np.asarray(getattr(drawn, name), dtype=float)
        if np.isnan(values).all():
            continue
        if values.size == 1:
            scalars[name] = float(values.item())
        elif values.size:
            scalars[f"log_{name}"] = float(np.log(values).mean())
    return scalars


def _traces(terms: Sequence[Mapping[int, Mapping[str, float]]]) -> xr.Dataset:
    parts = [result.trace(chain) for chain in terms]
    return xr.concat(parts, dim="chain").assign_coords(chain=np.arange(len(parts)))
