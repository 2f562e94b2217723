"""Documents made of planted features: each row has a few, and its tokens are of those."""

import numpy as np


def planted_counts(rows=200, columns=60, features=5, length=80, seed=0):
    """Counts (row, column) of rows of about `length` tokens, the laws of the features (feature, column), and
    those of the rows (row, column)."""
    rng = np.random.default_rng(seed)
    words = rng.dirichlet(np.full(columns, 0.08), features)
    shares = rng.dirichlet(np.full(features, 0.25), rows)
    laws = shares @ words
    lengths = rng.poisson(length, rows)
    return np.array([rng.multinomial(n, law) for n, law in zip(lengths, laws, strict=True)]), words, laws
