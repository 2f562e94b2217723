"""The principal start: the same from all second moments and from a probe, in chunks and in whole."""

from dataclasses import replace

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import combine
from ibpdist.catalog import systems as catalog
from ibpdist.inference.starts import principal
from ibpdist.inference.starts.best import Best
from ibpdist.inference.starts.principal import Principal
from ibpdist.inference.starts.start_questions import initial
from tests.support.model_cases import Case, algorithm, chunked, fit, survey


def factors(rows=120, columns=30, features=4, seed=3, noise=0.3):
    rng = np.random.default_rng(seed)
    strong = np.geomspace(4, 1.5, features)[:, None]
    on = rng.random((rows, features)) < 0.6
    a = strong * rng.normal(size=(features, columns)) * (rng.random((features, columns)) < 0.5)
    return (on * rng.normal(size=(rows, features))) @ a + noise * rng.normal(size=(rows, columns))


def made(alg, chunks, seed=1):
    """Parameters after all questions, answered by the chunks."""
    draws = Draws(seed)

    def answer(_, question):
        parts = [alg.look(chunk, question, draws) for chunk in chunks]
        total = parts[0]
        for part in parts[1:]:
            total = combine(total, part)
        return total

    return initial(alg, survey(alg, chunks), draws, answer)


def of(noise="column", scale="feature", features=4, **settings):
    alg = algorithm(Case("sticks", "normal", noise=noise, scale=scale), features, **settings)
    return replace(alg, begin=Principal())


def test_chunks_do_not_matter():
    x = factors()
    one, two = (made(of(), chunked(x, None, sizes)).observation for sizes in ([120], [50, 70]))
    np.testing.assert_allclose(two.mean, one.mean, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(two.noise, one.noise, rtol=1e-8)


def test_a_probe_finds_what_all_moments_show(monkeypatch):
    x = factors(columns=60)
    few = made(of(), chunked(x)).observation
    monkeypatch.setattr(principal, "SPARE", 40)
    whole = made(of(), chunked(x)).observation
    near = np.abs(np.corrcoef(np.vstack([few.mean, whole.mean]))[:4, 4:]).max(axis=0)
    assert near.min() > 0.999
    np.testing.assert_allclose(few.noise, whole.noise, rtol=0.03)


def test_units_of_the_columns_do_not_matter():
    """With a noise of each column, columns in other units begin alike."""
    x, unit = factors(), np.geomspace(0.5, 2, 30)
    one, two = (made(of(), chunked(data)).observation for data in (x - x.mean(0), (x - x.mean(0)) * unit))
    np.testing.assert_allclose(np.abs(two.mean), np.abs(one.mean * unit), rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(two.noise, one.noise * unit**2, rtol=1e-6)


def test_settings_are_kept():
    x = factors()
    fixed = made(of(noise=0.5, scale=2.0), chunked(x)).observation
    assert (fixed.noise == 0.5).all()
    assert (fixed.scale == 2.0).all()
    one = made(of(noise="one", scale="one"), chunked(x)).observation
    assert len(set(one.noise)) == len(set(one.scale)) == 1
    own = made(of(), chunked(x)).observation
    np.testing.assert_allclose(own.scale, (own.mean**2).mean(axis=1))


@pytest.mark.parametrize(("rows", "columns", "expected"), [(120, 30, 28), (20, 30, 18), (120, 6, 4)])
def test_features_that_the_data_can_hold(rows, columns, expected):
    params = made(of(features=200), chunked(factors(rows, columns)))
    assert len(params.ids) == expected
    assert params.observation.mean.shape == (expected, columns)
    assert (params.on == rows).all()


def test_missing_cells():
    x = factors()
    observed = np.random.default_rng(0).random(x.shape) < 0.9
    params = made(of(missing="rows"), chunked(np.where(observed, x, 0), observed))
    assert np.isfinite(params.observation.mean).all()
    assert (params.observation.noise > 0).all()


def test_fits_with_weights_begin_so():
    starts = {"fa-vi-infinite": Best, "fa-vi-finite": Best, "fa-vi-dense": Principal}
    for system, start in starts.items():
        fitted = catalog.build(system, 4).row_inference()
        assert isinstance(fitted.begin, start), system
        assert fitted.model.observation.noise == "auto"
        assert fitted.model.observation.scale == "feature"
    assert not isinstance(catalog.build("fa-gibbs-finite", 4).row_inference().begin, Principal | Best)


def test_further_than_from_a_random_start():
    x = factors(300, 40, 6)
    begin = of(features=6)
    chunks = chunked(x)
    params = made(begin, chunks)
    draws = Draws(1)
    state = begin.start(chunks[0], params, draws)
    for step in range(1, 31):
        state, sums = begin.local(chunks[0], state, params, draws.at(step))
        params, info = begin.update(params, sums, draws.at(step))
        trace = info.trace()
    usual = fit(algorithm(Case("sticks", "normal", noise="column", scale="feature"), 6), chunks, 30)[3][-1]
    assert trace["objective"] > usual["objective"]
