"""What algorithms for counts share: how they look at data and begin, and what results tell of features."""

from __future__ import annotations

from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Array, Named
from ibpdist.data._base import Chunk
from ibpdist.data.entries import Entries
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.coordinate import ACTIVE
from ibpdist.inference.counts.documents import BeginWords
from ibpdist.model.observations._base import Survey
from ibpdist.model.observations.facts import counts_survey
from ibpdist.model.priors._base import Prior


class OfFeatures(Protocol):
    """Parameters with the names of the features, how many rows have each, and their prior."""

    @property
    def prior(self) -> Any: ...
    @property
    def ids(self) -> Array: ...
    @property
    def on(self) -> Array: ...
    @property
    def rows(self) -> Array: ...


class CountSteps:
    """Steps over rows of counts. Sums are in units that no update changes, so they can be kept and added."""

    features: int
    begin: BeginWords

    def seen(self, chunk: Chunk) -> Entries:
        """The tokens of a chunk that the algorithm sees; refuses what is no count."""
        return chunk.entries

    def summarise(self, chunk: Chunk) -> Survey:
        """Facts of the data; refuses what is no count."""
        _ = chunk.entries
        return counts_survey(chunk)

    def ask(self, survey: Survey, known: Known, draws: Draws) -> Any | None:
        return None if known else self.begin.ask(survey, self.features, draws)

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return self.begin.look(chunk.start, self.seen(chunk), chunk.columns, question, draws)

    def rescale_old_sums(self, params: Any, sums: Any) -> Any:
        return sums

    def additive(self, params: Any) -> bool:
        return True

    def handover_params(self, params: Any) -> Any:
        return params

    def row_inference(self) -> Self:
        return self


def order_of(params: OfFeatures) -> NDArray[np.intp]:
    """Features by falling prevalence, ties in their present order."""
    return np.argsort(-params.on, kind="stable")


def described(params: OfFeatures, prior: Prior, odds: NDArray[np.float64]) -> Named:
    """What results tell of features and their prior; `odds` (feature) are the log odds in use."""
    order = order_of(params)
    return {
        "id": (("feature",), params.ids[order]),
        "prevalence": (("feature",), params.on[order] / max(float(params.rows), 1.0)),
        "active": (("feature",), params.on[order] > ACTIVE),
        "log_odds": (("feature",), odds[order]),
        "chance": (("feature",), prior.expected(params.prior)[order]),
        **prior.describe(params.prior, order),
    }
