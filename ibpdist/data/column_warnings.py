"""What is accepted but should be told: columns that cannot say much, and numbers of odd size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.data.summary import ColumnSummary, far

_SHOWN = 5
_RANGE = 1e8
_FAR = (
    "far from zero compared with its spread (consider ingest --center): a fit takes the mean off every column"
)


def warnings_of(summary: ColumnSummary, names: Sequence[object] | None, dtype: np.dtype[Any]) -> list[str]:
    """Sentences about the columns of a dataset whose values are of a type."""
    table = summary.table()
    observed = table["count"] > 0
    low, high = table["min"], table["max"]
    zero = observed & (low == 0) & (high == 0)
    constant = (table["count"] > 1) & (low == high) & ~zero
    size = np.fmax(np.abs(low), np.abs(high))
    small = observed & ~zero & (size < np.sqrt(np.finfo(dtype).tiny))
    typical = float(np.median(size[observed])) if observed.any() else 0.0
    large = observed & (size > _RANGE * typical) if typical > 0 else np.zeros_like(observed)
    sentences = [
        (~observed, "never observed"),
        (zero, "all zero"),
        (constant, "constant"),
        (far(table), _FAR),
        (large, "more than 1e8 times larger than the median column (consider ingest --scale)"),
        (small, f"so small that squares vanish in {dtype} (rescale the data)"),
    ]
    return [_sentence(which, what, names) for which, what in sentences if which.any()]


def empty_columns(summary: ColumnSummary, names: Sequence[object] | None) -> list[str]:
    """The sentence about words that never occur in counts, if there are any."""
    never = summary.high == 0
    return (
        [_sentence(never, "never occur" if never.sum() > 1 else "never occurs", names)] if never.any() else []
    )


def far_warnings(table: Mapping[str, NDArray[np.float64]], names: Sequence[object] | None) -> list[str]:
    """The sentence about columns so far from zero that fits see centred values, if there are any."""
    which = far(table)
    return [_sentence(which, _FAR, names)] if which.any() else []


def _sentence(which: NDArray[np.bool_], what: str, names: Sequence[object] | None) -> str:
    at = np.flatnonzero(which)
    shown = ", ".join(str(i if names is None else names[i]) for i in at[:_SHOWN])
    more = f" and {len(at) - _SHOWN} more" if len(at) > _SHOWN else ""
    return f"column {shown}{more}: {what}" if len(at) == 1 else f"columns {shown}{more}: {what}"
