"""Everything wrong with a run or a dataset, without starting anything: a list of sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from ibpdist.data.verify import verify_dataset
from ibpdist.errors import StorageError
from ibpdist.runs import events, records, result, scores, sealed, table
from ibpdist.runs.campaign import FAILED, GRID, MANIFEST, Manifest, is_campaign, is_meant
from ibpdist.runs.checkpoint import Checkpoints
from ibpdist.runs.directory import identity, is_run
from ibpdist.runs.events import Event
from ibpdist.runs.litter import litter
from ibpdist.runs.lock import is_held
from ibpdist.runs.lost import lost


def verify(path: str | Path) -> list[str]:
    """Problems of a run, a campaign, or a dataset with its every chunk; none when all is well."""
    place = Path(path)
    if not place.exists():
        raise StorageError(f"{place}: does not exist; name a run, a campaign or a dataset")
    if is_run(place) or (place / "spec.yaml").exists():
        return list(_run(place))
    return list(_campaign(place)) if is_meant(place) else verify_dataset(place)


def _run(path: Path) -> Iterator[str]:
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
    for child in sorted(path.glob("restarts/*")):
        yield from _run(child)


def _campaign(path: Path) -> Iterator[str]:
    """The manifest, the grid, the log, failures, the summary, and every run of fits and groups."""
    yield from _grid(path)
    yield from _unread(events.read, path / "events.jsonl")
    for failed in sorted(path.glob(f"fits/*/{FAILED}")):
        yield from _unread(sealed.read, failed)
    if not is_held(path / "lock"):
        yield from (f"{one}; sweep writes it again" for one in _summary(path))
    runs = [*sorted(path.glob("groups/*")), *sorted(path.glob("fits/*"))]
    for run in filter(is_run, runs):
        yield from _run(run)
    if not is_held(path / "lock"):
        begun = [
            run for run in runs if not is_run(run) and any(run.iterdir()) and not (run / FAILED).exists()
        ]
        litter = [*sorted(path.glob("*.partial")), *begun]
        yield from (f"{one}: was left by a process that was killed; sweep removes it" for one in litter)


def _grid(path: Path) -> Iterator[str]:
    """The manifest of a campaign, and the file that says the same to people."""
    if not is_campaign(path):
        yield f"{path / MANIFEST}: is missing; take it from a copy, or sweep the grid in another place"
        return
    try:
        told = Manifest.read(path).is_told(path)
    except StorageError as error:
        yield str(error)
        return
    if not (path / GRID).exists():
        yield f"{path / GRID}: is missing; resume writes it again"
    elif not told:
        yield f"{path / GRID}: is not the grid that {MANIFEST} seals; remove it, and resume writes it again"


def _summary(path: Path) -> Iterator[str]:
    """The summary is as it was written; of one that was being replaced the litter is told of."""
    store, seal = path / "summary", path / table.SEAL
    if (path / "summary.partial").exists():
        return
    if store.exists():
        yield from _unlike(store, seal)
    elif seal.exists():
        yield f"{store}: is missing"


def _readable(path: Path) -> Iterator[str]:
    yield from _unread(identity, path)


def _unread(read: Callable[[Path], object], path: Path) -> Iterator[str]:
    """What stands in the way of reading something."""
    try:
        read(path)
    except StorageError as error:
        yield str(error)


def _log(path: Path) -> Iterator[str]:
    """The log is whole, and every step follows the one before or the one that a resume began at."""
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
        yield from _unread(records.check, file)


def _scores(path: Path) -> Iterator[str]:
    yield from _unread(scores.read, path)


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
        yield from _unlike(path / "result.zarr", path / "result.json")


def _unlike(store: Path, listing: Path) -> Iterator[str]:
    """Files that are not those of which a list has the hashes."""
    try:
        expected = sealed.read(listing)
    except StorageError as error:
        yield f"{error}; so the {store.stem} cannot be checked"
        return
    found = result.hashes(store)
    yield from (f"{store / name}: is missing" for name in sorted(expected.keys() - found.keys()))
    yield from (
        f"{store / name}: does not belong to the {store.stem}"
        for name in sorted(found.keys() - expected.keys())
    )
    for name in sorted(expected.keys() & found.keys()):
        if expected[name] != found[name]:
            yield f"{store / name}: damaged: it does not match its hash"
