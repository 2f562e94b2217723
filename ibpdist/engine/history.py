"""The record of a run in its directory, as engines and workers see it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ibpdist.base.errors import StorageError
from ibpdist.engine.checkpoint import KEPT, Checkpoints
from ibpdist.storage import records

PATIENCE = 5.0
"""Seconds until a file written on another machine must have come into sight."""


class RunHistory:
    """Parameters of steps in `params/`, row states in `checkpoints/`."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.checkpoints = Checkpoints(run)

    def publish(self, step: int, params: object) -> None:
        records.write(self.file(step), {"params": params}, durable=step == 0)

    def params(self, step: int) -> Any:
        deadline = time.monotonic() + PATIENCE
        while not self.file(step).exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return records.read(self.file(step), "params")

    def state(self, chunk: int, step: int) -> tuple[int, Any] | None:
        for saved in self.checkpoints.steps():
            if saved > step:
                continue
            try:
                return saved, self.checkpoints.state(saved, chunk)
            except StorageError:  # damaged, or removed meanwhile: an older one, or the start, does as well
                continue
        return None

    def save(self, step: int, first: int, states: Sequence[object]) -> dict[str, str]:
        return self.checkpoints.save(step, first, states)

    def prune(self) -> None:
        """Remove parameters that no kept checkpoint needs; those of step 0 always stay.

        Nothing is removed before there is a second checkpoint to fall back to.
        """
        kept = self.checkpoints.steps()
        if len(kept) < KEPT:
            return
        for path in self.file(0).parent.glob("*.rec"):
            if 0 < int(path.stem) < kept[-1]:
                path.unlink(missing_ok=True)

    def prune_finished(self) -> None:
        """Remove parameters of all steps but step 0: a finished run needs those of its checkpoints only."""
        for path in self.file(0).parent.glob("*.rec"):
            if int(path.stem):
                path.unlink(missing_ok=True)

    def file(self, step: int) -> Path:
        return self.run / "params" / f"{step:08d}.rec"
