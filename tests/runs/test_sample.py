"""Samplers from data to result: chains side by side, kept draws, the same bits after an interruption."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.campaigns.verify import verify
from ibpdist.evaluate import posterior
from ibpdist.report.page import report
from ibpdist.report.summary import summary
from ibpdist.storage import events
from tests.support.compare import assert_same_result

SYSTEMS = ["lg-gibbs-finite", "lg-gibbs-infinite", "fa-gibbs-infinite", "lg-collapsed-infinite"]
STEPS = 24
OPTIONS = {"K": 5, "seed": 4, "steps": STEPS, "chains": 2, "thin": 2, "checkpoint": 3}
GROUPS = ("params", "rows", "trace", "posterior", "draws", "diagnostics", "internals")
every = pytest.mark.parametrize("system", SYSTEMS)


def images(rows=60):
    return ibp.synthetic("images", rows=rows, noise=0.15, seed=3).x.values


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Runs that nobody interrupted, made when they are asked for."""
    folder, made = tmp_path_factory.mktemp("whole"), {}

    def run(system):
        if system not in made:
            made[system] = folder / system
            ibp.fit(images(), system=system, run=made[system], serial=True, **OPTIONS)
        return made[system]

    return run


@every
def test_result(system, whole):
    run = whole(system)
    found = ibp.open_result(run)
    kept = list(range(14, STEPS + 1, 2))
    assert found["posterior"].sizes == {"chain": 2, "draw": len(kept)}
    assert found["posterior"]["step"].values.tolist() == kept
    assert found["trace"].sizes["chain"] == 2
    noise = {"log_noise", "row_freedom"} if system == "fa-gibbs-infinite" else {"noise"}
    scalars = {"log_joint", "features", "mass", *noise, "scale", "entries", "singletons"}
    assert scalars <= set(found["posterior"].data_vars)
    draws = found["draws"]
    assert draws["mean"].dims == ("chain", "draw", "place", "column")
    on = (draws["prevalence"] > 0).sum("place")
    np.testing.assert_array_equal(on, found["posterior"]["features"])
    entries = (draws["z"].sum(("row", "place"))).values
    np.testing.assert_array_equal(entries, found["posterior"]["entries"])
    assert found.attrs["stopped"] == f"made all of its {STEPS} steps"
    assert verify(run) == []
    assert not (run / "draws").exists()
    said = summary(found)
    assert "features" in said
    assert (f"{system}, begun with K = 5" in said) is system.endswith("infinite")
    assert (f"{system}, K = 5" in said) is system.endswith("-finite")


@every
def test_last_draw_is_that_of_the_first_chain(system, whole):
    found = ibp.open_result(whole(system))
    last = found["draws"].isel(chain=0, draw=-1)
    features = int(np.isfinite(last["prevalence"]).sum())
    np.testing.assert_allclose(last["mean"][:features], found["params"]["mean"], rtol=1e-6)
    np.testing.assert_array_equal(last["z"][:, :features], found["rows"]["z"] > 0.5)
    for name in {"intercept", "row_freedom"} & set(found["params"].data_vars):
        np.testing.assert_array_equal(last[name], found["params"][name])
    assert ("weight_mean" in last) == system.startswith("fa")
    if "weight_mean" in last:
        np.testing.assert_array_equal(last["weight_mean"][:features], found["params"]["weight_mean"])


class Interrupt:
    """Ctrl-C after some step, once."""

    def __init__(self, step):
        self.step = step

    def __call__(self, now):
        if now.step == self.step:
            raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("system", "step"),
    [*((name, 13) for name in SYSTEMS), ("lg-gibbs-infinite", 2), ("lg-gibbs-infinite", 20)],
)
def test_resumed_in_the_middle_of_a_chain(system, step, tmp_path, whole):
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        ibp.fit(images(), system=system, run=run, serial=True, progress=Interrupt(step), **OPTIONS)
    ibp.resume(run, serial=True)
    assert_same_result(ibp.open_result(whole(system)), ibp.open_result(run))
    kinds = [event["event"] for event in events.read(run / "events.jsonl")]
    assert kinds.count("begin") == 2
    assert verify(run) == []


def test_a_chain_does_not_know_of_others(whole):
    two = ibp.open_result(whole("lg-gibbs-infinite"))
    one = ibp.fit(images(), system="lg-gibbs-infinite", **OPTIONS | {"chains": 1})
    np.testing.assert_array_equal(one["posterior"]["log_joint"][0], two["posterior"]["log_joint"][0])
    assert (one["posterior"]["log_joint"][0].values != two["posterior"]["log_joint"][1].values).any()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"restarts": 2}, "for lg-gibbs-finite use chains"),
        ({"burn": STEPS}, "no draw is left of 24 steps"),
        ({"burn": 0, "start": "fit"}, "burn is 0: with start=fit"),
        ({"system": "lg-vi-finite"}, "lg-vi-finite is not one: use restarts"),
        ({"system": "lg-collapsed-finite", "noise": "column"}, "noise is column"),
        ({"moves": False}, "unknown setting 'moves'"),
    ],
)
def test_refused_in_a_sentence(changes, words, tmp_path):
    options = {"system": "lg-gibbs-finite"} | OPTIONS | changes
    with pytest.raises(UsageError, match=words):
        ibp.fit(images(), run=tmp_path / "run", serial=True, **options)
    assert list(tmp_path.iterdir()) == []


def test_too_many_features_are_refused_with_the_memory(tmp_path):
    with pytest.raises(UsageError, match=r"come to \d+ features, more than most=1"):
        ibp.fit(images(), system="lg-gibbs-infinite", start="random", most=1, serial=True, **OPTIONS)


def test_held_out_cells_are_scored_over_the_draws():
    found = ibp.fit(images(), system="lg-collapsed-infinite", holdout=0.3, **OPTIONS)
    scored = ibp.evaluate(found, images(), visible="fitted")
    assert "mean over" in scored.attrs["method"]
    fitted = ibp.fit(images(), system="lg-vi-infinite", K=5, holdout=0.3)
    other = ibp.evaluate(fitted, images(), visible="fitted")
    assert float(scored.score.sel(estimate="variance")) == pytest.approx(
        float(other.score.sel(estimate="variance")), abs=0.05
    )


def test_new_rows(whole):
    found = ibp.open_result(whole("lg-collapsed-infinite"))
    z = ibp.transform(found, images()[:7]).z
    assert z.shape == (7, found["params"].sizes["feature"])
    own = found["rows"]["z"].values[:7]
    assert np.mean((z.values > 0.5) == (own > 0.5)) > 0.9


@pytest.mark.slow
def test_samplers_of_one_model_agree():
    """Means over long chains, within their Monte Carlo errors."""
    options = {"K": 5, "seed": 1, "steps": 1500, "chains": 4}
    systems = ("lg-collapsed-infinite", "lg-gibbs-infinite", "lg-uncollapsed-infinite")
    known, *others = (
        ibp.fit(images(100), system=system, **options)["diagnostics"].to_dataset() for system in systems
    )
    for other in others:
        for name in ("features", "entries", "mass", "noise", "scale"):
            a, b = other.sel(variable=name), known.sel(variable=name)
            assert abs(float(a["mean"] - b["mean"])) < 5 * float(np.hypot(a.mcse, b.mcse)), name


def test_features_over_draws(whole):
    found = ibp.open_result(whole("lg-gibbs-infinite"))
    assert float(posterior.number(found).sum()) == pytest.approx(1.0)
    named = posterior.features(found)
    assert named["share"].max() == 1.0
    assert ((named["low"] <= named["mean"]) & (named["mean"] <= named["high"])).mean() > 0.9
    shared = posterior.cooccurrence(found)
    np.testing.assert_allclose(np.diagonal(shared).sum(), found["posterior"]["entries"].mean())


@pytest.mark.parametrize("system", ["lg-gibbs-infinite", "lg-collapsed-infinite"])
def test_no_draw_has_a_feature(system, tmp_path):
    """Shown, reported and scored all the same."""
    x, run = np.random.default_rng(0).normal(size=(30, 5)), tmp_path / "run"
    options = {"mass": 1e-9, "start": "empty", "holdout": 0.2, "serial": True}
    ibp.fit(x, system=system, run=run, K=1, chains=2, steps=20, seed=0, **options)
    assert np.isfinite(ibp.evaluate(run).score).all()
    found = ibp.open_result(run)
    assert summary(found).startswith("0 features in 100 % of the draws")
    assert f"{system}, begun without a feature" in summary(found)
    assert posterior.features(found).sizes["feature"] == 0
    assert report(run).is_file()


@pytest.mark.parametrize("burn", [0, 1, 2])
@every
def test_steps_of_the_fit_are_no_draws(system, burn):
    """A chain begins with at most as many as are not kept; with none it begins by itself."""
    options = OPTIONS | {"steps": 5, "burn": burn, "thin": 1, "chains": 1}
    found = ibp.fit(images(20), system=system, **options)
    assert found["posterior"]["step"].values.tolist() == list(range(burn + 1, 6))
    if "warming" in found["trace"]:
        warming = found["trace"]["warming"].sel(step=found["posterior"]["step"])
        assert not warming.any()


def test_a_particle_filter_tells_its_evidence_beside_the_log_joint():
    found = ibp.fit(
        images(20), system="lg-particle", noise=0.1, scale=1.0, mass=1.0, **OPTIONS | {"steps": 4}
    )
    terms = found["trace"].sel(step=found["posterior"]["step"])
    total = terms["likelihood"] + terms["dictionary"] + terms["z prior"] + terms["mass"]
    np.testing.assert_allclose(found["posterior"]["log_joint"], total)
    np.testing.assert_array_equal(found["posterior"]["log_evidence"], terms["evidence"])
    assert (found["posterior"]["log_evidence"] != found["posterior"]["log_joint"]).all()
