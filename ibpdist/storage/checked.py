"""Files of a result that are compared with their hashes when they are read.

A result has a list of the hashes of its files (`result.json`). Zarr's own check sums cover the values of a
chunk, but not which chunk it is, nor metadata; and to Zarr a missing chunk is one of fill values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from zarr.storage import LocalStore

from ibpdist.base.errors import StorageError

ADVICE = "take the result from a copy, or fit again"


class CheckedStore(LocalStore):
    """A Zarr store, read only, whose files must be those of a list of hashes by relative name."""

    def __init__(self, root: Path, hashes: Mapping[str, str]) -> None:
        super().__init__(root, read_only=True)
        self.hashes = hashes

    def with_read_only(self, read_only: bool = True) -> CheckedStore:
        return self

    async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
        """A whole file; None for one that neither exists nor is listed."""
        held = await super().get(key, prototype, None)
        if held is None and key not in self.hashes:
            return None
        content = b"" if held is None else held.to_bytes()
        refuse_unlike(self.root, key, self.hashes.get(key), None if held is None else content)
        return held


def refuse_unlike(root: Path, name: str, expected: str | None, content: bytes | None) -> None:
    """StorageError unless a file is there, is listed, and has its hash."""
    if content is None:
        raise StorageError(f"{root / name}: is missing; {ADVICE}")
    if expected is None:
        raise StorageError(f"{root / name}: does not belong to the result; remove it, or {ADVICE}")
    if hashlib.sha256(content).hexdigest() != expected:
        raise StorageError(f"{root / name}: damaged: it does not match its hash; {ADVICE}")


def refuse_damage(root: Path, hashes: Mapping[str, str], later: Iterable[str]) -> None:
    """StorageError when a file is missing or not as it was written.

    Chunks of the groups `later` are checked when they are read; here they only have to be there.
    """
    for name, expected in hashes.items():
        lazy = name.startswith(tuple(f"{group}/" for group in later)) and not name.endswith("zarr.json")
        if lazy and (root / name).is_file():
            continue
        refuse_unlike(root, name, expected, _content(root / name))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
