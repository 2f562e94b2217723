"""Centring, scaling and log(1 + x): only when asked for, recorded in the store, and undone later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import InputError

if TYPE_CHECKING:
    from ibpdist.data.store import Dataset

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Transform:
    """x -> (f(x) - center) / scale with f = log1p or nothing; center and scale are (column,) or None."""

    log1p: bool = False
    center: Vector | None = None
    scale: Vector | None = None

    @property
    def is_identity(self) -> bool:
        return not self.log1p and self.center is None and self.scale is None

    def apply(
        self,
        x: NDArray[Any],
        *,
        start: int = 0,
        file: str | None = None,
        columns: Sequence[object] | None = None,
    ) -> NDArray[Any]:
        """Transformed rows (row, column), in float64 unless there is nothing to do."""
        if self.is_identity:
            return x
        values = x.astype(np.float64)
        if self.log1p:
            _refuse_negative(values, start, file, columns)
            values = np.log1p(values)
        if self.center is not None:
            values = values - self.center
        return values if self.scale is None else values / self.scale

    def undo(self, x: NDArray[Any]) -> NDArray[np.float64]:
        """Rows in the units of the source."""
        values = np.asarray(x, dtype=np.float64)
        if self.scale is not None:
            values = values * self.scale
        if self.center is not None:
            values = values + self.center
        return np.expm1(values) if self.log1p else values

    def attributes(self) -> dict[str, bool]:
        """The transform as recorded in the attributes of a store."""
        return {"log1p": self.log1p, "center": self.center is not None, "scale": self.scale is not None}


def fitted(table: Mapping[str, Vector], *, log1p: bool, center: bool, scale: bool) -> Transform:
    """The transform from the column summaries; constant columns are not scaled."""
    varies = (table["max"] > table["min"]) & (table["sd"] > 0)
    spread = np.where(varies, table["sd"], 1.0)
    middle = np.where(table["count"] > 0, table["mean"], 0.0)
    return Transform(log1p, middle if center else None, spread if scale else None)


def transform_of(data: Dataset) -> Transform:
    """The transform of the values of a store when it was made."""
    done = data.attributes.get("transform", {})
    names = {name: f"transform_{name}" for name in ("center", "scale") if done.get(name)}
    held = {name: data.extra(stored) for name, stored in names.items()}  # noqa: S610
    return Transform(bool(done.get("log1p")), held.get("center"), held.get("scale"))


def _refuse_negative(
    x: NDArray[np.float64], start: int, file: str | None, columns: Sequence[object] | None
) -> None:
    with np.errstate(invalid="ignore"):
        negative = x < 0
    if negative.any():
        row, column = divmod(int(np.argmax(negative)), x.shape[1])
        raise InputError(
            "is negative: log1p is for counts, leave it out",
            file=file,
            row=start + row,
            column=column if columns is None else str(columns[column]),
            value=str(x[row, column]),
            kind="log1p",
        )
