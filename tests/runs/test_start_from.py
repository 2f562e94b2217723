"""A fit or a chain begins with the features of another result, or says why it cannot and what can."""

from itertools import product

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.campaigns.verify import verify
from ibpdist.catalog.systems import SYSTEMS, find
from ibpdist.evaluate.posterior import assign
from ibpdist.runs.start_from import can_begin
from ibpdist.storage.events import read
from tests.support.covering import everyday

PARTICLE = {"noise": 0.01, "scale": 1.0, "mass": 2.0}
FITS = ["lg-vi-infinite", "lg-vi-finite", "lg-vi-infinite-hard", "fa-vi-infinite", "fa-vi-finite"]


def planted(rows=400, columns=12, features=4, weights=False):
    rng = np.random.default_rng(3)
    z = rng.random((rows, features)) < 0.4
    y = z * rng.normal(size=z.shape) if weights else z
    return y @ rng.normal(size=(features, columns)) + 0.1 * rng.normal(size=(rows, columns))


def fit(data, system, K=6, **options):
    return ibp.fit(data, system=system, K=K, **({"seed": 1, "steps": 40} | options))


@pytest.fixture(scope="module")
def fitted():
    """Each system of FITS, fitted to data of its kind."""
    data = {kind: planted(weights=kind == "fa") for kind in ("lg", "fa")}
    plain = {"lg": {}, "fa": {"intercept": False, "mu": 0, "row_noise": "none", "start": "principal"}}
    return data, {system: fit(data[system[:2]], system, **plain[system[:2]]) for system in FITS}


def features(result):
    params = result["params"].to_dataset()
    return params["mean"].values[params["active"].values]


def unlike(wanted, found, free):
    """Root mean square between features and those assigned to them, in units of theirs; 1 without any."""
    place, sign = assign(wanted, found, free)
    taken = np.where(place[:, None] >= 0, found[place] * sign[:, None], 0.0)
    return float(np.sqrt(((taken - wanted) ** 2).sum() / (wanted**2).sum()))


def draw_of(result, at):
    draw = result["draws"].to_dataset().isel(chain=0, draw=at)
    return draw["mean"].values[draw["prevalence"].values > 0].astype(float)


@pytest.mark.parametrize(("system", "sampler"), everyday(product(FITS, ["infinite", "finite"]), 1))
def test_a_chain_begins_with_the_features_of_a_fit(fitted, system, sampler):
    data, found = fitted[0][system[:2]], fitted[1][system]
    chain = {"system": f"{system[:2]}-gibbs-{sampler}", "steps": 6, "burn": 0, "seed": 9}
    free = system.startswith("fa")
    begun = fit(data, start=found, **chain)
    cold = fit(data, **chain | {"start": "random"})
    assert unlike(features(found), draw_of(begun, 0), free) < 0.25
    assert unlike(features(found), draw_of(begun, -1), free) < 0.15
    assert unlike(features(found), draw_of(cold, 0), free) > 0.45
    assert not begun["trace"]["warming"].any(), "no other fit comes before"


def test_chains_that_begin_so_are_resumed_to_the_same_bits(fitted, tmp_path):
    data, found = fitted[0]["lg"], fitted[1]["lg-vi-infinite"]
    options = {"start": found, "chains": 2, "steps": 8, "checkpoint": 3}
    plain = fit(data, "lg-gibbs-finite", K=9, run=tmp_path / "plain", **options)
    assert plain["draws"].sizes["place"] <= 9

    def stop(now):
        if now.step == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(data, "lg-gibbs-finite", K=9, run=tmp_path / "cut", progress=stop, **options)
    assert ibp.resume(tmp_path / "cut")["posterior"].equals(plain["posterior"])
    assert verify(tmp_path / "cut") == []
    assert [e for e in read(tmp_path / "cut" / "events.jsonl") if e["event"] == "interrupted"]


def test_a_sampler_without_a_limit_takes_more_features_than_k(fitted):
    found = fitted[1]["lg-vi-infinite"]
    assert len(features(found)) == 4
    begun = fit(fitted[0]["lg"], "lg-gibbs-infinite", K=2, steps=4, burn=0, start=found)
    assert unlike(features(found), draw_of(begun, 0), False) < 0.1


@pytest.mark.parametrize("system", ["lg-collapsed-infinite", "lg-gibbs-infinite", "lg-gibbs-finite"])
def test_a_chain_begins_with_the_last_draw_of_another(fitted, system):
    data = fitted[0]["lg"]
    found = fit(data, system)
    for sampler in ("lg-gibbs-infinite", "lg-gibbs-finite"):
        begun = fit(data, sampler, K=9, steps=4, burn=0, start=found)
        assert unlike(features(found), draw_of(begun, 0), False) < 0.25


def test_what_can_begin_with_what():
    able = {
        ours.name: [theirs.name for theirs in SYSTEMS.values() if can_begin(ours, theirs)]
        for ours in SYSTEMS.values()
    }
    unit, normal = ([s.name for s in SYSTEMS.values() if s.name.startswith(kind)] for kind in ("lg", "fa"))
    assert able["lg-gibbs-infinite"] == able["lg-gibbs-finite"] == unit
    other = ("fa-vi-dense", "fa-vi-finite-positive", "fa-vi-infinite-positive")
    assert able["fa-gibbs-infinite"] == [name for name in normal if name not in other]
    assert able["fa-vi-dense"] == ["fa-vi-dense"]
    assert able["lg-vi-infinite"] == ["lg-vi-infinite", "lg-vi-infinite-hard"]
    assert "lg-gibbs-finite" in able["lg-vi-finite"]
    assert not any(able[system.name] for system in SYSTEMS.values() if system.in_turn)


def test_every_refusal_names_what_can(fitted, tmp_path):
    for ours in SYSTEMS.values():
        for system, found in fitted[1].items():
            if can_begin(ours, find(system)):
                continue
            options = PARTICLE if ours.name == "lg-particle" else {}
            with pytest.raises(UsageError) as caught:
                fit(fitted[0]["lg"], ours.name, start=found, **options)
            _, _, names = str(caught.value).rpartition("use ")
            able = names.split(", ")
            assert able
            assert all(can_begin(SYSTEMS[name], find(system)) for name in able)


REFUSED = [
    (
        "lg-vi-finite",
        {},
        "lg-vi-finite and lg-vi-infinite have other priors, and a fit needs its own: use lg-",
    ),
    (
        "fa-vi-infinite",
        {},
        "the features of lg-vi-infinite are present or absent, those of fa-vi-infinite have",
    ),
    (
        "lg-collapsed-infinite",
        {},
        "lg-collapsed-infinite takes rows in turn and cannot start from a fit: leave",
    ),
    ("lg-particle", PARTICLE, "lg-particle takes rows in turn"),
    ("lg-vi-infinite", {"K": 3}, "has 4 features and K is 3: give K of at least 4, or leave out --from"),
    ("lg-gibbs-finite", {"K": 3}, "has 4 features and K is 3: give K of at least 4, or leave out --from"),
]


@pytest.mark.parametrize(("system", "options", "sentence"), REFUSED)
def test_what_is_wrong_and_what_to_do(fitted, tmp_path, system, options, sentence):
    x, found = fitted[0]["lg"], fitted[1]["lg-vi-infinite"]
    with pytest.raises(UsageError) as caught:
        fit(x, system, start=found, run=tmp_path / "run", **options)
    assert str(caught.value).startswith(f"the result: {sentence}")
    assert not (tmp_path / "run").exists()


def test_a_run_is_named(fitted, tmp_path):
    first = tmp_path / "first"
    fit(fitted[0]["lg"], "lg-vi-finite", steps=2, run=first)
    for options, sentence in (
        ({"K": 7}, "was fitted with K = 6, K is 7, and the prior of lg-vi-finite counts on it: give K = 6"),
        ({"system": "lg-vi-infinite"}, "lg-vi-infinite and lg-vi-finite have other priors"),
    ):
        for start in (first, str(first), first / "result.zarr"):
            with pytest.raises(UsageError) as caught:
                fit(fitted[0]["lg"], **{"system": "lg-vi-finite"} | options, start=start)
            assert str(caught.value).startswith(f"{start}: {sentence}")
    with pytest.raises(
        UsageError, match=r"first: has 12 columns, the data have 9: start from a fit of data w"
    ):
        fit(planted(columns=9), "lg-vi-finite", start=first)
