"""log p(hidden | visible) of rows with unit weights, from annealed chains over z.

The plug-in score is that of annealed.py under the mean of the dictionary. With the variance of the dictionary
cells have a variance that depends on z. Chains move under a law where it does not, the typical one, and
every chain counts with the mean over its kept draws, at the end of either leg, of

    r(z) = p(cells | z) / p_typical(cells | z),

so that E W r is the evidence of the cells under the law with variance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ibpdist.predict.annealed import Lift, annealed, typical
from ibpdist.predict.estimates import Numbers, Sampled, Sampling, Shared, together
from ibpdist.predict.kinds import kind_of
from ibpdist.predict.predict import Mask, Matrix, Predictor, Vector

__all__ = ["Sampled", "Sampling", "Shared", "sampled", "together"]


def sampled(
    of: Predictor, x: Matrix, visible: Mask, hidden: Mask, plan: Sampling, start: Numbers = 0
) -> tuple[Sampled, Sampled]:
    """Plug-in and with the variance of the dictionary; `start` numbers the rows."""
    plug = annealed(of.plug_in(), x, visible, hidden, plan, start)
    if of.certain:
        return plug, plug
    return plug, annealed(typical(of), x, visible, hidden, plan, start, _lift(of, x, visible, hidden))


def _lift(of: Predictor, x: Matrix, visible: Mask, hidden: Mask) -> Lift:
    """log r(z) of the visible cells (leg 0) and of all cells (leg 1)."""
    law = kind_of(of).density
    full, chains = law(of), law(typical(of))
    cells = (visible, visible | hidden)

    def log_r(z: Matrix, rows: NDArray[np.intp], leg: int) -> Vector:
        seen = cells[leg][rows]
        given = np.where(seen, x[rows], 0.0), seen.astype(float), z
        return full.each(*given) - chains.each(*given)

    return log_r
