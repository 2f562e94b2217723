"""What is half written: every file or folder gets its name last, and until then ends in `.partial`."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

_PLACES = ("*.partial", "*/*.partial", "*/*/*.partial")


def litter(path: Path) -> list[Path]:
    """Partially written files of a run or a campaign; remains of a killed process when the lock is free."""
    return [file for place in _PLACES for file in path.glob(place)]


def clean(path: Path) -> None:
    """Remove what a signal, an error or a killed process left half written."""
    for file in litter(path):
        if file.is_dir():
            shutil.rmtree(file, ignore_errors=True)
        else:
            with suppress(OSError):
                file.unlink(missing_ok=True)
