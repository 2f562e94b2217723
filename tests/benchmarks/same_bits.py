"""Digests of fits by every method, to compare two versions of the code on one machine.

    python -m tests.benchmarks.same_bits before.json
    python -m tests.benchmarks.same_bits after.json --against before.json

The fits use masks, labels, moves, restarts, chains, hold-outs, workers and a campaign. A digest covers one
variable of a result, so a difference is told by its name. Only public names are used: the script runs on any
version since this one. Variables that one side lacks are listed and do not count as a difference.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ibpdist as ibp

GROUPS = ("params", "rows", "trace", "diagnosis", "posterior", "draws", "restarts", "heldout")
PASSED_OVER = ("heldout/data", "params/basis", "params/spectrum", "params/group")
"""A path, and what became internal."""
SMALL = {"rows": 240, "columns": 18, "features": 4, "noise": 0.2}


def _planted(kind: str = "linear-gaussian", **more: Any) -> Any:
    return ibp.synthetic(kind, **{**SMALL, "seed": 5, **more})


def _with_gaps(kind: str, share: float) -> Any:
    """Whole blocks of columns are missing together, as after a merge of two studies."""
    x = _planted(kind).x.values.copy()
    x[: int(share * len(x)), 12:] = np.nan
    x[-40:, :5] = np.nan
    return x


def _from_store(folder: Path, **options: Any) -> Any:
    store = folder / "store.zarr"
    if not store.exists():
        ibp.synthesise(
            "linear-gaussian", store, rows=3000, columns=24, features=6, noise=0.3, seed=2, chunk_rows=256
        )
    return ibp.fit(store, run=folder / f"run-{len(list(folder.iterdir()))}", seed=3, **options)


def _campaign(folder: Path) -> Any:
    store = folder / "campaign.zarr"
    ibp.synthesise("factor-analysis", store, rows=300, columns=16, features=3, noise=0.2, seed=4)
    text = (
        "data: campaign.zarr\nsystem: [lg-vi-infinite, fa-vi-finite, lg-gibbs-infinite]\ntruncation: [4, 6]\n"
    )
    (folder / "campaign.yaml").write_text(text + "restarts: 2\nholdout: 0.1\nsteps: 40\nchains: 2\n")
    ibp.sweep(folder / "campaign.yaml", folder / "campaign.run", serial=True)
    return ibp.open_campaign(folder / "campaign.run")


def _new_rows(kind: str, system: str) -> Any:
    """The features and the score of rows with gaps that a fit did not see."""
    result = ibp.fit(_planted(kind).x, system=system, K=5, seed=13, steps=60)
    new = _planted(kind, seed=6, rows=60).x.values.copy()
    new[np.random.default_rng(0).random(new.shape) < 0.2] = np.nan
    return {"transform": ibp.transform(result, new), "score": ibp.evaluate(result, new)}


FITS: dict[str, Callable[[Path], Any]] = {
    "lg-vi-finite": lambda _: ibp.fit(_planted().x, system="lg-vi-finite", K=6, seed=1, restarts=2),
    "lg-vi-infinite auto": lambda _: ibp.fit(_planted().x, system="lg-vi-infinite", K="auto", seed=2),
    "lg-vi-infinite random": lambda _: ibp.fit(
        _planted().x, system="lg-vi-infinite", K=9, seed=2, start="random", anneal=8.0, family="factorised"
    ),
    "lg-vi-infinite gaps": lambda _: ibp.fit(
        _with_gaps("linear-gaussian", 0.4), system="lg-vi-infinite", K=8, seed=3, noise="column"
    ),
    "lg-vi-infinite workers": lambda folder: _from_store(
        folder, system="lg-vi-infinite", K=10, workers=2, holdout=0.2, bound="multinomial"
    ),
    "lg-vi-infinite-hard": lambda _: ibp.fit(_planted().x, system="lg-vi-infinite-hard", K=8, seed=4),
    "fa-vi-infinite": lambda _: ibp.fit(
        _planted("factor-analysis").x, system="fa-vi-infinite", K=8, seed=5, steps=120
    ),
    "fa-vi-finite gaps": lambda _: ibp.fit(
        _with_gaps("factor-analysis", 0.3), system="fa-vi-finite", K=5, seed=6, steps=80, scale="one"
    ),
    "fa-vi-dense": lambda _: ibp.fit(_planted("factor-analysis").x, system="fa-vi-dense", K=4, seed=7),
    "lg-gibbs-finite": lambda folder: _from_store(
        folder, system="lg-gibbs-finite", K=6, chains=2, steps=40, serial=True
    ),
    "lg-gibbs-infinite": lambda _: ibp.fit(
        _with_gaps("linear-gaussian", 0.3), system="lg-gibbs-infinite", K=6, seed=8, chains=2, steps=60
    ),
    "fa-gibbs-infinite": lambda _: ibp.fit(
        _planted("factor-analysis").x, system="fa-gibbs-infinite", K=6, seed=9, steps=40, burn=0
    ),
    "lg-collapsed-infinite": lambda _: ibp.fit(
        _planted(rows=80).x, system="lg-collapsed-infinite", K=5, seed=10, steps=30
    ),
    "lg-uncollapsed-infinite": lambda _: ibp.fit(
        _planted(rows=80).x, system="lg-uncollapsed-infinite", K=5, seed=11, steps=30, candidates=3
    ),
    "lg-particle": lambda _: ibp.fit(
        _planted(rows=80).x, system="lg-particle", K=5, seed=12, steps=1, noise=0.2, scale=1.0, mass=2.0
    ),
    "new rows, present or absent": lambda _: _new_rows("linear-gaussian", "lg-vi-infinite"),
    "new rows, weights": lambda _: _new_rows("factor-analysis", "fa-vi-finite"),
    "campaign": _campaign,
}


def digest(values: Any) -> str:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        return hashlib.sha256(repr(array.tolist()).encode()).hexdigest()[:16]
    head = f"{array.dtype.str}{array.shape}".encode()
    return hashlib.sha256(head + np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def variables(made: Any) -> Iterator[tuple[str, Any]]:
    """Every variable of a result or of the summary of a campaign that depends on data and seed alone."""
    if isinstance(made, dict):
        for group, found in made.items():
            yield from ((f"{group}/{name}", values.values) for name, values in found.variables.items())
        return
    if hasattr(made, "summary"):
        for name in ("objective", "heldout", "active", "steps"):
            yield f"summary/{name}", made.summary[name].values
        yield from variables(made.best())
        return
    for group in GROUPS:
        for name, values in made[group].variables.items() if group in made.children else ():
            if f"{group}/{name}" not in PASSED_OVER:
                yield f"{group}/{name}", values.values


def digests(wanted: list[str]) -> dict[str, dict[str, str]]:
    found = {}
    for name in wanted or list(FITS):
        with tempfile.TemporaryDirectory() as folder:
            made = FITS[name](Path(folder))
            found[name] = {path: digest(values) for path, values in variables(made)}
        print(f"{name}: {len(found[name])} variables", file=sys.stderr, flush=True)
    return found


def differences(found: dict[str, dict[str, str]], before: dict[str, dict[str, str]]) -> Iterator[str]:
    for fit in found.keys() & before.keys():
        for path in sorted(found[fit].keys() | before[fit].keys()):
            new, old = found[fit].get(path), before[fit].get(path)
            if new is None or old is None:
                print(
                    f"{fit}: {path} is on {'one' if new is None else 'the other'} side only", file=sys.stderr
                )
            elif new != old:
                yield f"{fit}: {path} differs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--fits", nargs="*", default=[], choices=list(FITS))
    options = parser.parse_args()
    found = digests(options.fits)
    options.out.write_text(json.dumps(found, indent=1))
    if options.against:
        told = list(differences(found, json.loads(options.against.read_text())))
        print("\n".join(told) if told else f"{sum(map(len, found.values()))} variables have the same bits")
        sys.exit(bool(told))


if __name__ == "__main__":
    main()
