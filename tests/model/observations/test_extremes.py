"""Settings that no data could have asked for: one sentence, before anything is computed."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError

X = np.random.default_rng(0).normal(size=(60, 5))
SYSTEMS = ("lg-vi-infinite", "fa-vi-finite", "lg-gibbs-finite")


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("noise", [1e-40, 1e-100, 1e-119])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_noise_that_is_nothing_beside_the_data_is_refused(system, noise, dtype, tmp_path):
    with pytest.raises(UsageError, match=rf"noise is {noise:g}, but the cells have a variance of (0\.9|1)"):
        ibp.fit(X.astype(dtype), system=system, K=3, steps=3, noise=noise, run=tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["noise", "scale", "mass"])
@pytest.mark.parametrize("value", [1e-300, 5e-324, 1e300, 10**400])
def test_a_number_that_cannot_be_squared_is_refused(name, value):
    with pytest.raises(UsageError, match=rf"set\.{name}: expected between 1e-120 and 1e\+120"):
        ibp.fit(X, system="lg-vi-finite", K=3, steps=3, **{name: value})


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("size", [1e-40, 1.0, 1e15])
def test_the_least_noise_that_is_accepted_gives_finite_results(system, size):
    for dtype in ("float32", "float64") if size == 1 else ("float64",):
        x = (size * X).astype(dtype)
        found = ibp.fit(x, system=system, K=3, steps=3, noise=1.01e-24 * float(x.var(0).mean()))
        assert np.isfinite(found["trace"]["objective"]).all()
        assert np.isfinite(found["params"]["mean"]).all()
