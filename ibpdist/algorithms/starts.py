"""Where a fit begins: random parameters, or parameters made of a look at the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.algorithms._base import Known
from ibpdist.algorithms.params import ModelParams, orphans
from ibpdist.data._base import Chunk
from ibpdist.draws import Draws
from ibpdist.model import Model
from ibpdist.observations._base import Survey
from ibpdist.priors._base import PriorSums


class Begin(Protocol):
    """A frozen dataclass. Questions are records; the answers of chunks are reduced like sums."""

    name: ClassVar[str]

    def ask(self, model: Model, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None: ...

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any: ...

    def init(
        self, model: Model, features: int, survey: Survey, known: Known, draws: Draws
    ) -> ModelParams: ...


@dataclass(frozen=True)
class Random:
    """A random dictionary; prevalences as if every feature were on in half of the rows."""

    name: ClassVar[str] = "random"

    def ask(self, model: Model, features: int, survey: Survey, known: Known, draws: Draws) -> None:
        return None

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        raise AssertionError("a random start asks nothing")

    def init(self, model: Model, features: int, survey: Survey, known: Known, draws: Draws) -> ModelParams:
        rng = draws.generator("init")
        return ModelParams(
            observation=model.observation.init(survey, features, rng),
            **beginnings(model, np.full(features, 0.5 * float(survey.rows)), survey, rng),
        )


def beginnings(
    model: Model,
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
        **orphans(features),
        "on": on,
        "rows": survey.rows,
    }
