"""Write a fixture: results, interrupted runs, a campaign and a dataset, as this version makes them.

    python -m tests.formats.write tests/formats/NAME.tar.xz

`tests/formats/test_formats.py` opens every fixture in the folder, goes on with what was interrupted, and
compares with `expected.json` in it. A fixture is written when the format changes, and never again.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import ibpdist as ibp

ROWS, COLUMNS = 40, 6
CAMPAIGN = """\
data: store.zarr
system: [lg-vi-infinite, fa-vi-finite]
truncation: 3
restarts: 2
holdout: 0.2
steps: 12
"""
FINISHED: dict[str, dict[str, Any]] = {
    "lg.run": {"system": "lg-vi-infinite", "K": 4, "holdout": 0.2},
    "gaps.run": {"system": "lg-vi-infinite", "K": 4, "missing": "rows"},
    "hard.run": {"system": "lg-vi-finite-hard", "K": 3},
    "fa.run": {"system": "fa-vi-infinite", "K": 4, "steps": 30, "restarts": 2},
    "dense.run": {"system": "fa-vi-dense", "K": 2, "steps": 20},
    "chains.run": {"system": "lg-gibbs-infinite", "K": 3, "chains": 2, "steps": 20, "thin": 2},
    "finite.run": {"system": "fa-gibbs-finite", "K": 3, "steps": 10},
    "collapsed.run": {"system": "lg-collapsed-infinite", "K": 3, "steps": 6},
}
INTERRUPTED: dict[str, dict[str, Any]] = {
    "begun.run": {"system": "lg-vi-infinite", "K": 4, "steps": 40, "checkpoint": 3},
    "begun-chains.run": {"system": "lg-gibbs-infinite", "K": 3, "chains": 2, "steps": 12, "checkpoint": 2},
}
STEPS = 5
"""Those after which a run or a campaign is interrupted."""


def table() -> str:
    """A CSV of rows with labels and a day, with a few empty cells in two columns."""
    rng = np.random.default_rng(20)
    z = rng.random((ROWS, 3)) < (0.6, 0.4, 0.3)
    x = z @ rng.normal(size=(3, COLUMNS)) * 2 + 0.3 * rng.normal(size=(ROWS, COLUMNS)) + 5
    lines = ["name," + ",".join(f"gene{d}" for d in range(COLUMNS))]
    for n, row in enumerate(x):
        cells = ["" if n < 6 and d < 2 else f"{value:.4f}" for d, value in enumerate(row)]
        lines.append(f"row{n:02d}," + ",".join(cells))
    return "\n".join(lines) + "\n"


def new_rows() -> np.ndarray[Any, Any]:
    """Rows that no fit has seen, with a cell missing."""
    rng = np.random.default_rng(21)
    x = 5 + 2 * rng.normal(size=(4, COLUMNS))
    x[1, 2] = np.nan
    return x


def interrupt(after: int) -> Callable[[Any], None]:
    """A callback that stops the work as Ctrl-C does."""
    seen = 0

    def step(_: Any) -> None:
        nonlocal seen
        seen += 1
        if seen >= after:
            raise KeyboardInterrupt

    return step


def write(folder: Path) -> None:
    """All of it in a folder, whose paths are written down relative to it."""
    (folder / "table.csv").write_text(table())
    (folder / "campaign.yaml").write_text(CAMPAIGN)
    with at(folder), patch.object(Path, "absolute", lambda self: self):
        ibp.ingest("table.csv", "store.zarr", chunk_rows=16, center=True, scale=True)
        for name, options in FINISHED.items():
            ibp.fit("store.zarr", run=name, seed=7, serial=True, **options)
        for name, options in INTERRUPTED.items():
            interrupted(
                lambda n=name, o=options: ibp.fit(
                    "store.zarr", run=n, seed=8, serial=True, progress=interrupt(STEPS), **o
                )
            )
        ibp.sweep("campaign.yaml", "campaign.run", serial=True)
        begun = {"serial": True, "progress": interrupt(STEPS)}
        interrupted(lambda: ibp.sweep("campaign.yaml", "begun-campaign.run", **begun))
        ibp.evaluate("lg.run", new_rows())
        Path("expected.json").write_text(json.dumps(expected(Path()), indent=1))


def interrupted(work: Callable[[], Any]) -> None:
    try:
        work()
    except KeyboardInterrupt:
        return
    raise AssertionError("it ended before it was interrupted")


@contextmanager
def at(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def expected(folder: Path) -> dict[str, Any]:
    """What every run says, and would say: interrupted ones are finished in a copy."""
    found = {name: facts(ibp.open_result(folder / name)) for name in FINISHED}
    for name in FINISHED:
        if not name.startswith("collapsed"):
            found[name]["new rows"] = by_row_step(folder / name)
    for name in INTERRUPTED:
        copy = folder / f"copy-of-{name}"
        shutil.copytree(folder / name, copy)
        found[name] = facts(ibp.resume(copy, serial=True))
        shutil.rmtree(copy)
    best = ibp.open_campaign(folder / "campaign.run")
    found["campaign.run"] = {
        "summary": rounded(best.summary.objective.values.reshape(-1)),
        **facts(best.best()),
    }
    return found


def by_row_step(run: Path) -> Any:
    """z of new rows."""
    return rounded(ibp.transform(run, new_rows(), estimate="mean-field").z.values)


def facts(result: Any) -> dict[str, Any]:
    """What the result of a run says, as numbers in JSON."""
    params = result["params"]
    return {
        "steps": int(result.attrs["steps"]),
        "objective": float(result.attrs["objective"]),
        "fingerprint": result.attrs["fingerprint"],
        "active": int(params.active.sum()),
        "mean": rounded(params["mean"].values),
        "prevalence": rounded(params.prevalence.values),
        "z": rounded(result["rows"].z.values),
        "groups": sorted(result.children),
    }


def rounded(values: Any) -> Any:
    return np.round(np.asarray(values, dtype=np.float64), 5).tolist()


def main() -> None:
    out = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
        with tarfile.open(out, "w:xz") as archive:
            for entry in sorted(Path(folder).iterdir()):
                archive.add(entry, entry.name)
    print(f"{out.name}: {out.stat().st_size >> 10} kB")


if __name__ == "__main__":
    main()
