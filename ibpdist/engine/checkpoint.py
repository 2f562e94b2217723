"""Checkpoints of a run: row states and parameters after a step, all or nothing.

    checkpoints/STEP/rows-FIRST-LAST.rec    written by whoever has the rows
    checkpoints/STEP/params.rec
    checkpoints/STEP/manifest.json          written last, by the driver: from then on it is committed

The manifest holds the hash of every file and of itself. Two checkpoints are kept.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ibpdist.base.errors import StorageError
from ibpdist.storage import records, sealed

KEPT = 2
_ROWS = re.compile(r"rows-(\d+)-(\d+)\.rec")


class Checkpoints:
    """The folder `checkpoints` of a run."""

    def __init__(self, run: Path) -> None:
        self.path = run / "checkpoints"

    def begin(self, step: int) -> None:
        """An empty folder for the files of a step."""
        self.drop(step)
        try:
            self.folder(step).mkdir(parents=True)
        except OSError as error:
            raise records.storage_error(self.folder(step), error) from error

    def save(self, step: int, first: int, states: Sequence[Any]) -> dict[str, str]:
        """Store the row states of adjoining chunks; hash by file name."""
        name = f"rows-{first:06d}-{first + len(states) - 1:06d}.rec"
        held = {str(first + i): state for i, state in enumerate(states)}
        return {name: records.write(self.folder(step) / name, held)}

    def commit(self, step: int, params: Any, files: Mapping[str, str], chunks: int) -> None:
        """Make a step count; afterwards the checkpoints before the last two are removed."""
        covered = sum(last - first + 1 for first, last in map(_span, files))
        if covered != chunks:
            raise ValueError(f"checkpoint of {covered} chunks of {chunks}")
        folder = self.folder(step)
        for litter in folder.glob("*.partial"):  # of workers that were killed while they wrote
            litter.unlink(missing_ok=True)
        digest = records.write(folder / "params.rec", {"params": params})
        body = {"step": step, "chunks": chunks, "files": {**files, "params.rec": digest}}
        records.sync_folder(folder)
        sealed.write(folder / "manifest.json", body)
        records.sync_folder(folder)
        records.sync_folder(self.path)
        for old in self.steps()[KEPT:]:
            self.drop(old)

    def steps(self) -> list[int]:
        """Committed steps, newest first."""
        if not self.path.is_dir():
            return []
        steps = [int(p.name) for p in self.path.iterdir() if p.name.isdigit()]
        return sorted((s for s in steps if (self.folder(s) / "manifest.json").is_file()), reverse=True)

    def newest_whole(self) -> tuple[int, Any] | None:
        """The newest checkpoint without damage: its step and parameters."""
        for step in self.steps():
            if not self.problems(step):
                return step, self.params(step)
        return None

    def params(self, step: int) -> Any:
        return records.read(self.folder(step) / "params.rec", "params")

    def state(self, step: int, chunk: int) -> Any:
        """Row state of a chunk after a committed step."""
        for name in self._files(step):
            if name != "params.rec" and _span(name)[0] <= chunk <= _span(name)[1]:
                return records.read(self.folder(step) / name, str(chunk))
        raise StorageError(f"{self.folder(step)}: has no rows of chunk {chunk}")

    def problems(self, step: int) -> list[str]:
        """Everything wrong with a committed checkpoint, in words."""
        problems = []
        try:
            files = self._files(step)
        except StorageError as error:
            return [str(error)]
        for name, digest in files.items():
            try:
                if records.check(self.folder(step) / name) != digest:
                    problems.append(f"{self.folder(step) / name}: is not the file that was committed")
            except StorageError as error:
                problems.append(str(error))
        return problems

    def drop(self, step: int) -> None:
        """Remove a checkpoint; its manifest first, so that half of one never counts."""
        (self.folder(step) / "manifest.json").unlink(missing_ok=True)
        shutil.rmtree(self.folder(step), ignore_errors=True)

    def clean(self, newest: int) -> None:
        """Remove what is not committed, and what is newer than the checkpoint a run resumes from."""
        if not self.path.is_dir():
            return
        whole = {step for step in self.steps() if step <= newest}
        for entry in self.path.iterdir():
            if entry.name.isdigit() and int(entry.name) not in whole:
                self.drop(int(entry.name))

    def folder(self, step: int) -> Path:
        return self.path / f"{step:08d}"

    def _files(self, step: int) -> dict[str, str]:
        path = self.folder(step) / "manifest.json"
        body = sealed.read(path)
        if body["step"] != step:
            raise StorageError(f"{path}: damaged: it is the manifest of step {body['step']}")
        files: dict[str, str] = body["files"]
        for name in files:
            if name != "params.rec":
                _span(name)
        return files


def _span(name: str) -> tuple[int, int]:
    match = _ROWS.fullmatch(name)
    if match is None:
        raise StorageError(f"{name}: not the name of a file of rows")
    return int(match[1]), int(match[2])
