"""The problems of a run, a campaign or a dataset, one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ibpdist.base.errors import StorageError
from ibpdist.campaigns import summary as table
from ibpdist.campaigns.directory import FAILED, GRID, MANIFEST, Manifest, is_campaign, is_meant
from ibpdist.data.urls import refuse_urls
from ibpdist.data.verify import verify_dataset
from ibpdist.runs.directory import is_run
from ibpdist.runs.verify import unlike, unread, verify_run
from ibpdist.storage import events, sealed
from ibpdist.storage.lock import is_held


def verify(path: str | Path) -> list[str]:
    """Problems of a run, a campaign, or a dataset with every chunk; an empty list without any."""
    refuse_urls(path)
    folder = Path(path)
    if not folder.exists():
        raise StorageError(f"{folder}: does not exist; name a run, a campaign or a dataset")
    if is_run(folder) or (folder / "spec.yaml").exists():
        return list(verify_run(folder))
    return list(_campaign(folder)) if is_meant(folder) else verify_dataset(folder)


def _campaign(path: Path) -> Iterator[str]:
    """The manifest, the grid, the log, failures, the summary, and every run of fits and groups."""
    yield from _grid(path)
    yield from unread(events.read, path / "events.jsonl")
    for failed in sorted(path.glob(f"fits/*/{FAILED}")):
        yield from unread(sealed.read, failed)
    if not is_held(path / "lock"):
        yield from (f"{one}; sweep writes it again" for one in _summary(path))
    runs = [*sorted(path.glob("groups/*")), *sorted(path.glob("fits/*"))]
    for run in filter(is_run, runs):
        yield from verify_run(run)
    if not is_held(path / "lock"):
        begun = [
            run for run in runs if not is_run(run) and any(run.iterdir()) and not (run / FAILED).exists()
        ]
        litter = [*sorted(path.glob("*.partial")), *begun]
        yield from (f"{one}: was left by a process that was killed; sweep removes it" for one in litter)


def _grid(path: Path) -> Iterator[str]:
    """The manifest of a campaign, and the YAML file of its grid."""
    if not is_campaign(path):
        yield f"{path / MANIFEST}: is missing; take it from a copy, or sweep the grid in another place"
        return
    try:
        agrees = Manifest.read(path).matches_grid(path)
    except StorageError as error:
        yield str(error)
        return
    if not (path / GRID).exists():
        yield f"{path / GRID}: is missing; resume writes it again"
    elif not agrees:
        yield f"{path / GRID}: is not the grid that {MANIFEST} seals; remove it, and resume writes it again"


def _summary(path: Path) -> Iterator[str]:
    """Whether the summary is as it was written; one that was being replaced is not checked."""
    store, seal = path / "summary", path / table.SEAL
    if (path / "summary.partial").exists():
        return
    if store.exists():
        yield from unlike(store, seal)
    elif seal.exists():
        yield f"{store}: is missing"
