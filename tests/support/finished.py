"""A dataset and a finished run of it, as small as can be."""

from pathlib import Path
from typing import Any

import ibpdist as ibp


def images_and_run(folder: Path, rows: int = 60, **options: Any) -> Path:
    """`images.zarr` and `run`, a fit of it, in a folder; the folder."""
    ibp.synthesise("images", folder / "images.zarr", rows=rows, noise=0.2, seed=3)
    given = {"system": "lg-vi-finite", "K": 2, "steps": 2} | options
    ibp.fit(folder / "images.zarr", run=folder / "run", **given)
    return folder
