"""The anchored sampler is exact: Geweke joint tests, and samplers that are wrong on purpose.

A wrong one must be caught at the length at which the right one passes.
"""

import numpy as np
import pytest

from tests.support.anchored_cases import anchored, transition
from tests.support.joint_infinite import Infinite, same_priors, scores, worst

PASS, CAUGHT = 4.0, 6.0
CHAINS, SWEEPS = 3000, 6


def scattered():
    """Every column has its own pattern, one row sees nothing."""
    mask = np.ones((5, 3), bool)
    mask[1::2, 2], mask[0, 0], mask[4] = False, False, False
    return mask


FIXED = Infinite(noise=0.5, scale=1.5, mass=1.0)
SYSTEMS = {
    "lg fixed": FIXED,
    "fa fixed": Infinite("normal", 0.5, 1.5, 1.0),
    "lg": Infinite(),
    "fa": Infinite("normal"),
    "lg column noise": Infinite(noise="column"),
    "fa column noise": Infinite("normal", "column"),
    "lg masked": Infinite(mask=scattered()),
    "fa masked column noise": Infinite("normal", "column", mask=scattered()),
}


def run(joint, monkeypatch, chains=CHAINS, sweeps=SWEEPS, **settings):
    same_priors(joint, monkeypatch)
    return scores(joint, transition(anchored(joint, **settings), [2, 1, 2]), chains, sweeps, seed=5)


@pytest.mark.slow
@pytest.mark.parametrize("name", SYSTEMS)
def test_sampler(name, monkeypatch):
    said, size = worst(run(SYSTEMS[name], monkeypatch))
    assert size < PASS, said
