"""Small JSON files that hold the hash of their own content."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ibpdist.errors import StorageError
from ibpdist.runs import records


def write(path: Path, body: Any) -> None:
    """Put `body` (JSON-able) in place, durably and in one step."""
    text = json.dumps({"sha256": digest(body), "body": body}, indent=1)
    records.replace_file(path, [text.encode()])


def read(path: Path) -> Any:
    """The body of a file; a StorageError names the file when it is not as it was written."""
    try:
        held = json.loads(path.read_bytes())
        whole = held.keys() == {"sha256", "body"} and held["sha256"] == digest(held["body"])
    except OSError as error:
        raise records.storage_error(path, error) from error
    except (ValueError, AttributeError):
        whole = False
    if not whole:
        raise StorageError(f"{path}: damaged: it does not match its hash")
    return held["body"]


def digest(body: Any) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
