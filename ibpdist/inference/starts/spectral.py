"""The spectral start: the features as two-valued sources in the row space of the data.

Given the sticks, the columns of Z are independent, so X = Z A + noise is independent component
analysis with sources of two values (starts-and-moves.md 2). The covariance gives the row space, the noise
and the number of features; a sample of rows projected on that space is separated (starts/) and
fitted there; its dictionary, taken back to all columns, is where the fit of all rows begins.

    look 1      the covariance, or its products with random columns when rows are wide (twice)
    look 2      a sample of rows, projected on the row space and the mean
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ibpdist.base.randomness import Draws
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Known
from ibpdist.inference.ascent.params import AnyModelParams, ModelParams
from ibpdist.inference.starts.begin import beginnings, projected
from ibpdist.inference.starts.rank import Spectrum, leading_spectrum
from ibpdist.inference.starts.sources import candidates
from ibpdist.inference.starts.start_questions import WIDE, CovarianceQuestion, SampleQuestion, answer, mean
from ibpdist.inference.starts.subsample_fit import SubsampleFit
from ibpdist.model.model import AnyModel, Model
from ibpdist.model.observations._base import Params, Sums, Survey

Float = NDArray[np.float64]

SAMPLE = 20_000
SPARE, PROBES = 10, 512
"""Random columns beyond twice the truncation, and the most there are."""
SCALINGS = 5
LEAST = 1e-3
"""Share of a column's variance that is noise at the least."""
SMALL = 1e-12
"""Share of the largest eigenvalue below which one is nothing."""
RIDGE = 0.02
"""Ridge of the regression of columns on each other, as a share of columns over rows."""


@dataclass(frozen=True)
class Spectral:
    """Begins with the features that the spectrum shows, at most the truncation."""

    name: ClassVar[str] = "spectral"

    @staticmethod
    def rows_held(columns: int, features: int) -> int:
        return 0

    def ask(self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws) -> Any | None:
        centre, columns = mean(survey), survey.cells.size
        wide = columns > WIDE
        if len(known) < 1 + wide:
            probe = self._probe(features, columns, known, draws) if wide else np.zeros((columns, 0))
            unit = (
                1 / np.sqrt(spread(survey)) if wide and projected(model).noise_by_column else np.ones(columns)
            )
            return CovarianceQuestion(centre, unit, probe)
        if len(known) == 1 + wide:
            return self._sample(model, features, survey, known)
        return None

    def look(self, chunk: Chunk, question: Any, draws: Draws) -> Any:
        return answer(chunk, question, draws)

    def init(
        self, model: AnyModel, features: int, survey: Survey, known: Known, draws: Draws
    ) -> AnyModelParams:
        question, found = known[-1]
        offset = (question.centre * question.unit) @ question.basis
        x = found.rows + offset
        rng, size = draws.generator("spectral"), len(question.signal)
        y = (x[:, :size] / np.sqrt(question.signal)).T
        coarse = SubsampleFit(model, features, x, rng)
        room = size if question.capped else size + 1
        columns = [found.z for found in candidates(y, question.noise / question.signal, rng, room)]
        fits = [coarse.fit(z) for z in columns or [np.zeros((0, len(x)))]]
        best = max(fits, key=lambda fit: fit.objective)
        return whole(model, features, survey, question, best.params, draws)

    def _probe(self, features: int, columns: int, known: Known, draws: Draws) -> Float:
        """Random columns, then the range that their products with the covariance span."""
        if not known:
            width = min(columns, 2 * features + SPARE, PROBES)
            return draws.generator("probe").standard_normal((columns, width))
        return np.asarray(np.linalg.qr(known[0][1].product)[0])

    def _sample(
        self, model: Model[Params, Sums], features: int, survey: Survey, known: Known
    ) -> SampleQuestion:
        question, found = known[-1]
        rows = int(survey.rows)
        covariance = found.product / max(rows - 1, 1)
        law = Covariance(covariance, question.probe, question.unit, spread(survey))
        unit, spectrum, vectors = space(law, projected(model).noise_by_column, features, rows)
        outside = mean(survey) * unit
        outside = outside - vectors @ (vectors.T @ outside)
        size = np.linalg.norm(outside)
        extra = [outside / size] if size > 1e-12 * np.sqrt(spectrum.noise * unit.size) else []
        return SampleQuestion(
            centre=question.centre,
            unit=unit,
            basis=np.column_stack([vectors, *extra]) if extra or vectors.size else np.eye(unit.size)[:, :1],
            noise=np.asarray(spectrum.noise),
            signal=spectrum.signal,
            capped=np.asarray(int(spectrum.capped)),
            share=np.asarray(min(1.0, SAMPLE / max(rows, 1))),
        )


def spread(survey: Survey) -> Float:
    """(column) variances about the mean, as if missing cells were at it; at least a share of the typical."""
    about = survey.squares - survey.cells * mean(survey) ** 2
    return at_least(about / max(float(survey.rows) - 1, 1.0))


@dataclass(frozen=True)
class Covariance:
    """What is known of a covariance C: its `product` with a `probe` in units `unit`, the whole of it where
    the probe is empty, and the `variance` (column) in equal units."""

    product: Float
    probe: Float
    unit: Float
    variance: Float

    @cached_property
    def factor(self) -> Float:
        """(column, component) F with F F' = C Q (Q'C Q)^-1 Q'C, what the products with Q tell of C: what
        another pass over the data would give, without it."""
        square = self.probe.T @ self.product
        values, turn = np.linalg.eigh((square + square.T) / 2)
        some = values > SMALL * max(values[-1], 0.0)
        made: Float = self.product @ (turn[:, some] / np.sqrt(values[some])) / self.unit[:, None]
        return made

    def leading(self, unit: Float) -> tuple[Float, Float, float]:
        """Eigenvalues, falling, eigenvectors and trace, with columns in units `unit`."""
        if self.probe.size:
            vectors, size, _ = np.linalg.svd(self.factor * unit[:, None], full_matrices=False)
            return size**2, vectors, float((self.variance * unit**2).sum())
        scaled = self.product * np.outer(unit, unit)
        values, vectors = np.linalg.eigh(scaled)
        return values[::-1], vectors[:, ::-1], float(np.trace(scaled))

    def first_noise(self, rows: int) -> Float:
        """(column) a first guess of the noise: what other columns leave, or else the variance."""
        return self.variance if self.probe.size else regressed(self.product, rows)


def space(law: Covariance, own: bool, features: int, rows: int) -> tuple[Float, Spectrum, Float]:
    """Units of the columns in which their noise is the same, the spectrum, and the basis of the row space.

    Columns with a noise of their own are scaled by what the row space leaves of their variance.
    """
    unit = 1 / np.sqrt(law.first_noise(rows)) if own else np.ones(len(law.variance))
    for _ in range(SCALINGS if own else 1):
        values, vectors, trace = law.leading(unit)
        rank = leading_spectrum(values, trace, rows, unit.size, features)
        basis, whole = vectors[:, : rank.rank], law.variance * unit**2
        if own:
            left = np.maximum(whole - np.square(basis) @ rank.signal, LEAST * whole)
            unit = unit / np.sqrt(left / np.median(left))
    return unit, rank, basis


def regressed(covariance: Float, rows: int) -> Float:
    """(column) what all the others leave of each column's variance, in units of the median.

    A first guess of the noise: from equal units, the noisiest columns would pass for signal, and the
    noise of these for nothing.
    """
    variance = at_least(np.diagonal(covariance))
    alike = covariance / np.sqrt(np.outer(variance, variance))
    ridge = RIDGE * max(len(alike) / max(rows, 1), LEAST)
    left = 1 / np.diagonal(np.linalg.inv(alike + ridge * np.eye(len(alike)))) - ridge
    left = variance * np.maximum(left, LEAST)
    return np.asarray(left / np.median(left))


def at_least(variance: Float) -> Float:
    """(column) variances, at least a share of the typical one; ones if there is none."""
    typical = float(variance.mean())
    return np.maximum(variance, LEAST * typical) if typical > 0 else np.ones_like(variance)


def whole(
    model: Model[Params, Sums],
    features: int,
    survey: Survey,
    question: SampleQuestion,
    found: ModelParams[Params],
    draws: Draws,
) -> ModelParams[Params]:
    """Parameters for all rows and columns from those of the sample in the row space."""
    grown, rng = float(survey.rows) / max(float(found.rows), 1.0), draws.generator("init")
    observed = projected(model).lifted(found.observation, survey, question.basis, question.unit, grown, rng)
    return ModelParams(observation=observed, **beginnings(model, found.on * grown, survey, rng, features))
