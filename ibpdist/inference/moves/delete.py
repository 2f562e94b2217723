"""Deleting features: exact from the sums, all of them scored at once.

With q(A) at its optimum, leaving out feature l changes the part of the bound that holds the
dictionary, at fixed variances, by

    -(D/2) (log (M^-1)_ll + log c) - |phi_l|^2 / (2 noise (M^-1)_ll),   M = G + c I, c = noise / scale,

which for any noise, scales and groups of columns is, with Sigma_d = noise_d M_d^-1 (linear-gaussian.md 6),

    -1/2 sum_d [ log (Sigma_d,ll / scale_l) + phi_ld^2 / Sigma_d,ll ].

The factorised family loses the same squares and the logarithms of its own variances. Whatever
the formula leaves out (variances and sticks re-solved) is in the full score of the best three.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.inference.ascent.coordinate import Coordinate
from ibpdist.inference.ascent.params import (
    GaussianModel,
    GaussianModelParams,
    GaussianModelSums,
    weight_sums,
)
from ibpdist.inference.moves._base import LEAST_GAIN, Proposal, Situation, exact
from ibpdist.inference.moves.relabel import Edit, Outcome, evaluate
from ibpdist.model.observations import dictionary, gaussian_params
from ibpdist.model.observations.rotation import Family
from ibpdist.model.priors._base import PriorSums
from ibpdist.model.weights._base import slab_at

Float = NDArray[np.float64]

TRIED = 3
"""Deletions that get a full score in a round."""
DOUBT = 100.0
"""Nats that variances and sticks can win back once a feature is gone."""


def propose(situation: Situation, rng: np.random.Generator) -> Proposal | None:
    """Delete features one by one as long as the objective rises; at least one feature stays."""
    return exact("delete", situation, greedy(situation))


def greedy(situation: Situation) -> Outcome | None:
    """The best of three deletions, again and again; None when no first one raises the objective."""
    model, best, reached = situation.model, None, situation.reached
    params, sums = situation.params, situation.sums
    while len(params.ids) > 1:
        found = _best(model, params, sums)
        if found is None or not found.objective > reached + LEAST_GAIN:
            break
        best, params, sums, reached = found, found.params, found.sums, found.objective
    return best


def _best(model: GaussianModel, params: GaussianModelParams, sums: GaussianModelSums) -> Outcome | None:
    """The best deletion by its full score, of the most promising; None where none promises anything."""
    promised = gains(model, params, sums)
    ranked = [int(place) for place in np.argsort(-promised, kind="stable")[:TRIED]]
    tried = [drop(model, params, sums, place) for place in ranked if promised[place] > -DOUBT]
    return max(tried, key=lambda outcome: outcome.objective, default=None)


def drop(model: GaussianModel, params: GaussianModelParams, sums: GaussianModelSums, place: int) -> Outcome:
    """Without the feature at this place; exact for all weights and missing cells."""
    edit = Edit.keep(params.ids, np.delete(np.arange(len(params.ids)), place))
    return evaluate(model, edit, params, sums, np.zeros_like(params.observation.noise))


def gains(model: GaussianModel, params: GaussianModelParams, sums: GaussianModelSums) -> Float:
    """(feature) what the objective gains by each deletion, variances and remaining sticks as they are."""
    sums = Coordinate(model, len(params.ids)).rescale_old_sums(params, sums)
    entries, rows = sums.entries, sums.observation.rows
    found = dictionary_gains(params, sums) - entries.entropy
    before = _total(model.prior.score(params.prior, PriorSums(on=entries.on, rows=rows)))
    before += _total(model.weights.score(weight_sums(entries), params.weights))
    for place in range(len(found)):
        keep = np.delete(np.arange(len(found)), place)
        fewer = PriorSums(on=entries.on[keep], rows=rows)
        after = _total(model.prior.score(model.prior.select(params.prior, keep), fewer))
        left = weight_sums(entries).take(keep)
        after += _total(model.weights.score(left, slab_at(params.weights, keep)))
        found[place] += after - before
    return found


def dictionary_gains(params: GaussianModelParams, sums: GaussianModelSums) -> Float:
    """(feature) change of the likelihood and dictionary terms by each deletion, variances fixed.

    Sums are in the units of the parameters.
    """
    observed = params.observation
    own = gaussian_params.variance(observed)
    joint = dictionary.solve(observed, dictionary.rotations(observed, sums.observation, Family.STRUCTURED))
    squares = joint.mean**2 / gaussian_params.variance(joint)
    found: Float = -0.5 * (np.log(own / observed.scale[:, None]) + squares).sum(axis=1)
    return found


def _total(terms: dict[str, float]) -> float:
    return sum(terms.values())
