"""Every system builds and runs; what is unknown is refused with a hint."""

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.randomness import Draws
from ibpdist.base.rules import DRAW, HARD, MEAN
from ibpdist.catalog.systems import SYSTEMS, build, entries, find, most_features, rows_held, settings_of
from tests.support.model_cases import ASCENT, AT_ONCE, chunked, fit, plain, problem

NAMES = [
    "lg-vi-finite",
    "lg-vi-infinite",
    "fa-vi-finite",
    "fa-vi-infinite",
    "lg-vi-finite-hard",
    "lg-vi-infinite-hard",
    "fa-vi-finite-hard",
    "fa-vi-infinite-hard",
    "lg-gibbs-finite",
    "fa-gibbs-finite",
]


def test_the_names():
    assert set(NAMES) <= set(SYSTEMS)
    assert all(name == row.name for name, row in SYSTEMS.items())
    assert all(row.summary for row in SYSTEMS.values())


@pytest.mark.parametrize("name", AT_ONCE)
@pytest.mark.parametrize("missing", ["complete", "masked"])
def test_every_system_runs(name, missing):
    x, observed = problem(1, 9, 4, missing)
    alg = plain(name, 3)
    params, states, _, traces = fit(alg, chunked(x, observed, [5, 4]), 3)
    assert all(np.isfinite(list(trace.values())).all() for trace in traces)
    assert {"objective", "bound", "active"} <= traces[-1].keys()
    for described, wide in ((alg.describe(params), 4), (alg.describe_rows(states[0], params), 5)):
        sizes = {"feature": 3, "column": 4, "row": 5, "group": None, "component": 3, "round": None}
        for dims, values in described.values():
            assert len(dims) == values.ndim
            assert all(sizes[d] in (None, n) for d, n in zip(dims, values.shape, strict=True)), (dims, wide)
            assert np.isfinite(values.astype(float)).all()
    assert alg.monotone() == (SYSTEMS[name].rules != DRAW)


@pytest.mark.parametrize("name", NAMES)
def test_the_name_says_what_it_is(name):
    model = build(name, 2).row_inference().model
    assert model.weights.name == {"lg": "unit", "fa": "normal"}[name[:2]]
    assert model.prior.name == ("beta_bernoulli" if "-finite" in name else "stick_breaking")
    expected = HARD if name.endswith("hard") else DRAW if "gibbs" in name else MEAN
    assert model.rules == expected


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize("name", ASCENT)
def test_entries_are_what_rows_keep(name, moves):
    alg = build(name, 3, settings={"start": "random", "moves": moves})
    (chunk,) = chunked(problem()[0])
    params = alg.init(alg.summarise(chunk), Draws(0))
    state = alg.start(chunk, params, Draws(0))
    kept = getattr(state, "now", state)
    numbers = (kept.z.size + kept.w.size) // (3 * chunk.rows)
    tries = hasattr(state, "kept")
    assert tries == moves
    assert entries(name, {"moves": moves}) == numbers * (2 if tries else 1)
    assert entries(name, {}) == entries(name, {"moves": True})


def test_objectives_of_atoms_do_not_choose_a_number_of_features():
    for system in ("lg-vi-beta-process", "ica-vi-beta-process"):
        with pytest.raises(
            UsageError, match=f"objectives of {system} at different K do not compare.* choose"
        ):
            most_features(system, {})


def test_rows_that_starts_hold():
    sample = rows_held("fa-vi-infinite", {}, 100, 8)
    assert sample == 40_000
    assert rows_held("fa-gibbs-infinite", {}, 100, 8) == sample, "a fit comes before the sampler"
    assert rows_held("lg-vi-infinite", {"start": "best"}, 100, 8) == sample
    assert rows_held("lg-vi-infinite", {"start": "rows"}, 100, 8) == 32
    for system, start in (
        ("lg-vi-infinite", "auto"),
        ("fa-vi-dense", "auto"),
        ("fa-gibbs-infinite", "empty"),
    ):
        assert rows_held(system, {"start": start}, 100, 8) == 0


def test_results_by_name():
    """What a result of a Gaussian model has at least."""
    alg = plain("lg-vi-infinite", 3)
    params = fit(alg, chunked(problem()[0]), 2)[0]
    found = alg.describe(params)
    assert {"mean", "mean_sd", "prevalence", "noise", "scale", "mass", "id", "active"} <= found.keys()
    assert (np.diff(found["prevalence"][1]) <= 0).all()


def test_settings_go_to_their_axis():
    settings = {"mass": 2.0, "bound": "multinomial", "noise": "column", "family": "factorised", "scale": 1.5}
    alg = build("lg-vi-infinite", 4, inner=3, settings=settings).row_inference()
    assert (alg.features, alg.inner) == (4, 3)
    assert (alg.model.prior.mass, alg.model.prior.bound) == (2.0, "multinomial")
    seen = alg.model.observation
    assert (seen.noise, seen.family, seen.scale) == ("column", "factorised", 1.5)
    assert settings.keys() <= set(settings_of("lg-vi-infinite"))


def test_settings_by_system():
    search = ["start", "moves", "anneal"]
    assert settings_of("lg-vi-finite") == [
        "mass",
        "noise",
        "scale",
        "family",
        "missing",
        "intercept",
        *search,
    ]
    gaussian = ["noise", "scale", "family", "missing", "intercept", "row_noise"]
    assert settings_of("fa-vi-dense") == ["mu", *gaussian, *search]
    assert settings_of("fa-vi-infinite") == ["mass", "bound", "mu", *gaussian, *search]
    assert not {"intercept", "mu", "row_noise"} & set(settings_of("lg-collapsed-finite"))
    assert "intercept" in settings_of("lg-gibbs-infinite")


@pytest.mark.parametrize(
    ("name", "hint"), [("lg-vi-infinit", "lg-vi-infinite"), ("fa-gibs-finite", "fa-gibbs-finite")]
)
def test_unknown_system_with_a_hint(name, hint):
    for ask in (find, settings_of, lambda name: build(name, 3)):
        with pytest.raises(UsageError, match=f"unknown system '{name}'; did you mean {hint}\\?"):
            ask(name)


def test_unknown_system_far_from_any_lists_all():
    with pytest.raises(UsageError, match=r"known: lg-vi-finite, .*fa-gibbs-finite"):
        find("pca")


def test_unknown_setting_with_a_hint():
    with pytest.raises(UsageError, match=r"unknown setting 'nois'; did you mean noise\?"):
        build("lg-vi-finite", 3, settings={"nois": 1.0})
    with pytest.raises(UsageError, match="unknown setting 'bound'"):
        build("lg-vi-finite", 3, settings={"bound": "convex"})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("noise", 0.0),
        ("noise", -1.0),
        ("noise", "columns"),
        ("noise", True),
        ("noise", float("nan")),
        ("scale", "column"),
        ("scale", float("inf")),
        ("family", "full"),
        ("missing", "mean"),
        ("mass", 0),
        ("mass", "auto"),
        ("bound", "tight"),
        ("moves", "no"),
    ],
)
def test_bad_values_are_refused_in_a_sentence(name, value):
    with pytest.raises(UsageError, match=f"{name}.*expected") as caught:
        build("lg-vi-infinite", 3, settings={name: value})
    assert caught.value.code == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("features", [0, -2])
def test_a_truncation_below_one_is_refused(features):
    with pytest.raises(UsageError, match="features"):
        build("lg-vi-finite", features)


@pytest.mark.parametrize("inner", [0, -1])
def test_fewer_than_one_sweep_is_refused(inner):
    with pytest.raises(UsageError, match="inner"):
        build("lg-vi-finite", 3, inner=inner)
