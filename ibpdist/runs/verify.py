"""The problems of a run, one sentence each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ibpdist.base.errors import StorageError
from ibpdist.data.verify import verify_dataset
from ibpdist.engine.checkpoint import Checkpoints
from ibpdist.runs import result, scores
from ibpdist.runs.directory import identity, is_run
from ibpdist.runs.missing_files import lost
from ibpdist.storage import events, records, sealed
from ibpdist.storage.events import Event
from ibpdist.storage.lock import is_held
from ibpdist.storage.partial_files import litter


def verify_run(path: Path) -> Iterator[str]:
    """Problems of a run, of its restarts and of its subsamples, and of the groups of these."""
    yield from _readable(path)
    yield from _log(path)
    yield from _parameters(path)
    if not is_held(path / "lock"):
        yield from lost(path)
    checkpoints = Checkpoints(path)
    for step in checkpoints.steps():
        yield from checkpoints.problems(step)
    yield from _result(path)
    yield from _scores(path)
    if (path / "data.zarr").exists():
        yield from _data(path / "data.zarr")
    if not is_held(path / "lock"):
        yield from _torn(path / "events.jsonl")
        for one in litter(path):
            yield f"{one}: was left by a process that was killed; resume removes it"
    nested = [*sorted(path.glob("restarts/*")), *sorted(path.glob("subsamples/*"))]
    for child in [*nested, *filter(is_run, sorted(path.glob("groups/*")))]:
        yield from verify_run(child)


def _readable(path: Path) -> Iterator[str]:
    yield from unread(identity, path)


def unread(read: Callable[[Path], object], path: Path) -> Iterator[str]:
    """The error of reading a file, if there is one."""
    try:
        read(path)
    except StorageError as error:
        yield str(error)


def _log(path: Path) -> Iterator[str]:
    """Gaps of the log: every step follows the one before, or the one at which a resume began."""
    log = path / "events.jsonl"
    try:
        read = events.read(log)
    except StorageError as error:
        yield str(error)
        return
    yield from (f"{log}: {fault}" for fault in _disorder(read))
    steps = {event["step"] for event in read if event["event"] == "saving"}
    lost = [step for step in Checkpoints(path).steps() if step not in steps]
    yield from (f"{log}: does not know the checkpoint of step {step}" for step in lost)
    if result.is_complete(path) and "step" in {e["event"] for e in read}:
        last = max((e["step"] for e in read if e["event"] == "step"), default=0)
        if last not in steps:
            yield f"{log}: the result is of step {last}, which has no checkpoint"


def _disorder(read: list[Event]) -> Iterator[str]:
    expected = None
    for event in read:
        if event["event"] == "begin":
            expected = event["step"] + 1
        elif event["event"] == "step":
            if event["step"] != expected:
                yield f"line {event['number'] + 1}: step {event['step']} where {expected} was due"
            expected = event["step"] + 1


def _parameters(path: Path) -> Iterator[str]:
    for file in sorted(path.glob("params/*.rec")):
        yield from unread(records.check, file)


def _scores(path: Path) -> Iterator[str]:
    yield from unread(scores.read, path)


def _data(store: Path) -> Iterator[str]:
    """The data of a fit to an array are stored in its run."""
    try:
        yield from verify_dataset(store)
    except StorageError as error:
        yield str(error)


def _torn(log: Path) -> Iterator[str]:
    if log.exists() and log.read_bytes()[-1:] not in (b"\n", b""):
        yield f"{log}: ends within a line that a killed process or damage left; resume removes it"


def _result(path: Path) -> Iterator[str]:
    if (path / "result.zarr").exists():
        yield from unlike(path / "result.zarr", path / "result.json")


def unlike(store: Path, listing: Path) -> Iterator[str]:
    """Files that differ from a list of hashes."""
    try:
        expected = sealed.read(listing)
    except StorageError as error:
        yield f"{error}; so the {store.stem} cannot be checked"
        return
    hashes = result.hashes(store)
    yield from (f"{store / name}: is missing" for name in sorted(expected.keys() - hashes.keys()))
    yield from (
        f"{store / name}: does not belong to the {store.stem}"
        for name in sorted(hashes.keys() - expected.keys())
    )
    for name in sorted(expected.keys() & hashes.keys()):
        if expected[name] != hashes[name]:
            yield f"{store / name}: damaged: it does not match its hash"
