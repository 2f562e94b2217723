"""Where the page of a report may lie: nothing but another page gives way to it unasked."""

from __future__ import annotations

import os
from pathlib import Path

from ibpdist.base.errors import OutputInUse, UsageError
from ibpdist.base.words import OVERWRITE
from ibpdist.data.output_path import refuse_place

NAME = "report.html"
GENERATOR = "ibpdist"
"""Who wrote a page, as its head says."""
_HEAD = 1024
"""Bytes of a file in which that stands."""


def folder_of(run: Path) -> Path:
    """The run of a result, which may be given by the store it is in."""
    return run.parent if run.name == "result.zarr" else run


def place(run: Path, output: Path | None, overwrite: bool) -> Path:
    """The file to write, RUN/report.html unless `output` is given.

    Refused are places inside a store and directories; another file than a page of ours unless
    `overwrite`; and what belongs to a run, whatever is asked.
    """
    usual = folder_of(run) / NAME
    path = usual if output is None else output
    refuse_place(path)
    if path.is_dir():
        raise UsageError(f"{path}: is a directory; name the file to write, such as {path / NAME}")
    if path.resolve() == usual.resolve() or is_page(path):
        return path
    _refuse_files_of_runs(path)
    if os.path.lexists(path):
        if not overwrite:
            raise OutputInUse(f"{path}: exists and is not a report: choose another name or {OVERWRITE}")
        if not path.is_file():
            raise OutputInUse(f"{path}: is not a regular file: choose another name")
    return path


def is_page(path: Path) -> bool:
    """Whether a file is a page that was written here."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return f'name="generator" content="{GENERATOR}"'.encode() in file.read(_HEAD)


def _refuse_files_of_runs(path: Path) -> None:
    """Within a run only new pages may be made: its other names are its own."""
    from ibpdist.campaigns.directory import is_campaign
    from ibpdist.runs.directory import is_run

    holder = next((one for one in path.resolve().parents if is_run(one) or is_campaign(one)), None)
    if holder is not None and (os.path.lexists(path) or path.suffix != ".html"):
        raise UsageError(f"{path}: lies inside the run {holder.name}: choose a place outside it")
