"""A complete example: images are made and stored, a campaign fits them, and the best fit is scored on new
ones, drawn, and reported."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ibpdist.base.errors import OutputInUse
from ibpdist.base.words import OVERWRITE
from ibpdist.data.urls import refuse_urls
from ibpdist.engine.place import Place
from ibpdist.report.plots import Strip, draw_strips

if TYPE_CHECKING:
    from ibpdist.base.progress import Sweep
    from ibpdist.campaigns.campaign import Campaign
    from ibpdist.data.store import Dataset

SYSTEM, FEATURES, RESTARTS, HOLDOUT = "lg-vi-infinite", (4, 8), 2, 0.1
ROWS, NEW_ROWS, CHUNK_ROWS, NOISE = 1000, 500, 128, 0.25
_SHOWN, _LISTED = 4, 4


def demo(
    directory: str | Path | None = None,
    *,
    seed: int = 1,
    overwrite: bool = False,
    workers: int | None = None,
    serial: bool | None = None,
    scheduler: str | None = None,
    progress: Sweep | None = None,
    say: Callable[[str], None] = print,
) -> list[Path]:
    """Run a complete example in `directory` (ibpdist-demo); the files it made.

    Runs on a local cluster of one process a core (at most 4) unless a place is given. `progress` is
    called with the status of the campaign, `say` with each line of the output.
    """
    from ibpdist.report.page import report

    place = _place(workers, serial, scheduler)
    folder = _folder(directory, overwrite)
    place.refuse_silent()
    folder.mkdir(parents=True, exist_ok=True)
    data, new = _make(folder, seed, overwrite)
    say(f"{ROWS:,} images of 6 x 6, sums of four planted shapes plus noise of variance {NOISE}: {data.path}")
    campaign = _campaign(data, folder / "shapes.run", seed, overwrite, progress, place)
    result, picture = campaign.best(), folder / "features.png"
    say(f"{_swept(campaign)}{_where(place)}; the best one has K = {result.attrs['truncation']}")
    for line in _judged(result, data, new, picture):
        say(line)
    files = [data.path, new.path, campaign.path, picture, report(campaign.path)]
    say("made " + ", ".join(str(path) for path in files))
    return files


def _campaign(
    data: Dataset, run: Path, seed: int, overwrite: bool, progress: Sweep | None, place: Place
) -> Campaign:
    """Fits of different truncation from several starts; with `overwrite` an existing campaign is replaced."""
    from ibpdist.campaigns.directory import is_campaign
    from ibpdist.campaigns.run import sweep
    from ibpdist.storage.lock import refuse_held

    if overwrite and is_campaign(run):
        refuse_held(run / "lock")
        shutil.rmtree(run)
    grid = {"system": SYSTEM, "truncation": list(FEATURES), "restarts": RESTARTS, "holdout": HOLDOUT}
    campaign = {"data": str(data.path.absolute()), "seed": seed, **grid}
    return sweep(campaign, run, progress=progress, **place.options())


def _swept(campaign: Campaign) -> str:
    most = " or ".join(str(one) for one in FEATURES)
    return f"{len(campaign.manifest.fits)} fits of {SYSTEM} with at most {most} features"


def _folder(directory: str | Path | None, overwrite: bool) -> Path:
    refuse_urls(directory)
    folder = Path(directory or "ibpdist-demo")
    if folder.exists() and (not folder.is_dir() or (any(folder.iterdir()) and not overwrite)):
        raise OutputInUse(f"{folder}: exists already: choose another name or {OVERWRITE}")
    return folder


def _make(folder: Path, seed: int, overwrite: bool) -> tuple[Dataset, Dataset]:
    """Images to fit, and new ones with the same shapes."""
    from ibpdist.evaluate.synthetic import synthesise

    data = synthesise(
        "images",
        folder / "images.zarr",
        rows=ROWS,
        noise=NOISE,
        seed=seed,
        chunk_rows=CHUNK_ROWS,
        keep_z=True,
        overwrite=overwrite,
    )
    new = synthesise(
        "images", folder / "new.zarr", rows=NEW_ROWS, noise=NOISE, seed=seed + 1, overwrite=overwrite
    )
    return data, new


def _place(workers: int | None, serial: bool | None, scheduler: str | None) -> Place:
    """The place that was asked for; else one process a core, but at most four."""
    place = Place(workers, serial, scheduler)
    chosen = place.distributed or place.serial
    return place if chosen else Place(workers=min(os.cpu_count() or 1, 4))


def _where(place: Place) -> str:
    if place.scheduler:
        return f" on the cluster at {place.scheduler}"
    return f" on a local cluster of {place.workers}" if place.workers else ""


def _judged(result: Any, data: Dataset, new: Dataset, picture: Path) -> Iterator[str]:
    """Recovery, the held-out score beside that of the truth, and the picture."""
    from ibpdist.evaluate import heldout, recovery

    recovered = recovery.recovery(result, data)
    yield recovery.summary(recovered)
    scored, best = heldout.evaluate(result, new), heldout.evaluate_truth(new)
    yield heldout.summary(scored)
    yield f"the planted truth itself scores {float(best.score.sel(estimate='plug_in')):.4f}"
    draw_strips(
        picture, _strips(result, data, np.asarray(recovered["match"])), (6, 6), "Shapes in noisy images"
    )


def _strips(result: Any, data: Dataset, match: np.ndarray[Any, Any]) -> list[Strip]:
    """Some images, the planted shapes, and below each the fitted feature that matches it."""
    from ibpdist.evaluate.synthetic import SHAPES, stored

    params = result["params"]
    mean, rows = params["mean"].values, params["prevalence"].values * data.rows
    true = [f"{name}, {on:,} rows" for name, on in zip(SHAPES, stored(data, "z").sum(0), strict=True)]
    others = [k for k in np.flatnonzero(params["active"].values) if k not in match][:_LISTED]
    strips = [
        Strip(f"images\n({_SHOWN} of {data.rows:,})", list(data.read(0).x[:_SHOWN]), own_scale=True),
        Strip("planted", list(stored(data, "dictionary")), true),
        Strip("found", [mean[k] if k >= 0 else None for k in match], _captions(rows, match)),
    ]
    if others:
        strips.append(Strip("also active", [mean[k] for k in others], _captions(rows, others)))
    return strips


def _captions(rows: Any, features: Any) -> list[str]:
    return [_in_words(float(rows[k])) if k >= 0 else "" for k in features]


def _in_words(rows: float) -> str:
    return "1 row" if round(rows) == 1 else f"{rows:,.0f} rows"
