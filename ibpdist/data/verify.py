"""Check a dataset: every stored file and every value is read and compared with its hash."""

from __future__ import annotations

from pathlib import Path

from ibpdist.base.errors import StorageError
from ibpdist.data import layout, manifest
from ibpdist.data.store import Dataset, file_problem, open_dataset
from ibpdist.storage import files


def verify_dataset(path: str | Path) -> list[str]:
    """A sentence for each thing that is wrong with a store, naming the file; empty when it is sound."""
    store = Path(path)
    try:
        listed = manifest.load(store)
    except StorageError as error:
        return [str(error)]
    stored = set(files.stored_files(store)) - {listed.name}
    problems = [f"{store}: {name}: is not part of the dataset" for name in sorted(stored - set(listed.files))]
    for name in listed.files:
        problem = file_problem(store, name, listed)
        if problem:
            problems.append(f"{store}: {name}: {problem}")
    return problems or _values(open_dataset(store))


def _values(data: Dataset) -> list[str]:
    """Compare the values of every chunk with their hashes, and the hashes with the fingerprint."""
    problems, hashes, labels = [], [], []
    for index, chunk in enumerate(data.manifest.chunks):
        try:
            hashes.append(data.content_hash(index))
        except StorageError as error:
            problems.append(str(error))
            continue
        if hashes[-1] != chunk.hash:
            problems.append(f"{data.path}: {data.chunk_file(index)}: holds other values than were written")
        # Stores of the first schema have no hashes of labels.
        labels.append(layout.labels_hash(data.row_coords(index)) if chunk.labels else "")
        if labels[-1] != chunk.labels:
            problems.append(f"{data.path}: chunk {index}: has other row labels than were written")
    if not problems and data.fingerprint_of(hashes, labels) != data.fingerprint:
        problems.append(f"{data.path}: the fingerprint does not fit the values and labels")
    return problems
