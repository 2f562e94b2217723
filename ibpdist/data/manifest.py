"""What a store must hold: every file with its size and check sum, every chunk with its content hash.

The manifest lies inside the directory of `x`, where other Zarr readers never look. Its first line
is the hash of the rest, so that damage to the manifest itself is found too.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from ibpdist.base.errors import StorageError
from ibpdist.data.check import LIMITS
from ibpdist.data.layout import READ, SCHEMA
from ibpdist.storage import zarr_groups

NAME, COUNTS_NAME = "x/manifest.json", "counts/manifest.json"
"""Inside the directory of the values, of dense data and of counts."""
LIMIT_BYTES = 256 << 20


@dataclass(frozen=True)
class ChunkEntry:
    """One chunk of `x`: hashes of its values and of its row labels, and how many of its cells are missing."""

    hash: str
    missing: int
    labels: str = ""


@dataclass(frozen=True)
class Manifest:
    """Shape and chunks of a store; `files` maps relative names to (bytes, check sum).

    Chunks of counts end at `row_stops` and `entry_stops`; those of dense data have `chunk_rows` rows each.
    """

    rows: int
    columns: int
    dtype: str
    chunk_rows: int
    fingerprint: str
    chunks: tuple[ChunkEntry, ...]
    files: dict[str, tuple[int, str]] = field(default_factory=dict)
    row_stops: tuple[int, ...] = ()
    entry_stops: tuple[int, ...] = ()

    @property
    def of_counts(self) -> bool:
        return bool(self.row_stops)

    @property
    def name(self) -> str:
        """Where it lies in its store."""
        return COUNTS_NAME if self.of_counts else NAME

    @property
    def missing(self) -> int:
        """Number of missing cells."""
        return sum(chunk.missing for chunk in self.chunks)


def encode(manifest: Manifest) -> bytes:
    body = {"schema": SCHEMA, **asdict(manifest)}
    body["chunks"] = [[chunk.hash, chunk.missing, chunk.labels] for chunk in manifest.chunks]
    if not manifest.of_counts:
        del body["row_stops"], body["entry_stops"]
    text = json.dumps(body, sort_keys=True)
    return f"{_digest(text)}\n{text}\n".encode()


def is_ours(store: Path) -> bool:
    """Whether something is a dataset of ours: it has a manifest, or says in its attributes that it had one.

    A copy made by xarray has the same attribute, but xarray gives each array of floats a `_FillValue`.
    """
    if name_in(store) is not None:
        return True
    schema = str(_attributes(store).get("schema", ""))
    return schema.startswith(SCHEMA.partition("/")[0]) and "_FillValue" not in _attributes(store / "x")


def _attributes(node: Path) -> dict[str, Any]:
    """Attributes of a group or array of Zarr version 3; none where they cannot be read."""
    try:
        if (node / "zarr.json").stat().st_size > zarr_groups.METADATA_LIMIT:
            return {}
        content = json.loads((node / "zarr.json").read_bytes())
        return dict(content.get("attributes", {}))
    except (OSError, ValueError, AttributeError, TypeError):
        return {}


def load(store: Path) -> Manifest:
    """The manifest of a store; a missing, damaged or foreign one is a StorageError."""
    name = name_in(store) or NAME
    path = store / name
    try:
        if path.stat().st_size > LIMIT_BYTES:
            raise StorageError(f"{store}: {name} is larger than {LIMIT_BYTES >> 20} MB: not a dataset")
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        lost = f"{NAME} is missing: restore the store or ingest again"
        none = f"is not a dataset of ibpdist ({NAME} is missing): make one with `ibpdist ingest`"
        raise StorageError(f"{store}: {lost if is_ours(store) else none}") from None
    except OSError as error:
        raise StorageError(f"{store}: {name} cannot be read: {error.strerror}") from error
    return _parse(raw, store, name)


def name_in(store: Path) -> str | None:
    """Where the manifest of a store lies; None where there is none."""
    return next((name for name in (NAME, COUNTS_NAME) if (store / name).exists()), None)


def _parse(raw: bytes, store: Path, name: str) -> Manifest:
    damaged = StorageError(f"{store}: {name} is damaged: restore the store or ingest again")
    try:
        stored, text = raw.decode().removesuffix("\n").split("\n")
        if stored != _digest(text) or not raw.endswith(b"\n"):
            raise damaged
        body: dict[str, Any] = json.loads(text)
    except ValueError:
        raise damaged from None
    schema = body.pop("schema", None)
    if schema not in READ:
        raise StorageError(f"{store}: has schema {schema!r}, this version reads {' and '.join(READ)}")
    chunks = tuple(ChunkEntry(str(h), int(missing), *labels) for h, missing, *labels in body.pop("chunks"))
    files = {str(file): (int(size), str(total)) for file, (size, total) in body.pop("files").items()}
    rows, entries = (tuple(map(int, body.pop(key, ()))) for key in ("row_stops", "entry_stops"))
    manifest = Manifest(chunks=chunks, files=files, row_stops=rows, entry_stops=entries, **body)
    if min(manifest.rows, manifest.columns, manifest.chunk_rows) < 1 or manifest.dtype not in LIMITS:
        raise damaged
    if any(PurePosixPath(file).is_absolute() or ".." in PurePosixPath(file).parts for file in files):
        raise StorageError(f"{store}: {name} names files outside the store: not read")
    return manifest


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
