"""The principal start: all features, as the leading directions of the data turned to be simple.

For features with weights (starts-and-moves.md 8). The second moments of the data are asked for, about zero
or, where there is an intercept, about the mean; when rows are wide, their products with a few columns:
random ones, then twice the range of the products.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.params import AnyModelParams, ModelParams
from ibpdist.inference.starts.begin import beginnings, projected
from ibpdist.inference.starts.factors import Axes, leading, most
from ibpdist.inference.starts.start_questions import CovarianceQuestion, answer
from ibpdist.model.model import AnyModel
from ibpdist.model.observations._base import Survey

Float = NDArray[np.float64]

SPARE, LOOKS = 10, 3
"""Columns of a probe beyond the features, and how often products with it are asked for."""


@dataclass(frozen=True)
class Principal:
    """Begins with as many features as are provided and the data can hold."""

    name: ClassVar[str] = "principal"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return 0

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None:
        columns = survey.cells.size
        width = most(int(survey.rows), columns, features) + SPARE
        narrow = columns <= 2 * width
        if len(known) == (1 if narrow else LOOKS):
            return None
        probe = np.zeros((columns, 0)) if narrow else self._probe(columns, width, known, draws)
        observation = projected(model)
        return CovarianceQuestion(observation.origin(survey), 1 / observation.units(survey), probe)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return answer(chunk, question, draws)

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        axes, rng = self.axes(features, survey, known), draws.generator("init")
        found, count = axes.simple(), len(axes.values)
        observed = projected(model).initial(
            model.observation.init(survey, count, rng),
            found.mean / axes.unit,
            found.noise / axes.unit**2,
        )
        on = np.full(count, max(float(survey.rows), 1.0))
        return ModelParams(observation=observed, **beginnings(model, on, survey, rng, features))

    def axes(self, features: int, survey: Survey, known: Known) -> Axes:
        """The leading principal axes, from the answers to all questions."""
        question, answered = known[-1]
        rows, columns = max(float(survey.rows), 1.0), survey.cells.size
        probe = question.probe if question.probe.size else np.eye(columns)
        values, vectors = leading(answered.product / rows, probe, len(probe.T))
        squares = survey.squares - survey.cells * question.centre**2
        variances = squares / rows * question.unit**2
        count = most(int(survey.rows), columns, features)
        return Axes(values[:count], vectors[:, :count], variances, question.unit, question.centre, values)

    def _probe(self, columns: int, width: int, known: Known, draws: Draws) -> Float:
        """Orthonormal columns that span random directions, or the products with those before."""
        start = known[-1][1].product if known else draws.generator("probe").standard_normal((columns, width))
        return np.asarray(np.linalg.qr(start)[0])
