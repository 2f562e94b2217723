"""What is half written: every file or folder gets its name last, and until then ends in `.partial`."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

_PLACES = ("*.partial", "*/*.partial", "*/*/*.partial")


def litter(path: Path) -> list[Path]:
    """Partially written files of a run or a campaign; remains of a killed process when the lock is free."""
    return [found for place in _PLACES for found in path.glob(place)]


def clean(path: Path) -> None:
    """Remove what a signal, an error or a killed process left half written."""
    for found in litter(path):
        if found.is_dir():
            shutil.rmtree(found, ignore_errors=True)
        else:
            with suppress(OSError):
                found.unlink(missing_ok=True)
