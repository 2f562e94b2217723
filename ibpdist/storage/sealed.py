"""Small JSON files that hold the hash of their own content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ibpdist.base.errors import StorageError
from ibpdist.storage import records


def write(path: Path, body: Any) -> None:
    """Put `body` (JSON-able) in place, durably and in one step."""
    records.replace_file(path, [_text({"sha256": digest(body), "body": body})])


def read(path: Path) -> Any:
    """The body of a file; a StorageError names the file when it is not as it was written."""
    try:
        text = path.read_bytes()
        held = json.loads(text)
        whole = _text(held) == text and held["sha256"] == digest(held["body"])
    except OSError as error:
        raise records.storage_error(path, error) from error
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise StorageError(f"{path}: damaged: it does not match its hash")
    return held["body"]


def _text(held: Any) -> bytes:
    """One text for one content, so that every flipped bit shows, even in white space."""
    return json.dumps(held, indent=1).encode()


def digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
