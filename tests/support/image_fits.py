"""Fits of pictures made of four shapes, and rows that they have not seen."""

import ibpdist as ibp
from ibpdist.evaluate.synthetic import synthetic

ROWS = 600


def fit_images(system, **options):
    """Pictures, and a fit of the first ROWS of them."""
    data = synthetic("images", ROWS + 200, seed=3, dtype="float64")
    return data, ibp.fit(data.x.values[:ROWS], system=system, K=8, seed=1, **options)
