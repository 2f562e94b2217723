"""How good the estimate of the time left of a campaign is, on three campaigns of different shape.

    python -m tests.benchmarks.timeleft FOLDER [--rows 4000] [--columns 100] [--workers 0] [--seeds 1]

Restarts of one system; K from 5 to 40; two systems with held-out scores. Prints, after an eighth, a
quarter, a half and three quarters of the time, what was estimated and what it was, with their ratio.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ibpdist as ibp
from ibpdist.base.progress import CampaignStatus
from ibpdist.evaluate.synthetic import synthesise

CAMPAIGNS: Mapping[str, Mapping[str, Any]] = {
    "restarts": {"system": "lg-vi-infinite", "truncation": 16, "restarts": 12, "start": "random"},
    "K from 5 to 40": {"system": "fa-vi-infinite", "truncation": [5, 10, 15, 20, 25, 30, 35, 40]},
    "two systems, scores": {
        "system": ["lg-vi-infinite", "fa-vi-infinite"],
        "truncation": [6, 10],
        "restarts": 2,
        "start": "random",
        "holdout": 0.2,
    },
}
SHARES = (0.125, 0.25, 0.5, 0.75)


def told(store: Path, run: Path, seed: int, workers: int, keys: Mapping[str, Any]) -> list[Any]:
    """Seconds since the begin of a campaign and what it said then, and at its end."""
    shutil.rmtree(run, ignore_errors=True)
    began, seen = time.perf_counter(), []

    def note(now: CampaignStatus) -> None:
        seen.append((time.perf_counter() - began, now.left))

    place: dict[str, Any] = {"workers": workers} if workers else {"serial": True}
    ibp.sweep({"data": str(store), "seed": seed, **keys}, run, progress=note, **place)
    seen.append((time.perf_counter() - began, None))
    return seen


def lines(name: str, seen: list[Any]) -> list[str]:
    """A line for each share of the time."""
    whole = seen[-1][0]
    made = []
    for share in SHARES:
        known = [(at, left) for at, left in seen if at <= share * whole and left is not None]
        if not known:
            made.append(f"{name}: after {share:5.1%} of {whole:.1f} s nothing was said")
            continue
        at, left = known[-1]
        truth = whole - at
        ratio = f"ratio {left.about / truth:.2f}, within the most: {truth <= left.most}"
        made.append(f"{name}: after {share:5.1%} of {whole:.1f} s {left}; it was {truth:.1f} s, {ratio}")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    store = options.folder / "data.zarr"
    if not store.exists():
        shape = {"rows": options.rows, "columns": options.columns, "features": 12, "noise": 0.5}
        synthesise("linear-gaussian", store, **shape, seed=1)
    for seed in range(options.seeds):
        for name, keys in CAMPAIGNS.items():
            seen = told(store, options.folder / "campaign", seed, options.workers, keys)
            print("\n".join(lines(name, seen)), flush=True)


if __name__ == "__main__":
    main()
