"""What runs in a worker process. Tasks carry strings and numbers; everything else is made here, once."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from pathlib import Path
from typing import Any

from ibpdist.base.threads import kernels
from ibpdist.engine._base import Scalar
from ibpdist.engine.provenance import versions
from ibpdist.engine.serial import function
from ibpdist.engine.work import AnyWorkbench

MALLOC = {
    "MALLOC_TRIM_THRESHOLD_": "268435456",
    "MALLOC_MMAP_THRESHOLD_": "33554432",
    "MALLOC_ARENA_MAX": "1",
}
"""Without these every buffer of the size of a chunk is mapped, faulted in and returned each time."""
KEPT = 2
"""Runs whose data and row state a process keeps."""

_benches: OrderedDict[tuple[str, str], AnyWorkbench] = OrderedDict()
_lock = threading.Lock()


def call(build: str, run: str, nonce: str, cache: int, spill: bool, task: str, *arguments: Scalar) -> Any:
    """`task(bench, *arguments)` with the workbench of a run, which `build` makes if it is not here."""
    return function(task)(_bench(build, run, nonce, cache, spill), *arguments)


def forget(nonce: str) -> None:
    """Give the memory of a run free."""
    with _lock:
        for key in [key for key in _benches if key[1] == nonce]:
            del _benches[key]


def report(probe: str) -> dict[str, Any]:
    """Facts of this process: what it reads at `probe`, its kernels, versions and malloc settings."""
    try:
        content = Path(probe).read_text()
    except OSError as error:
        content = f"cannot be read: {error.strerror}"
    return {
        "probe": content,
        "kernels": sorted({(lib["internal_api"], lib["architecture"]) for lib in kernels()}),
        "versions": versions(),
        "malloc": all(name in os.environ for name in MALLOC),
    }


def _bench(build: str, run: str, nonce: str, cache: int, spill: bool) -> AnyWorkbench:
    key = (run, nonce)
    with _lock:
        if key not in _benches:
            _benches[key] = function(build)(run, cache, _folder(nonce) if spill else "")
            while len(_benches) > KEPT:
                _benches.popitem(last=False)
        _benches.move_to_end(key)
        return _benches[key]


def _folder(nonce: str) -> str:
    """A folder of this worker that goes when it goes."""
    from distributed import get_worker

    return str(Path(get_worker().local_directory) / f"state-{nonce}-{os.getpid()}")
