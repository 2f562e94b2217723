"""A campaign on disk: many fits of one dataset, and the groups in which they advance.

    campaign.yaml   the grid in full
    manifest.json   every fit of it: an id (hash of spec and data), labels, spec; sealed
    lock            names the process that writes, while it does
    events.jsonl    what happened to the campaign, numbered
    groups/GROUP/   the run of several fits that advance together; afterwards its log
    fits/FIT/       a run with the result of one fit; failed.json instead when it failed. Where subsamples
                    are asked for, the runs of its parts are in it, as in a run of `fit`
    summary/        Zarr: numbers of all fits by label; summary.json its hashes

Only the files of `fits/` are truth. What is in the grid and not there is yet to be made.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ibpdist.base.errors import IbpError, OutputInUse, StorageError
from ibpdist.campaigns.spec import CampaignSpec, in_words
from ibpdist.catalog.spec import FitSpec
from ibpdist.runs import result
from ibpdist.runs.nested import nested_fits
from ibpdist.storage import records, sealed
from ibpdist.storage.events import Events
from ibpdist.storage.lock import Lock
from ibpdist.storage.partial_files import clean

SCHEMA = 1
MANIFEST = "manifest.json"
GRID = "campaign.yaml"
FAILED = "failed.json"
_BEGINNINGS = {"lock", "events.jsonl", GRID}
"""What a campaign that was killed while it was made may hold."""


@dataclass(frozen=True)
class Fit:
    """A fit of a campaign: its id, its labels by dim, its spec; of one that is part of another its name
    within that."""

    id: str
    labels: Mapping[str, Any]
    spec: FitSpec
    part: str = ""

    @property
    def name(self) -> str:
        return ", ".join(filter(None, (in_words(self.labels), self.part)))

    @property
    def parts(self) -> list[Fit]:
        """The fits that make its result, each in a folder within its own; the fit itself without any."""
        nested = nested_fits(self.spec)
        return [Fit(f"{self.id}/{one.place}", self.labels, one.spec, one.words) for one in nested] or [self]

    @property
    def is_scored(self) -> bool:
        """Whether what it did not see is scored."""
        return bool(self.spec.holdout) and self.spec.member is None


@dataclass(frozen=True)
class Manifest:
    """All fits of a campaign, in the order of the grid, and the fingerprint of the data."""

    spec: CampaignSpec
    fingerprint: str
    fits: tuple[Fit, ...]

    @classmethod
    def of(cls, spec: CampaignSpec, fingerprint: str) -> Manifest:
        fits = (Fit(cell.spec.id(fingerprint), cell.labels, cell.spec) for cell in spec.cells())
        return cls(spec, fingerprint, tuple(fits))

    def matches_grid(self, path: Path) -> bool:
        """Whether campaign.yaml holds the grid that is sealed here."""
        try:
            return CampaignSpec.read(path / GRID) == self.spec
        except IbpError:
            return False

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """The manifest of a campaign; StorageError when there is none or it was changed."""
        body = sealed.read(_is_one(path) / MANIFEST)
        if body["schema"] > SCHEMA:
            raise StorageError(f"{path}: was written by a newer version (schema {body['schema']})")
        # What is sealed was checked when it was written; a later version may be stricter.
        told = ((fit["id"], fit["labels"], FitSpec.model_construct(**fit["spec"])) for fit in body["fits"])
        fits = tuple(Fit(*one) for one in told)
        return cls(CampaignSpec.model_construct(**body["spec"]), body["fingerprint"], fits)

    def write(self, path: Path) -> None:
        """The sealed manifest is written first: a kill leaves no campaign.yaml that differs from it."""
        fits = [{"id": fit.id, "labels": dict(fit.labels), "spec": fit.spec.written()} for fit in self.fits]
        body = {"schema": SCHEMA, "fingerprint": self.fingerprint, "spec": self.spec.written()}
        (path / GRID).unlink(missing_ok=True)
        sealed.write(path / MANIFEST, {**body, "fits": fits})
        records.replace_file(path / GRID, [self.spec.dump().encode()])
        records.sync_folder(path)


def is_campaign(path: str | Path) -> bool:
    return (Path(path) / MANIFEST).is_file()


def is_meant(path: Path) -> bool:
    """Whether a folder was a campaign, though its manifest may be lost."""
    logged = (path / "events.jsonl").exists() and (path / "fits").is_dir()
    return is_campaign(path) or (path / GRID).exists() or logged


def sealed_grid(path: Path) -> CampaignSpec:
    """The grid that a campaign was made with; refused while its campaign.yaml differs."""
    manifest = Manifest.read(path)
    if (path / GRID).exists() and not manifest.matches_grid(path):
        raise StorageError(
            f"{path / GRID}: is not the grid that {MANIFEST} seals; remove it to continue with that one, "
            "or give another grid to sweep in a file of its own"
        )
    return manifest.spec


def fit_folder(path: Path, fit: str) -> Path:
    return path / "fits" / fit


def is_finished(path: Path, fit: str) -> bool:
    return result.is_complete(fit_folder(path, fit))


def whole_of(fit: str) -> str:
    """The id of the fit that a fit is a part of; its own when it is none."""
    return fit.partition("/")[0]


def failure(path: Path, fit: str) -> dict[str, Any] | None:
    """Why a fit failed (`reason`) and its exit code (`code`); None when it did not.

    A fit fails with any of its parts, `parts` in the file; without such a list all of its parts did.
    """
    file = fit_folder(path, whole_of(fit)) / FAILED
    if not file.exists():
        return None
    try:
        content: dict[str, Any] = sealed.read(file)
    except StorageError as error:
        return {"reason": f"{error}; sweep tries the fit again", "code": error.code}
    return content if fit in ({whole_of(fit), *content.get("parts", [fit])}) else None


class CampaignDirectory:
    """A campaign that this process writes and `close` unlocks."""

    def __init__(self, path: Path) -> None:
        """Take a campaign, or a folder for a new one."""
        self.path = path
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise records.storage_error(path, error) from error
        self._failing = threading.Lock()
        self._lock = Lock(path / "lock")
        try:
            self._look_around()
            self.events = Events(path / "events.jsonl")
        except BaseException:
            self._lock.release()
            raise

    def begin(self, spec: CampaignSpec, fingerprint: str) -> Manifest:
        """Write the manifest, also where it was lost; refuses other data than those of the campaign."""
        manifest = Manifest.of(spec, fingerprint)
        known = Manifest.read(self.path) if is_campaign(self.path) else None
        if known is not None and known.fingerprint != fingerprint:
            raise StorageError(f"{spec.data}: has changed since {self.path} began; choose another place")
        changed = known is None or known.fits != manifest.fits
        if changed or not manifest.matches_grid(self.path):
            manifest.write(self.path)
        if changed:
            before = set() if known is None else {fit.id for fit in known.fits}
            new = [fit for fit in manifest.fits if fit.id not in before]
            self.events.add("manifest", fits=len(manifest.fits), new=len(new))
        return manifest

    def fail(self, fit: Fit, reason: str, code: int) -> None:
        """Record that a fit failed, with the first of its parts that did; it is repeated when the campaign is
        run again."""
        whole = whole_of(fit.id)
        folder = fit_folder(self.path, whole)
        folder.mkdir(parents=True, exist_ok=True)
        with self._failing:
            body: dict[str, Any] = {"reason": reason, "code": code}
            if fit.id != whole:
                first = failure(self.path, whole) or {**body, "reason": f"{fit.part}: {reason}"}
                body = {**first, "parts": [*first.get("parts", []), fit.id]}
            sealed.write(folder / FAILED, body)
        self.events.add("failed", fit=fit.id, reason=reason)

    def forget_failure(self, fit: Fit) -> None:
        (fit_folder(self.path, fit.id) / FAILED).unlink(missing_ok=True)

    def close(self) -> None:
        """Unlock the campaign; removes partially written files after a signal or an error."""
        self.events.close()
        clean(self.path)
        self._lock.release()

    def _look_around(self) -> None:
        present = {entry.name for entry in self.path.iterdir() if entry.suffix != ".partial"}
        if present - _BEGINNINGS and not is_campaign(self.path):
            raise OutputInUse(f"{self.path}: exists and is not a campaign; choose another place")
        clean(self.path)


def _is_one(path: Path) -> Path:
    if not is_campaign(path):
        raise StorageError(f"{path}: is not a campaign ({MANIFEST} is missing); name what sweep wrote")
    return path
