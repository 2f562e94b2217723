"""What groups of rows share, from the matrix of all pairs of rows."""

import numpy as np
import xarray as xr


def shared_by_pairs(rows, params, by):
    labels = rows[by].values if isinstance(by, str) else np.asarray(by)
    z = rows["z"].transpose("row", "feature").values[:, params["active"].values].astype(float)
    pairs, names = z @ z.T, sorted(set(labels.tolist()))
    np.fill_diagonal(pairs, np.nan)
    shared = np.full((len(names), len(names)), np.nan)
    for g, one in enumerate(names):
        for h, other in enumerate(names):
            block = pairs[np.ix_(labels == one, labels == other)]
            if np.isfinite(block).any():
                shared[g, h] = np.nanmean(block)
    own = np.array([z[labels == name].sum(axis=1).mean() for name in names])
    count = np.array([(labels == name).sum() for name in names])
    held = {"shared": (("group", "group_"), shared), "features": ("group", own), "rows": ("group", count)}
    return xr.Dataset(held, {"group": names})
