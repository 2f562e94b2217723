"""Small results for the page of a report: images, hostile labels, and a campaign made by hand."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

import ibpdist as ibp
from tests.support.planted_counts import planted_counts

HOSTILE = {
    1: "<script>window.broken = 1</script>",
    2: '"onmouseover="window.broken=1" x=\'',
    3: "</style></title><b>& &amp; &lt;",
    4: "\u202eRTL override \u2066 isolate",
    5: "very_long_label_without_a_space_" * 60,
    6: "שלום עולם",
    7: "with\x00nul \x1b[31m and \ud800 half",
    8: "   ",
    9: "{{ template }} ${x} %s {0}",
}


def images(folder: Path, **options: Any) -> Path:
    """A fit of images without labels, some cells hidden and scored."""
    data = ibp.synthetic("images", rows=240, noise=0.2, seed=3)
    ibp.fit(data.x, system="lg-vi-infinite", K=8, seed=7, run=folder, holdout=0.2, **options)
    ibp.evaluate(folder)
    return folder


def drawn(folder: Path, system: str, **options: Any) -> Path:
    """Chains of a sampler over images without labels."""
    data = ibp.synthetic("images", rows=120, noise=0.2, seed=3)
    given = {"K": 6, "chains": 3, "steps": 200, "seed": 7} | options
    ibp.fit(data.x, system=system, run=folder, **given)
    return folder


def labelled(folder: Path, **options: Any) -> Path:
    """A fit of factors, its columns and rows with labels that would like to break the page."""
    draw = np.random.default_rng(2)
    z = draw.random((160, 3)) < [0.7, 0.4, 0.3]
    x = (z * draw.gamma(2, 0.7, z.shape)) @ (2 * draw.normal(size=(3, 12))) + 0.4 * draw.normal(
        size=(160, 12)
    )
    columns = [HOSTILE.get(d, f"gene {d}").replace("\ud800", "") for d in range(12)]
    rows = [f'<img src=x onerror="window.broken=1">{n}' for n in range(len(x))]
    frame = pd.DataFrame(x, columns=columns, index=rows)
    given = {"system": "fa-vi-infinite", "K": 5, "seed": 1, "restarts": 2} | options
    ibp.fit(frame, run=folder, **given)
    return folder


def rounds(folder: Path) -> Path:
    """A fit of a beta process whose atoms come from several rounds, rows of three sites."""
    data = ibp.synthetic("linear-gaussian", rows=90, columns=8, features=4, noise=0.1, seed=4)
    frame = pd.DataFrame(data.x.values, columns=[f"gene {d}" for d in range(8)])
    frame["site"] = [HOSTILE[3], "south", "west"] * 30
    store = folder.with_suffix(".zarr")
    ibp.ingest(frame, store, covariates=["site"])
    given = {"mass": 1.0, "concentration": 2.0, "round_prior": "paper-exact", "rounds": 9}
    ibp.fit(store, system="fa-vi-beta-process", K=5, seed=1, steps=20, run=folder, **given)
    return folder


def counts(folder: Path, **options: Any) -> Path:
    """A fit of counts whose words would like to break the page, rows of two sites."""
    x, _, _ = planted_counts(rows=90, columns=36, features=3, length=50)
    words = [HOSTILE.get(d, f"word {d}").replace("\ud800", "") for d in range(x.shape[1])]
    frame = pd.DataFrame(x.astype(float), columns=words)
    frame["site"] = ["north", HOSTILE[3]] * 45
    store = folder.with_suffix(".zarr")
    ibp.ingest(frame, store, covariates=["site"])
    ibp.fit(store, run=folder, **({"system": "counts-beta-process", "K": 5, "seed": 2} | options))
    return folder


def campaign(best: Any, restarts: int = 3) -> Any:
    """What `open_campaign` gives, around one result; some numbers are missing, some words hostile."""
    draw = np.random.default_rng(5)
    systems, levels, noises = ["lg-vi-infinite", "<b>other</b>"], [2, 4, 8], ["one", "column"]
    dims = ("system", "truncation", "noise", "restart")
    shape = (len(systems), len(levels), len(noises), restarts)
    objective, heldout = -16000 - 900 * draw.random(shape), -1 - draw.random(shape)
    objective[1, 2, 0, 0] = heldout[1, 2, 0, 0] = np.nan
    heldout[0, 2, 0, 0] = -0.5
    status = np.full(shape, "finished", object)
    status[1, 2, 0, 0] = "failed"
    stop = np.full(shape, "converged", object)
    stop[1, 2, 0, 0] = "x.npy: </table><script>window.broken=1</script>"
    held = {
        "objective": objective,
        "heldout": heldout,
        "active": draw.integers(2, 6, shape).astype(float),
        "seconds": draw.gamma(2, 1, shape),
        "steps": draw.integers(9, 99, shape).astype(float),
        "status": status,
        "stop": stop,
        "seed": np.full(shape, "12345678901234567890", object),
        "fit": np.full(shape, "0123456789abcdef", object),
    }
    coords = {"system": systems, "truncation": levels, "noise": noises, "restart": range(restarts)}
    summary = xr.Dataset({name: (dims, values) for name, values in held.items()}, coords)
    return SimpleNamespace(
        summary=summary,
        best=lambda: best,
        stability=lambda: _stability(best, restarts, draw),
        spec="data: x\n",
    )


def _stability(best: Any, restarts: int, draw: Any) -> xr.Dataset:
    active = np.flatnonzero(best["params"]["active"].values)
    share = np.linspace(1.0, 0.4, len(active))
    similar = draw.uniform(0.2, 1, (restarts - 1, len(active)))
    held = {
        "stability": ("feature", share),
        "stable": ("feature", share >= 0.75),
        "similarity": (("restart", "feature"), similar),
        "present": (("restart", "feature"), similar > 0.6),
    }
    coords = {"feature": active, "restart": range(1, restarts)}
    return xr.Dataset(held, coords, {"reference": 0, "matched": 0.3, "least": 0.75})
