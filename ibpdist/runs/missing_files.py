"""Files of a run that its log tells of and that are not there, though nothing that the run does removes them.

A run removes its older checkpoints, and the parameters of the steps before the older one of those that it
keeps, and when it has finished those of all steps but step 0. A resume removes checkpoints later than the
one it goes on from. A group that has ended keeps only its log.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ibpdist.base.errors import StorageError
from ibpdist.engine.checkpoint import KEPT, Checkpoints
from ibpdist.engine.history import RunHistory
from ibpdist.runs import restarts, result
from ibpdist.runs.directory import identity
from ibpdist.runs.nested import place
from ibpdist.storage import events
from ibpdist.storage.events import Event


def lost(path: Path) -> Iterator[str]:
    """A sentence for each missing file; none when the log cannot be read, which `verify_run` reports."""
    log = path / "events.jsonl"
    try:
        read = events.read(log)
        only_log = "ids" in identity(path) and any(event["event"] == "finished" for event in read)
    except StorageError:
        return
    if only_log:
        return
    if not read and _has_work(path):
        yield f"{log}: is missing or empty, so what the run did is not known"
    missing = [*_nested(path, read), *_checkpoints(path, read), *_parameters(path, read)]
    yield from (f"{one}: is missing" for one in missing)


def _has_work(path: Path) -> bool:
    marks = (
        "result.json",
        "result.zarr",
        "heldout.json",
        "restarts/*",
        "subsamples/*",
        "checkpoints/*",
        "params/*.rec",
    )
    return any(next(path.glob(mark), None) for mark in marks)


def _nested(path: Path, read: list[Event]) -> list[Path]:
    """Missing folders of the starts and the subsamples that have ended."""
    starts = {event["restart"] for event in read if event["event"] == "restart"}
    parts = {event["subsample"] for event in read if event["event"] == "subsample"}
    folders = [restarts.folder(path, start) for start in sorted(starts)]
    folders += [path / place(part) for part in sorted(parts)]
    return [folder for folder in folders if not folder.exists()]


def _checkpoints(path: Path, read: list[Event]) -> list[Path]:
    """Missing manifests of the checkpoints that are kept."""
    held = Checkpoints(path)
    there = held.steps()
    return [held.folder(step) / "manifest.json" for step in kept(read, there) if step not in there]


def _parameters(path: Path, read: list[Event]) -> list[Path]:
    """Those of step 0, and of the steps that have not been removed up to the last that was made. Questions
    that were asked before step 0 are needed no more."""
    history, last, saved = RunHistory(path), 0, 0
    there = history.checkpoints.steps()
    for event in read:
        last = event["step"] if event["event"] in ("begin", "step") else last
        saved += event["event"] == "saving"
    if not last:
        return []
    if _is_finished(path, read):
        return [file for file in [history.file(0)] if not file.exists()]
    pruned = max(saved, len(there)) >= KEPT
    first = min(kept(read, there), default=last + 1) if pruned else 1
    files = [history.file(step) for step in (0, *range(first, last + 1))]
    return [file for file in files if not file.exists()]


def _is_finished(path: Path, read: list[Event]) -> bool:
    """Whether a run has its result, or had it and was not restarted since."""
    marks = [event["event"] for event in read if event["event"] in ("begin", "finished")]
    return result.is_complete(path) or marks[-1:] == ["finished"]


def kept(read: list[Event], there: list[int]) -> list[int]:
    """Steps of the checkpoints that a run has at the end of its log.

    One that was being saved and is `there` was committed, though the run was killed before it said so.
    """
    steps: set[int] = set()
    saving = 0
    for event in read:
        if event["event"] == "damaged":
            steps -= set(event["checkpoints"])
        elif event["event"] == "begin":
            steps, saving = {step for step in {*steps, event["step"]} if 0 < step <= event["step"]}, 0
        elif event["event"] == "saving":
            saving = event["step"]
            steps.discard(saving)
        elif event["event"] == "checkpoint":
            steps, saving = {*steps, saving}, 0
        steps = set(sorted(steps)[-KEPT:])
    return sorted({*steps, saving} if saving in there else steps)[-KEPT:]
