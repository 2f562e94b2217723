"""log p(hidden | visible) of rows with weights: in closed form, or from annealed chains.

The law is that of a row under a dictionary taken for its mean, with cells as much noisier as its
variance makes them on average, psi_d = noise_d + E y Sigma_d y'. It is one law for all z, so w can be
integrated out of it whatever z is (annealed.py).
"""

from __future__ import annotations

import numpy as np

from ibpdist.predict.annealed import Law, annealed, patterns, typical
from ibpdist.predict.estimates import Numbers
from ibpdist.predict.predict import Mask, Matrix, Predictor, Vector
from ibpdist.predict.sampled import Sampled, Sampling

__all__ = ["Law", "closed", "sequential"]


def closed(
    of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: Numbers = 0
) -> tuple[Sampled, Sampled]:
    """Rows that have every feature, x ~ N(mu A, A'A + diag(psi)), plug-in and with the variance of A."""
    plug, full = (_closed(Law.of(one), x, visible, hidden) for one in (of.plug_in(), of))
    return plug, full


def sequential(
    of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: Numbers = 0
) -> tuple[Sampled, Sampled]:
    """From chains, plug-in and with the variance of the dictionary; `start` numbers the rows."""
    plug, full = (annealed(one, x, visible, hidden, plan, start) for one in (of.plug_in(), typical(of)))
    return plug, full


def _closed(law: Law, x: Matrix, visible: Mask, hidden: Mask) -> Sampled:
    score, evidence = np.empty((2, len(x)))
    for rows, seen, asked in patterns(visible, hidden):
        both, shown = (_evidence(law, x[rows], cells) for cells in (seen | asked, seen))
        score[rows] = both - shown + law.rest(x[rows], asked)
        evidence[rows] = shown + law.rest(x[rows], seen)
    return Sampled(score, np.zeros(len(x)), evidence=evidence)


def _evidence(law: Law, x: Matrix, seen: Mask) -> Vector:
    """(row) F' M^-1 F / 2 - log |M| / 2 with all features on."""
    lower = np.linalg.cholesky(np.eye(len(law.odds)) + law.gram(seen))
    half = np.linalg.solve(lower, law.pull(x, seen).T)
    made: Vector = 0.5 * (np.square(half).sum(axis=0) - law.tilt @ law.tilt)
    made -= np.log(np.diagonal(lower)).sum()
    return made
