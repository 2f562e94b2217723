"""Questions that starts ask of the data, and a chunk's part of the answers."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Array, dims, struct
from ibpdist.base.threads import one_thread
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Local, Params, Steps, Sums
from ibpdist.model.observations._base import Survey

Float = NDArray[np.float64]
WIDE = 2000
"""Columns up to which the whole covariance is made."""


@struct("covariance-question", since=1)
class CovarianceQuestion:
    """The covariance of the rows in units `unit`, times `probe`; the whole of it when that is empty."""

    centre: Array = dims("column")
    unit: Array = dims("column")
    probe: Array = dims("column component")


@struct
class CovarianceAnswer:
    """Sum over rows of (x - centre)' (x - centre) times the probe."""

    product: Array = dims("column component")


@struct("sample-question", since=1)
class SampleQuestion:
    """A share of the rows, in units `unit`, on a `basis`; as they are when that is empty.

    `noise` and `signal` are what the asker knows of the components; `capped` is 1 when there are more
    than it could take.
    """

    centre: Array = dims("column")
    unit: Array = dims("column")
    basis: Array = dims("column component")
    noise: Array = dims()
    signal: Array = dims("source")
    capped: Array = dims()
    share: Array = dims()


@struct
class SampleAnswer:
    rows: Array = dims("sampled component", reduce="concat", along="sampled")


@struct("rows-question", since=1)
class RowsQuestion:
    """A share of the rows, as they are."""

    share: Array = dims()


@struct
class RowsAnswer:
    """Rows, and which of their cells are observed."""

    x: Array = dims("sampled column", reduce="concat", along="sampled")
    observed: Array = dims("sampled column", reduce="concat", along="sampled")

    def chunk(self) -> Chunk:
        """The rows as data of their own."""
        complete = bool(self.observed.all())
        return Chunk(0, 0, np.ascontiguousarray(self.x), None if complete else self.observed)


def answer(chunk: Chunk, question: Any, draws: Draws) -> CovarianceAnswer | SampleAnswer | RowsAnswer:
    """Missing cells are taken at the centre."""
    if isinstance(question, RowsQuestion):
        some = draws.uniform("sample", chunk.start, chunk.rows, 1)[0] < question.share
        seen = np.ones(chunk.x.shape, np.bool_) if chunk.observed is None else chunk.observed
        return RowsAnswer(chunk.x[some], seen[some])
    x = chunk.x - question.centre
    if chunk.observed is not None:
        x *= chunk.observed
    x *= question.unit
    if isinstance(question, SampleQuestion):
        x = x[draws.uniform("sample", chunk.start, chunk.rows, 1)[0] < question.share]
        return SampleAnswer(x @ question.basis if question.basis.size else x)
    return CovarianceAnswer(x.T @ (x @ question.probe if question.probe.size else x))


def mean(survey: Survey) -> Float:
    """(column) mean of the observed cells."""
    found: Float = survey.total / np.maximum(survey.cells, 1.0)
    return found


def covariance(survey: Survey) -> CovarianceQuestion:
    """The whole covariance."""
    columns = survey.cells.size
    return CovarianceQuestion(mean(survey), np.ones(columns), np.zeros((columns, 0)))


def sample(survey: Survey, rows: int) -> SampleQuestion:
    """A question for about `rows` whole rows."""
    columns = survey.cells.size
    share = np.asarray(min(1.0, rows / max(float(survey.rows), 1.0)))
    return SampleQuestion(
        centre=mean(survey),
        unit=np.ones(columns),
        basis=np.zeros((columns, 0)),
        noise=np.zeros(()),
        signal=np.zeros(0),
        capped=np.zeros(()),
        share=share,
    )


def rows_question(survey: Survey, rows: int) -> RowsQuestion:
    """A question for about this many rows."""
    return RowsQuestion(np.asarray(min(1.0, rows / max(float(survey.rows), 1.0))))


def initial(
    algorithm: Steps[Params, Local, Sums],
    survey: Any,
    draws: Draws,
    answer: Callable[[int, Any], Any],
    answered: Callable[[], None] = lambda: None,
) -> Params:
    """Initial parameters; `answer` gets the questions of the algorithm as steps -1, -2, ..., and `answered`
    is called when there is no other one and parameters are made of the answers."""
    known: list[tuple[Any, Any]] = []
    for step in count(1):
        with one_thread():
            question = algorithm.ask(survey, known, draws)
            if question is None:
                if known:
                    answered()
                return algorithm.init(survey, draws, known)
        known.append((question, answer(-step, question)))
    raise AssertionError("questions end")
