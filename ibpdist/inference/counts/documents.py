"""Where a fit of counts begins: with the words of random documents, or with random words (counts.md 7)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Array, dims, struct
from ibpdist.data.entries import Entries
from ibpdist.inference._base import Known
from ibpdist.kernels.token_split import hide_tokens
from ibpdist.model.observations._base import Survey

SHARE = 5
"""A fit begins with one in so many documents, or with one for each feature if that is more."""


class BeginWords(Protocol):
    """A frozen dataclass; what it asks of the documents, and the tokens of features that it makes of that."""

    name: ClassVar[str]

    def ask(self, survey: Survey, features: int, draws: Draws) -> Any | None: ...

    def look(self, start: int, entries: Entries, columns: int, question: Any, draws: Draws) -> Any: ...

    def words(self, survey: Survey, features: int, known: Known, draws: Draws) -> NDArray[np.float64]:
        """(column, feature) tokens."""
        ...


@struct("documents-question", since=1)
class DocumentsQuestion:
    """For half of the tokens of documents: `rows` (place), and of which of `of` features each is a part."""

    rows: Array = dims("place")
    features: Array = dims("place")
    of: Array = dims()


@struct
class Words:
    """Tokens of the documents by feature."""

    y: Array = dims("column feature")


@dataclass(frozen=True)
class Documents:
    """Each feature begins with half of the tokens of some documents, none of which is used twice before all
    are. Features that begin alike never part, so two that share a document have each a half of its own."""

    name: ClassVar[str] = "documents"

    def ask(self, survey: Survey, features: int, draws: Draws) -> DocumentsQuestion:
        rows, rng = int(survey.rows), draws.generator("documents")
        each = max(1, rows // (SHARE * features))
        turns = -(-features * each // rows)
        found = np.concatenate([rng.permutation(rows) for _ in range(turns)])[: features * each]
        return DocumentsQuestion(found, np.repeat(np.arange(features), each), np.asarray(features))

    def look(
        self, start: int, entries: Entries, columns: int, question: DocumentsQuestion, draws: Draws
    ) -> Words:
        y = np.zeros((columns, int(question.of)))
        here = (question.rows >= start) & (question.rows < start + entries.rows)
        for place in np.flatnonzero(here):
            row = int(question.rows[place]) - start
            part = slice(entries.starts[row], entries.starts[row + 1])
            counts = entries.counts[part]
            one, wanted = np.array([0, counts.size]), np.array([(counts.sum() + 1) // 2])
            taken = hide_tokens(np.array([place]), one, counts, wanted, draws.key("halves of documents"))
            y[entries.columns[part], int(question.features[place])] += taken
        return Words(y)

    def words(self, survey: Survey, features: int, known: Known, draws: Draws) -> NDArray[np.float64]:
        return np.asarray(known[0][1].y)


@dataclass(frozen=True)
class RandomWords:
    """All tokens of a word are divided among the features at random."""

    name: ClassVar[str] = "random"

    def ask(self, survey: Survey, features: int, draws: Draws) -> None:
        return None

    def look(self, start: int, entries: Entries, columns: int, question: Any, draws: Draws) -> Any:
        raise AssertionError("a random start asks nothing")

    def words(self, survey: Survey, features: int, known: Known, draws: Draws) -> NDArray[np.float64]:
        shares = draws.generator("words").dirichlet(np.ones(features), survey.total.size)
        return np.asarray(survey.total[:, None] * shares)
