"""The spectral start: chunks do not matter, wide data have the same row space, odd data are no bother."""

from __future__ import annotations

import warnings
from functools import reduce
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ibpdist.base.randomness import Draws
from ibpdist.base.rules import MEAN
from ibpdist.base.structs import arrays_of, combine
from ibpdist.catalog.systems import build
from ibpdist.inference.starts import spectral
from ibpdist.inference.starts.spectral import PROBES, SPARE, Covariance, Spectral, space, spread
from ibpdist.inference.starts.start_questions import WIDE, CovarianceQuestion, SampleQuestion
from ibpdist.inference.stopping import Rising, tolerance
from ibpdist.model.model import Model
from ibpdist.model.observations.gaussian import Gaussian
from ibpdist.model.priors.stick_breaking import StickBreaking
from ibpdist.model.weights.unit import Unit
from tests.support.covering import covering, everyday
from tests.support.model_cases import ASCENT, chunked, initial, problem
from tests.support.odd import ODD
from tests.support.planted_rows import masked, planted
from tests.support.search_cases import Rows, steps

ROWS = 150


def model_of(noise="one"):
    return Model(StickBreaking(), Unit(), Gaussian(noise=noise), MEAN)


def asked(chunks, features=6, noise="one", seed=1):
    """The questions of a start with their answers, and the survey."""
    model, begin, draws, known = model_of(noise), Spectral(), Draws(seed), []
    facts = reduce(combine, [model.observation.summarise(chunk) for chunk in chunks])
    while (question := begin.ask(model, features, facts, known, draws)) is not None:
        known.append((question, reduce(combine, [begin.look(chunk, question, draws) for chunk in chunks])))
    return known, facts


def data(columns=20, missing="complete", seed=0, noise=0.4, prevalence=(0.3, 0.5, 0.8), rows=ROWS):
    x, z, a = planted(seed, rows, columns, prevalence, noise)
    return *masked(x, missing), z, a


def projector(basis):
    q = np.linalg.qr(basis)[0]
    return q @ q.T


# --- chunks ---


@pytest.mark.parametrize("missing", ["complete", "masked"])
@pytest.mark.parametrize("wide", [False, True])
@settings(max_examples=8)
@given(cuts=st.sets(st.integers(1, ROWS - 1), max_size=5))
def test_questions_and_answers_do_not_depend_on_chunks(missing, wide, cuts):
    x, observed, _, _ = data(40, missing)
    edges = [0, *sorted(cuts), ROWS]
    with pytest.MonkeyPatch.context() as patch:
        if wide:
            patch.setattr(spectral, "WIDE", 5)
        whole, _ = asked(chunked(x, observed))
        parts, _ = asked(chunked(x, observed, [b - a for a, b in pairwise(edges)]))
    assert len(whole) == len(parts) == 2 + wide
    for (question, answer), (other, parted) in zip(whole[:-1], parts[:-1], strict=True):
        for one, two in ((question, other), (answer, parted)):
            for name, value in arrays_of(one).items():
                np.testing.assert_allclose(arrays_of(two)[name], value, rtol=1e-8, atol=1e-8 * ROWS)
    (question, answer), (other, parted) = whole[-1], parts[-1]
    assert answer.rows.shape == parted.rows.shape
    np.testing.assert_allclose(question.signal, other.signal, rtol=1e-8)
    one, two = answer.rows @ question.basis.T, parted.rows @ other.basis.T
    np.testing.assert_allclose(one, two, atol=1e-7)


def test_sampled_rows_are_the_same_for_any_chunks(monkeypatch):
    monkeypatch.setattr(spectral, "SAMPLE", 40)
    x, observed, _, _ = data()
    found = []
    for sizes in ([ROWS], [1, 49, 100], [30] * 5):
        (question, answer) = asked(chunked(x, observed, sizes))[0][-1]
        assert float(question.share) == pytest.approx(40 / ROWS)
        found.append(answer.rows @ question.basis.T)
    assert 20 <= len(found[0]) <= 60
    for other in found[1:]:
        np.testing.assert_allclose(other, found[0], atol=1e-8)
    centred = (x - x.mean(axis=0)) @ projector(question.basis)
    distance = np.abs(found[0][:, None] - centred[None]).max(axis=2).min(axis=1)
    assert distance.max() < 1e-8, "they are rows of the data"


@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-vi-finite-hard"])
def test_the_dictionary_does_not_depend_on_chunks(system):
    x, observed, _, _ = data(30, rows=300)
    found = []
    for sizes in ([300], [120, 130, 50]):
        fit = build(system, 6).row_inference()
        params = initial(fit, chunked(x, observed, sizes), Draws(3))
        found.append(params.observation.mean[np.argsort(params.on)])
    np.testing.assert_allclose(found[1], found[0], atol=1e-4)


# --- wide rows ---


@pytest.mark.parametrize("missing", ["complete", "masked"])
@pytest.mark.parametrize("seed", range(3))
def test_wide_rows_have_the_row_space_of_the_whole_covariance(monkeypatch, missing, seed):
    """Much nearer to it than it is to the planted one, which is all that the data tell."""
    x, observed, _, a = data(120, missing, seed)
    chunks, size = chunked(x, observed, [70, 80]), len(a)
    narrow = asked(chunks)[0][-1][0]
    monkeypatch.setattr(spectral, "WIDE", 100)
    known, _ = asked(chunks)
    wide = known[-1][0]
    assert [type(question) for question, _ in known] == [
        CovarianceQuestion,
        CovarianceQuestion,
        SampleQuestion,
    ]
    assert size <= len(wide.signal) <= len(narrow.signal)
    np.testing.assert_allclose(wide.signal[:size], narrow.signal[:size], rtol=0.02)
    assert float(wide.noise) == pytest.approx(float(narrow.noise), rel=0.05)
    near, whole = projector(wide.basis[:, :size]), projector(narrow.basis[:, :size])
    assert np.linalg.norm(near - whole, 2) < 0.25 * np.linalg.norm(whole - projector(a.T), 2)


def test_probes_are_as_many_as_the_truncation_asks_for(monkeypatch):
    monkeypatch.setattr(spectral, "WIDE", 5)
    x, observed, _, _ = data(40)
    for features, width in ((3, 6 + SPARE), (30, 40)):
        question, answer = asked(chunked(x, observed), features)[0][0]
        assert question.probe.shape == answer.product.shape == (40, width)
    monkeypatch.setattr(spectral, "PROBES", 12)
    assert asked(chunked(x, observed), 30)[0][0][0].probe.shape == (40, 12)


def test_no_answer_is_larger_than_promised(monkeypatch):
    """A covariance up to WIDE columns; beyond, some columns of it; rows in the row space and the mean."""
    assert (WIDE, PROBES) == (2000, 512)
    monkeypatch.setattr(spectral, "WIDE", 30)
    for columns, wide in ((30, False), (31, True), (90, True)):
        x, observed, _, _ = data(columns)
        features = 4
        for question, answer in asked(chunked(x, observed, [50] * 3), features)[0]:
            held = arrays_of(answer)
            if isinstance(question, SampleQuestion):
                assert held["rows"].shape[1] <= features + 1
                assert len(held["rows"]) <= min(ROWS, spectral.SAMPLE)
            else:
                assert held["product"].shape == (columns, 2 * features + SPARE if wide else columns)


def law_of(x, probe, unit):
    """What is known of the covariance of complete rows x from its products with a probe."""
    made = np.cov(x.T) * np.outer(unit, unit)
    variance = np.var(x, axis=0, ddof=1)
    return Covariance(made @ probe if probe.size else made, probe, unit, variance)


def test_products_tell_the_covariance_in_other_units():
    """With a probe that spans all columns nothing is left out, in whatever units it was asked for."""
    x, rng = data(12)[0], np.random.default_rng(0)
    probe = np.linalg.qr(rng.normal(size=(12, 12)))[0]
    asked_in, wanted = rng.uniform(0.5, 2.0, 12), rng.uniform(0.5, 2.0, 12)
    whole = law_of(x, np.zeros((12, 0)), np.ones(12)).leading(wanted)
    found = law_of(x, probe, asked_in).leading(wanted)
    np.testing.assert_allclose(found[0], whole[0], rtol=1e-8)
    np.testing.assert_allclose(projector(found[1][:, :3]), projector(whole[1][:, :3]), atol=1e-6)
    assert found[2] == pytest.approx(whole[2], rel=1e-10)


def uneven_rows(seed, columns=300, rows=200, features=6):
    """Features under noise of which a column has up to a hundred times the deviation of another."""
    rng = np.random.default_rng(seed)
    sd = 100 ** rng.uniform(-0.5, 0.5, columns)
    a = rng.normal(size=(features, columns))
    z = rng.random((rows, features)) < 0.3
    return z @ a + sd * rng.normal(size=(rows, columns)), sd, a


@pytest.mark.parametrize("seed", range(3))
def test_wide_rows_with_noise_of_their_own_are_put_in_its_units(monkeypatch, seed):
    """In equal units the noisiest columns pass for features, which hides the others."""
    monkeypatch.setattr(spectral, "WIDE", 50)
    x, sd, a = uneven_rows(seed)
    known, facts = asked(chunked(x, None, [120, 80]), 10, "column")
    for question, _ in known[:2]:
        np.testing.assert_allclose(question.unit, 1 / np.sqrt(spread(facts)))
    question = known[-1][0]
    ratio = question.unit * sd
    assert ratio.std() / ratio.mean() < 0.15
    assert len(question.signal) == len(a)
    even = asked(chunked(x, None, [120, 80]), 10)[0][-1][0]
    assert (even.unit == 1).all()
    assert len(even.signal) > len(a), "noise that passes for features"


@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_wide_and_narrow_rows_with_uneven_noise_begin_alike(monkeypatch, missing):
    x, sd, a = uneven_rows(4, columns=150, rows=400)
    assert sd.max() > 20 * sd.min()
    x, observed = masked(x, missing)
    narrow = asked(chunked(x, observed), 10, "column")[0][-1][0]
    monkeypatch.setattr(spectral, "WIDE", 50)
    wide = asked(chunked(x, observed), 10, "column")[0][-1][0]
    assert len(wide.signal) == len(narrow.signal) == len(a)
    ratio = wide.unit / narrow.unit
    assert ratio.std() / ratio.mean() < 0.2


# --- what it finds ---


@pytest.mark.parametrize("prevalence", [(0.3, 0.5, 0.8), (0.05, 0.95, 0.5), (0.2, 0.2, 0.2, 0.2)], ids=str)
@pytest.mark.parametrize("noise", ["one", "column"])
def test_planted_features_are_there_before_the_first_step(prevalence, noise):
    x, observed, _, a = data(30, prevalence=prevalence, rows=600)
    fit = build("lg-vi-infinite", 8, settings={"noise": noise}).row_inference()
    params = initial(fit, chunked(x, observed, [250, 350]), Draws(1))
    distance = np.sqrt(((params.observation.mean[:, None] - a[None]) ** 2).mean(axis=2)).min(axis=0)
    assert (distance < 0.3).all()
    assert len(a) <= len(params.ids) <= len(a) + 1, "and perhaps a constant"
    assert float(params.rows) == 600
    assert (params.on <= 600).all()


@pytest.mark.parametrize(("rows", "columns", "features"), [(500, 30, 3), (500, 100, 20), (150, 200, 8)])
@pytest.mark.parametrize("seed", range(2))
def test_columns_of_unlike_noise_are_scaled(rows, columns, features, seed):
    """Noise over a factor of 10: the rank is right, and the units make it alike."""
    rng = np.random.default_rng(seed)
    z = rng.random((rows, features)) < 0.3
    sd = 0.5 * 10 ** rng.uniform(-0.5, 0.5, columns)
    x = z @ rng.normal(size=(features, columns)) + sd * rng.normal(size=(rows, columns))
    question, _ = asked(chunked(x), 2 * features, "column")[0][-1]
    assert len(question.signal) == features
    ratio = question.unit * sd
    assert ratio.std() / ratio.mean() < 0.12


def test_constant_columns_do_not_stop_the_scaling():
    rng = np.random.default_rng(2)
    sd = np.repeat([0.2, 2.0], 20)
    x = np.column_stack(
        [(rng.random((400, 1)) < 0.4) * 2.0 + sd * rng.normal(size=(400, 40)), np.full(400, 7.0)]
    )
    question, _ = asked(chunked(x), 6, "column")[0][-1]
    ratio = question.unit[:40] * sd
    assert ratio.std() / ratio.mean() < 0.1
    assert len(question.signal) == 1
    assert np.isfinite(question.unit).all()


def test_noise_has_no_features():
    x = np.random.default_rng(1).normal(size=(200, 15)) + 3.0
    known, facts = asked(chunked(x))
    question, answer = known[-1]
    assert len(question.signal) == 0
    assert question.basis.shape == (15, 1), "the mean is all there is"
    assert answer.rows.shape == (200, 1)
    fit = build("lg-vi-infinite", 5).row_inference()
    params = initial(fit, chunked(x), Draws(0))
    assert len(params.ids) == 1
    np.testing.assert_allclose(params.observation.mean[0], x.mean(axis=0), rtol=0.05)
    assert float(facts.rows) == 200


def test_the_truncation_is_kept():
    x, observed, _, _ = data(30, rows=300, prevalence=(0.3,) * 6)
    for features in (1, 3, 6):
        fit = build("lg-vi-infinite", features).row_inference()
        params = initial(fit, chunked(x, observed), Draws(0))
        assert len(params.ids) <= features
        assert len(asked(chunked(x, observed), features)[0][-1][0].signal) <= features


def test_space_orders_what_it_finds():
    x, observed, _, _ = data(25)
    known, facts = asked(chunked(x, observed))
    question, answer = known[0]
    law = Covariance(answer.product / (ROWS - 1), question.probe, question.unit, spread(facts))
    unit, found, basis = space(law, False, 6, ROWS)
    np.testing.assert_allclose(basis.T @ basis, np.eye(found.rank), atol=1e-10)
    assert (np.diff(found.signal) <= 0).all()
    assert (unit == 1).all()
    np.testing.assert_allclose(law.product, np.cov(x.T), atol=1e-10)
    np.testing.assert_allclose(law.variance, np.var(x, axis=0, ddof=1), atol=1e-10)


# --- odd data, every system, as it is by default ---


def settled_quietly(alg, x, observed, most=25):
    """A fit in two chunks, in which every warning is an error and the objective may not fall."""
    guard, before = Rising(x.size, tolerance(x.dtype.itemsize), True), None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        snapshots, place = steps(alg, Rows(x, observed, max(1, -(-len(x) // 2))), 1, most)
        for now in snapshots:
            guard(before, now)
            before = now
        state = place.state(0, before.step)
    for record in (before.params.now, state.now):
        for field, value in arrays_of(record).items():
            assert np.isfinite(value).all(), field
    found = alg.describe(before.params)
    found.pop("row_freedom", None)  # infinite where rows have no noise of their own
    assert all(np.isfinite(value).all() for _, value in found.values())
    assert (alg.handover_params(before.params).observation.noise > 0).all()


EVERY_ODD = list(product(ASCENT, ODD, [np.float64, np.float32], ["one", "column"]))


def fit_odd(system, name, dtype, noise):
    settled_quietly(build(system, 4, settings={"noise": noise}), ODD[name].astype(dtype), None)


@pytest.mark.parametrize(("system", "name", "dtype", "noise"), covering(EVERY_ODD))
def test_odd_data_through_the_default_fit(system, name, dtype, noise):
    fit_odd(system, name, dtype, noise)


@pytest.mark.slow
@pytest.mark.parametrize("system", ASCENT)
def test_all_odd_data_through_the_default_fit(system):
    for case in EVERY_ODD:
        if case[0] == system:
            fit_odd(*case)


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("system", ["lg-vi-infinite", "lg-vi-finite-hard"])
def test_odd_data_as_if_they_were_wide(monkeypatch, system, name):
    monkeypatch.setattr(spectral, "WIDE", 0)
    for noise in ("one", "column"):
        settled_quietly(build(system, 4, settings={"noise": noise}), ODD[name], None)


MASKS = {
    "rows and columns never seen": lambda o: _set(o, (slice(None), 1), (3,)),
    "one column seen": lambda o: _only(o, (slice(None), 0)),
    "a cell a row": lambda o: _only(o, (np.arange(len(o)), np.arange(len(o)) % o.shape[1])),
    "nothing seen": lambda o: np.zeros_like(o),
}


def _set(observed, *places):
    for place in places:
        observed[place] = False
    return observed


def _only(observed, place):
    observed[:] = False
    observed[place] = True
    return observed


@pytest.mark.parametrize(("system", "name", "how"), everyday(product(ASCENT, MASKS, ["groups", "rows"])))
def test_odd_masks_through_the_default_fit(system, name, how):
    x, observed = problem(4, 12, 3, "masked")
    observed = MASKS[name](observed)
    made = build(system, 4, settings={"missing": how})
    settled_quietly(made, np.where(observed, x, 0.0), observed)
