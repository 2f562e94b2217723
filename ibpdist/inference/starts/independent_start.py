"""The start of independent components: principal axes turned to where their scores are least normal.

Weights that are often near zero and sometimes large, and that rows may lack, have scores with large fourth
moments. The axes that stand out of the noise are turned to where these are largest, and to where the
negentropy is; a sample of the rows is fitted from either, and the higher objective goes on (ica.md 4). The
other axes follow as they are, since features that are not there at the start do not come back.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import replace
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.params import AnyModelParams
from ibpdist.inference.starts.best import TRIES, Best, Trial, short_fits, with_finite_prior
from ibpdist.inference.starts.factors import Axes
from ibpdist.inference.starts.independent import (
    ROWS_PER_COMPONENT,
    above_edge,
    independent,
    largest_fourth_moments,
)
from ibpdist.inference.starts.start_questions import RowsAnswer
from ibpdist.model.model import AnyModel
from ibpdist.model.observations._base import Survey
from ibpdist.model.observations.gaussian_params import from_scores

Float = NDArray[np.float64]


@dataclass(frozen=True)
class Independent:
    """Begins with as many features as are provided and the data can hold. It asks what `looks` asks."""

    looks: Best = field(default_factory=Best)

    name: ClassVar[str] = "independent"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return Best.rows_held(columns, features)

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return self.looks.ask(model, features, survey, known, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.looks.look(chunk, question, draws)

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        *looks, (_, sample) = known
        axes = self.looks.principal.axes(features, survey, looks)
        trial = Trial(with_finite_prior(model), features, sample.chunk(), draws)
        fits = []
        for turn in turns(axes, sample, survey, draws):
            found, _ = axes.turned(turn, np.zeros(len(turn)))
            begun = trial.begun(found, axes.origin)
            seen = from_scores(begun.observation, float(begun.rows))
            fits.append(trial.cooled(replace(begun, observation=seen), self.looks.passes))
        best = max(fits, key=lambda one: one.objective)
        cells = max(float(np.count_nonzero(sample.observed)), 1.0)
        return replace(trial.whole(model, best.params, survey), starts=short_fits(fits, cells))


def turns(axes: Axes, sample: RowsAnswer, survey: Survey, draws: Draws) -> Iterator[Float]:
    """Rotations (component, component_) of the axes that stand out of noise that is the same in all columns;
    one that changes nothing where rows are too few."""
    columns, rows = len(axes.variances), len(sample.x)
    count = above_edge(axes.known, float(axes.variances.sum()), int(survey.rows), columns)
    count = min(count, len(axes.values))
    if count < 2 or rows < ROWS_PER_COMPONENT * count:
        yield np.eye(count)
        return
    scores, rng = axes.scores(sample.x, sample.observed, count), draws.generator("independent")
    yield largest_fourth_moments(scores, rng, TRIES)
    yield independent(scores, rng, TRIES).turn
