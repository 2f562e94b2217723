"""Seconds of a step of counts, on workers, and of its parts, beside other programs.

    python -m tests.benchmarks.token_passes [--shape 5000x8000x200] [--workers 2] [--systems NAME ...]

Rows have about 180 different words, whose frequencies fall as Zipf's law says. A step is the median of the
last half of the steps; `update` is the part that one process makes. scikit-learn's online LDA and tomotopy's
sampler are timed on the same counts in one process where they are installed: a pass over all documents.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ibpdist as ibp
from ibpdist.base.randomness import Draws
from ibpdist.catalog.systems import build
from ibpdist.data._base import Chunk
from ibpdist.storage import events
from tests.support.fit_variants import table

Counts = NDArray[np.float32]


def zipf(rows: int, columns: int, distinct: int = 180, exponent: float = 1.05) -> Counts:
    """Counts of rows with about `distinct` different words."""
    rng = np.random.default_rng(0)
    law = 1.0 / np.arange(1, columns + 1) ** exponent
    order = rng.permutation(columns)
    law = law[order] / law.sum()
    x = np.empty((rows, columns), np.float32)
    for row in x:
        row[:] = rng.multinomial(int(1.75 * distinct), law)
    return x


def of_system(system: str, store: Path, features: int, workers: int, steps: int) -> list[str]:
    """A line of the table: seconds of a step of all chunks, and of the update."""
    with tempfile.TemporaryDirectory() as folder:
        run, where = Path(folder) / "run", {"workers": workers} if workers else {"serial": True}
        begun = {"burn": 0, "start": "documents"} if system.startswith("counts-gibbs") else {}
        ibp.fit(store, system=system, K=features, run=run, steps=steps, rtol=0.0, **begun, **where)
        log = events.read(run / "events.jsonl")
        seconds = [event["seconds"] for event in log if event["event"] == "step"]
    return [
        system,
        str(features),
        f"{np.median(seconds[len(seconds) // 2 :]):.2f}",
        f"{_update(system, features):.3f}",
    ]


def _update(system: str, features: int) -> float:
    """Seconds of the update from the sums of a few rows."""
    x = zipf(50, 8000)
    alg, chunk, draws = build(system, features, settings={"start": "random"}), Chunk(0, 0, x), Draws(1)
    params: Any = alg.init(alg.summarise(chunk), draws)
    local, spent = alg.start(chunk, params, draws), []
    for step in range(1, 16):
        local, sums = alg.local(chunk, local, params, draws.at(step))
        begun = time.perf_counter()
        params, _ = alg.update(params, sums, draws.at(step))
        spent.append(time.perf_counter() - begun)
    return float(np.median(spent[-4:]))


def tomotopy(x: Counts, features: int) -> list[str]:
    model = import_module("tomotopy").LDAModel(k=features, alpha=0.1, eta=0.03, seed=1)
    for row in x:
        model.add_doc([str(word) for word in np.repeat(np.arange(row.size), row.astype(int))])
    model.train(5, workers=1)
    begun = time.perf_counter()
    model.train(10, workers=1)
    return ["tomotopy LDA", str(features), f"{(time.perf_counter() - begun) / 10:.2f}", "-"]


def sklearn(x: Counts, features: int) -> list[str]:
    from scipy.sparse import csr_array
    from sklearn.decomposition import LatentDirichletAllocation

    made = LatentDirichletAllocation(features, max_iter=1, evaluate_every=-1)
    begun = time.perf_counter()
    made.fit(csr_array(x))
    return ["scikit-learn LDA", str(features), f"{time.perf_counter() - begun:.2f}", "-"]


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--shape", default="5000x8000x200", help="rows x columns x features")
    parser.add_argument("--workers", type=int, default=2, help="0: in this process")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--systems", nargs="*", default=["counts-finite", "counts-gibbs-finite"])
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    options = parse(arguments)
    rows, columns, features = map(int, options.shape.split("x"))
    x, workers, steps = zipf(rows, columns), options.workers, options.steps
    with tempfile.TemporaryDirectory() as folder:
        np.save(Path(folder) / "x.npy", x)
        store = Path(folder) / "x.zarr"
        ibp.ingest(Path(folder) / "x.npy", store, chunk_rows=-(-rows // 8))
        lines = [of_system(system, store, features, workers, steps) for system in options.systems]
    lines += [tomotopy(x, features)] if find_spec("tomotopy") else []
    lines += [sklearn(x, features)] if find_spec("sklearn") else []
    print(table(("method", "K", "step", "update"), lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
