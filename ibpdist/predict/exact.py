"""log p(hidden | visible) by enumeration of every pattern of features.

p(hidden | visible) = sum_z p(z) p(visible, hidden | z) / sum_z p(z) p(visible | z)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logsumexp

from ibpdist.predict.estimates import Numbers, Sampled, Sampling
from ibpdist.predict.kinds import Estimate, kind_of
from ibpdist.predict.predict import Density, Mask, Matrix, Predictor, Vector

_ROWS, _CELLS = 2048, 1 << 22
"""Rows at a time, and numbers in a block of (row, pattern) or (pattern, column)."""


NEGLIGIBLE = 1e-3
"""Expected number of idle features in a row that may be left out; it bounds what they add to its evidence."""


def enumerable(of: Predictor) -> bool:
    """Whether all patterns of features are summed."""
    return kind_of(of).enumerates(of.features)


def expected_idle(of: Predictor) -> float:
    """Expected number of features in a row that are not active in the fit."""
    return float(expit(of.log_odds[~of.active]).sum())


def not_idle(of: Predictor) -> NDArray[np.intp]:
    """Features but for those that are not active, where there are too many to enumerate and these cannot
    matter."""
    if enumerable(of) or expected_idle(of) > NEGLIGIBLE:
        return np.arange(of.features)
    return np.flatnonzero(of.active)


def without_idle(of: Predictor) -> Predictor:
    """The predictor of these features alone."""
    return of if len(keep := not_idle(of)) == of.features else of.select(keep)


def estimate_of(of: Predictor) -> Estimate:
    """How rows are scored: in closed form, by enumeration of all patterns, or from chains."""
    kind = kind_of(of)
    if (closed := kind.closed(of)) is not None:
        return closed
    return enumerated if enumerable(of) else kind.estimate


def enumerated(
    of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: Numbers = 0
) -> tuple[Sampled, Sampled]:
    """Plug-in and with variance, summed over all patterns of features."""
    full = _without_error(*evidences(of, x, visible, hidden))
    if of.certain:
        return full, full
    return _without_error(*evidences(of.plug_in(), x, visible, hidden)), full


def _without_error(joint: Vector, evidence: Vector) -> Sampled:
    return Sampled(joint - evidence, np.zeros(len(joint)), evidence=evidence)


def exact(of: Predictor, x: Matrix, visible: Mask, hidden: Mask) -> Vector:
    """(row,) log p(hidden cells | visible cells); zero for a row that hides nothing.

    `x` (row, column) may hold anything in cells that are neither visible nor hidden.
    """
    joint, evidence = evidences(of, x, visible, hidden)
    made: Vector = joint - evidence
    return made


def evidences(of: Predictor, x: Matrix, visible: Mask, hidden: Mask) -> tuple[Vector, Vector]:
    """(row,) log p(visible and hidden cells), and log p(visible cells)."""
    law = kind_of(of).density(of)
    cuts = [slice(i, i + _ROWS) for i in range(0, len(x), _ROWS)]
    parts = [_rows(of, law, x[cut], visible[cut], hidden[cut]) for cut in cuts]
    joint, evidence = np.concatenate(parts, axis=1) if parts else np.empty((2, 0))
    return joint, evidence


def patterns(features: int, start: int, stop: int) -> Matrix:
    """(pattern, feature) the binary digits of `start .. stop`."""
    digits = np.arange(start, stop)[:, None] >> np.arange(features)
    return (digits & 1).astype(float)


def _rows(of: Predictor, law: Density, x: Matrix, visible: Mask, hidden: Mask) -> tuple[Vector, Vector]:
    both = visible | hidden
    seen, all_cells = _common(visible), _common(both)
    evidence = joint = np.full(len(x), -np.inf)
    step = max(1, min(_CELLS // max(len(x), 1), _CELLS // len(of.noise)))
    for start in range(0, 2**of.features, step):
        z = patterns(of.features, start, min(start + step, 2**of.features))
        prior = of.log_prior(z)
        evidence = np.logaddexp(evidence, _sum(prior + law.grid(np.where(visible, x, 0.0), seen, z)))
        joint = np.logaddexp(joint, _sum(prior + law.grid(np.where(both, x, 0.0), all_cells, z)))
    return np.where(hidden.any(1), joint, evidence), evidence


def _common(cells: Mask) -> Matrix:
    """One row of cells when all rows have the same."""
    return (cells[:1] if (cells == cells[:1]).all() else cells).astype(float)


def _sum(terms: Matrix) -> Vector:
    made: Vector = logsumexp(terms, axis=1)
    return made
