"""What every kind of weights can be used for: data with a planted truth, fits, scores, reports, starts."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.rules import MEAN
from ibpdist.catalog import systems
from ibpdist.evaluate import consensus
from ibpdist.evaluate.heldout import evaluate_truth
from ibpdist.evaluate.recovery import recovery
from ibpdist.predict.kinds import kinds
from ibpdist.report.summary import summary

every = pytest.mark.parametrize("name", systems.weights_names())
ROWS, COLUMNS, FEATURES = 160, 10, 2


def system_of(name):
    """A fit of an unknown number of features with these weights."""
    return next(
        row.name
        for row in systems.SYSTEMS.values()
        if (row.weights, row.prior, row.rules) == (name, "stick_breaking", MEAN)
    )


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """By weights: a store, new rows, and a run with cells held out."""
    folder, found = tmp_path_factory.mktemp("use"), {}
    for name in systems.weights_names():
        given = {"columns": COLUMNS, "features": FEATURES, "noise": 0.1, "seed": 2, "weights": name}
        store = ibp.synthesise(
            "linear-gaussian", folder / f"{name}.zarr", rows=ROWS, prior="beta_bernoulli", mass=4.0, **given
        )
        run = folder / name
        ibp.fit(store, system=system_of(name), K=3, seed=1, steps=60, restarts=2, holdout=0.2, run=run)
        found[name] = store, run
    return found


def test_every_density_of_rows_can_be_scored():
    assert set(kinds()) == {systems.weights_of(name).density for name in systems.weights_names()}


@every
def test_planted_features_are_found(made, name):
    store, run = made[name]
    found = recovery(run, store)
    assert int((found.error < 0.5).sum()) == FEATURES


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name == "exponential" else ())
        for name in systems.weights_names()
    ],
)
def test_held_out_cells_are_scored(made, name):
    store, run = made[name]
    own = ibp.evaluate(run, chains=4)
    hidden = store.read(0).x[:, 1::2]
    nothing = -0.5 * (1 + np.log(2 * np.pi * hidden.var()))
    assert float(own.score.sel(estimate="variance")) > nothing + 0.1
    assert np.isfinite(own.row_score).all()
    assert "held out" in summary(ibp.open_result(run))


@every
def test_no_fit_beats_the_truth_by_much(made, name):
    store, run = made[name]
    truth, found = (one.sel(estimate="variance") for one in (evaluate_truth(store), _even(store, run)))
    assert float(truth.score) > float(found.score) - 0.05
    assert float(truth.error) < 0.02


def _even(store, run):
    return ibp.evaluate(run, np.array(store.read(0).x), uneven=False, chains=4)


@every
def test_new_rows_have_the_features_of_the_fit(made, name):
    store, run = made[name]
    new = ibp.transform(run, np.array(store.read(0).x[:50]))
    assert new.sizes["row"] == 50
    assert ("w" in new) == systems.weights_of(name).has_weights
    assert np.isfinite(new.z).all()


@every
def test_restarts_are_compared_and_reported(made, name, tmp_path):
    _, run = made[name]
    page = ibp.report(run, tmp_path / "page.html").read_text("utf-8")
    assert system_of(name) in page
    assert ibp.verify(run) == []


@every
def test_a_fit_begins_with_another(made, name):
    store, run = made[name]
    begun = ibp.fit(store, system=system_of(name), K=5, steps=5, start=run)
    found = begun["trace"].objective.values
    assert np.diff(found).min() > -1e-6 * abs(found[-1])
    both = consensus.aligned({0: ibp.open_result(run), 1: begun}, 0)
    assert (both.similarity.sel(restart=1) > 0.9).sum() >= FEATURES


@every
def test_it_can_be_chosen(made, name):
    store, _ = made[name]
    choice = ibp.choose(np.array(store.read(0).x), K=3, systems=[system_of(name)], steps=20, serial=True)
    assert choice.system == system_of(name)
    assert np.isfinite(choice.scores[choice.system])
