"""Where a fit begins: random parameters, or parameters made of a look at the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.params import AnyModelParams, ModelParams, without_parents
from ibpdist.inference.starts import start_questions
from ibpdist.model.model import AnyModel, Model
from ibpdist.model.observations._base import Params, Sums, Survey
from ibpdist.model.observations.capabilities import Projected, require
from ibpdist.model.priors._base import PriorSums

SPARE = 4
"""Rows sampled for each feature."""


class Begin(Protocol):
    """A frozen dataclass. Questions are records; the answers of chunks are reduced like sums."""

    name: ClassVar[str]

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        """About how many whole rows are in memory at once."""
        ...

    def ask(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> Any | None: ...

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any: ...

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams: ...


@dataclass(frozen=True)
class Random:
    """A random dictionary; prevalences as if every feature were on in half of the rows."""

    name: ClassVar[str] = "random"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return 0

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> None:
        return None

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        raise AssertionError("a random start asks nothing")

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        rng = draws.generator("init")
        return ModelParams(
            observation=model.observation.init(survey, features, rng),
            **beginnings(model, np.full(features, 0.5 * float(survey.rows)), survey, rng),
        )


@dataclass(frozen=True)
class Rows:
    """A dictionary of random rows, taken from the mean."""

    name: ClassVar[str] = "rows"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return SPARE * features

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return None if known else start_questions.sample(survey, SPARE * features)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return start_questions.answer(chunk, question, draws)

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        found, rng = known[0][1].rows, draws.generator("rows")
        size = min(features, len(found))
        return given(model, found[rng.choice(len(found), size, replace=False)], features, survey, draws)


@dataclass(frozen=True)
class TruncatedSVD:
    """The leading principal components, as long as their standard deviations."""

    name: ClassVar[str] = "svd"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return 0

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None:
        if survey.cells.size > start_questions.WIDE:
            raise UsageError(
                f"start: svd takes at most {start_questions.WIDE} columns; use spectral or random"
            )
        return None if known else start_questions.covariance(survey)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return start_questions.answer(chunk, question, draws)

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        values, vectors = np.linalg.eigh(known[0][1].product / max(float(survey.rows) - 1, 1.0))
        size = min(features, len(values))
        lengths = np.sqrt(np.maximum(values[::-1][:size], 0.0))
        return given(model, lengths[:, None] * vectors[:, ::-1][:, :size].T, features, survey, draws)


def projected(model: Model[Params, Sums]) -> Projected[Params]:
    """The observation of a start that looks for features in the data."""
    return require(model.observation, Projected, "a start other than random")


def given(
    model: Model[Params, Sums], dictionary: NDArray[np.float64], features: int, survey: Survey, draws: Draws
) -> ModelParams[Params]:
    """Begins with a dictionary (feature, column), every feature on in half of the rows."""
    rng, size = draws.generator("init"), len(dictionary)
    observed = projected(model).initial(model.observation.init(survey, size, rng), dictionary)
    half = np.full(size, 0.5 * float(survey.rows))
    return ModelParams(observation=observed, **beginnings(model, half, survey, rng, features))


def beginnings(
    model: Model[Params, Sums],
    on: NDArray[np.float64],
    survey: Survey,
    rng: np.random.Generator,
    most: int | None = None,
) -> dict[str, Any]:
    """What parameters hold beside the observation's, for new features with these counts (feature), of
    which there may be `most`."""
    features = len(on)
    prior = model.prior.init(most or features, int(survey.rows))
    counts = PriorSums(on=on, rows=survey.rows)
    return {
        "prior": model.prior.update(model.prior.resized(prior, features), counts, model.rules.prior, rng),
        "ids": np.arange(features),
        **without_parents(features),
        "on": on,
        "rows": survey.rows,
        "weights": model.weights.slab(features),
    }
