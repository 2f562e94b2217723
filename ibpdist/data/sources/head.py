"""The first lines of a text table: delimiter, header, and which columns are labels, covariates, values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ibpdist.base.errors import InputError, UsageError
from ibpdist.data.sources.cells import DELIMITERS, Where, is_missing, is_number
from ibpdist.data.sources.lines import Lines, split

_ESCAPES = {r"\t": "\t"}
"""What is typed for a character that a shell does not pass on, and that our messages show so."""


@dataclass(frozen=True)
class Head:
    """Roles of the `width` columns; `names` is empty without a header, `labels` has one column at most."""

    delimiter: str
    width: int
    names: tuple[str, ...]
    labels: tuple[int, ...]
    covariates: tuple[int, ...]
    values: tuple[int, ...]
    notes: tuple[str, ...]


def read_head(
    lines: Lines,
    delimiter: str | None,
    header: bool | None,
    label_column: str | int | None,
    covariates: tuple[str, ...],
) -> Head:
    """Decide what is not given: the delimiter by the name of the file, the rest by its first three lines."""
    first = lines.first(3)
    if not any(line.strip() for line in first):
        raise InputError("is empty", file=lines.name, kind="empty")
    cut = _by_name(lines.name) if delimiter is None else _ESCAPES.get(delimiter, delimiter)
    if len(cut) != 1 or cut in '"\r\n':
        raise UsageError(f"delimiter is {cut!r}: expected one character")
    top = split(first[0], cut, Where(lines.name, None, 1))
    _refuse_other_delimiter(lines.name, top, cut)
    notes: list[str] = []
    named = _has_header(top) if header is None else header
    names = tuple(cell.strip() for cell in top) if named else ()
    rest = [split(line, cut, Where(lines.name, i - named, i + 1)) for i, line in enumerate(first[1:], 1)]
    body = rest if named else [top, *rest]
    if named:
        _refuse_bad_names(lines.name, names)
    labels = _label_column(lines.name, label_column, names, body, notes)
    beside = tuple(_find(lines.name, covariate, names, len(top)) for covariate in covariates)
    values = tuple(at for at in range(len(top)) if at not in labels and at not in beside)
    if not values:
        raise InputError("has no columns of values", file=lines.name, kind="empty")
    return Head(cut, len(top), names, labels, beside, values, tuple(notes))


def _by_name(name: str) -> str:
    tabbed = Path(name.removesuffix(".gz")).suffix in (".tsv", ".tab")
    return "\t" if tabbed else ","


def _refuse_other_delimiter(file: str, fields: list[str], delimiter: str) -> None:
    if len(fields) > 1:
        return
    for other, word in DELIMITERS.items():
        if other != delimiter and other in fields[0]:
            raise InputError(
                f"has one column that holds {word}s, which look like the delimiter:"
                f" pass --delimiter {other!r}" + (" or name the file .tsv" if other == "\t" else ""),
                file=file,
                value=fields[0][:80],
                kind="delimiter",
            )


def _has_header(fields: list[str]) -> bool:
    """A header has words and no numbers."""
    words = [cell for cell in fields if not is_missing(cell)]
    return bool(words) and not any(is_number(cell) for cell in words)


def _refuse_bad_names(file: str, names: tuple[str, ...]) -> None:
    for at, name in enumerate(names):
        if not name and at:
            raise InputError("has no name in the header: name it or remove it", file=file, column=at)
        if name in names[:at]:
            raise InputError(
                "occurs twice in the header: rename one of the columns", file=file, column=name, kind="labels"
            )


def _label_column(
    file: str,
    wanted: str | int | None,
    names: tuple[str, ...],
    body: list[list[str]],
    notes: list[str],
) -> tuple[int, ...]:
    """The column of row labels: the one asked for, an unnamed first one, or a first one of words."""
    if wanted is not None:
        return (_find(file, wanted, names, len(body[0]) if body else len(names)),)
    if names and not names[0]:
        return (0,)
    starts = [fields[0] for fields in body if len(fields) > 1]
    if len(starts) > 1 and not any(is_number(cell) or is_missing(cell) for cell in starts):
        notes.append(f"{file}: using the first column as row labels (it is text)")
        if not names:
            notes.append(f"{file}: no header was found, the first line is taken as data")
        return (0,)
    return ()


def _find(file: str, wanted: str | int, names: tuple[str, ...], columns: int) -> int:
    if wanted in names:
        return names.index(str(wanted))
    if str(wanted).isdecimal() and int(wanted) < columns:
        return int(wanted)
    known = ", ".join(names[:5]) or f"no header and {columns} columns"
    raise UsageError(f"{file}: has no column {wanted!r}, the file has {known}")
