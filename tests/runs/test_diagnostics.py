"""Whether chains can be trusted, against arviz-stats and in words."""

import numpy as np
import pytest
import xarray as xr
from arviz_stats.base import array_stats

from ibpdist.runs.diagnostics import diagnostics, remarks, said

RNG = np.random.default_rng(4)


def posterior(**values):
    return xr.Dataset({name: (("chain", "draw"), table) for name, table in values.items()})


def autoregressive(chains=4, draws=500, memory=0.9):
    made = RNG.normal(size=(chains, draws))
    for t in range(1, draws):
        made[:, t] += memory * made[:, t - 1]
    return made


def test_numbers_are_those_of_arviz():
    values = autoregressive()
    found = diagnostics(posterior(mass=values)).sel(variable="mass")
    assert float(found["mean"]) == pytest.approx(values.mean())
    assert float(found.sd) == pytest.approx(values.std(ddof=1))
    assert float(found.rhat) == pytest.approx(array_stats.rhat(values, 0, 1, method="rank"))
    assert float(found.ess_bulk) == pytest.approx(array_stats.ess(values, 0, 1, method="bulk"))
    tail = array_stats.ess(values, 0, 1, method="tail", prob=(0.05, 0.95))
    assert float(found.ess_tail) == pytest.approx(tail)
    assert float(found.ess_bulk) < 0.2 * values.size, "these draws hang together"


def test_independent_draws_are_worth_their_number():
    found = diagnostics(posterior(mass=RNG.normal(size=(4, 500))))
    assert float(found.rhat[0]) == pytest.approx(1.0, abs=0.01)
    assert float(found.ess_bulk[0]) > 1500
    assert list(remarks(found, 4, 500)) == []


def test_chains_in_different_places_are_told_apart():
    values = RNG.normal(size=(4, 200)) + np.arange(4)[:, None] * 3
    found = diagnostics(posterior(mass=values, noise=RNG.normal(size=(4, 200))))
    (mixed, *rest) = remarks(found, 4, 200)
    assert mixed.startswith("the chains have not mixed: R-hat of mass is ")
    assert any("mass" in text and "400 are enough" in text for text in rest)
    assert not any("noise" in text for text in (mixed, *rest[:1]))


def test_stuck_chains_are_hopeless():
    values = np.repeat(np.arange(3.0)[:, None], 50, axis=1)
    found = diagnostics(posterior(features=values))
    assert float(found.rhat[0]) > 1e6
    assert "above 100" in next(remarks(found, 3, 50))
    assert said(1.2345) == "1.234"


def test_one_chain_says_so():
    found = diagnostics(posterior(mass=RNG.normal(size=(1, 900))))
    assert "one chain" in next(remarks(found, 1, 900))


def test_what_never_changes_has_no_rhat():
    found = diagnostics(posterior(features=np.full((2, 50), 4.0))).isel(variable=0)
    assert float(found["mean"]) == 4.0
    assert float(found.sd) == 0.0
    assert np.isnan(float(found.rhat))
    assert list(remarks(diagnostics(posterior(features=np.full((2, 50), 4.0))), 2, 50)) == []


@pytest.mark.parametrize("draws", [1, 2, 3])
def test_few_draws_give_no_diagnosis(draws):
    found = diagnostics(posterior(mass=RNG.normal(size=(2, draws))))
    assert np.isfinite(float(found["mean"][0]))
    assert np.isnan(float(found.rhat[0]))
    words = f"too few draws to judge ({draws} a chain; at least 4 are needed)"
    assert next(remarks(found, 2, draws)) == words


def test_what_some_draws_lack_is_judged_by_the_others():
    """A chain without features has no scale; it is the number of draws that says so, not silence."""
    values = autoregressive(chains=2, draws=300)
    gaps = values.copy()
    gaps[0, :100], gaps[1, 250:] = np.nan, np.nan
    found = diagnostics(posterior(scale=gaps)).isel(variable=0)
    table = np.array([gaps[0, 100:], gaps[1, 50:250]])
    assert int(found.draws) == 200
    assert float(found["mean"]) == pytest.approx(np.nanmean(gaps))
    assert float(found.sd) == pytest.approx(np.nanstd(gaps, ddof=1))
    assert float(found.rhat) == pytest.approx(array_stats.rhat(table, 0, 1, method="rank"))
    assert float(found.ess_bulk) == pytest.approx(array_stats.ess(table, 0, 1, method="bulk"))


def test_what_hardly_any_draw_has_is_said():
    gaps = RNG.normal(size=(2, 300))
    gaps[0, 3:] = np.nan
    found = diagnostics(posterior(mass=RNG.normal(size=(2, 300)), scale=gaps))
    said_of = [text for text in remarks(found, 2, 300) if "few" in text]
    assert said_of == ["too few draws to judge scale (3 of a chain have one; at least 4 are needed)"]
    assert np.isfinite(float(found["mean"][1]))


def test_what_no_draw_has_is_nothing_to_judge():
    found = diagnostics(posterior(scale=np.full((2, 50), np.nan)))
    assert int(found.draws[0]) == 0
    assert list(remarks(found, 2, 50)) == []


def test_results_of_before_have_no_number_of_draws():
    found = diagnostics(posterior(mass=RNG.normal(size=(4, 500)))).drop_vars("draws")
    assert list(remarks(found, 4, 500)) == []


def test_only_scalars_are_looked_at():
    held = posterior(mass=RNG.normal(size=(2, 20)))
    held["wide"] = (("chain", "draw", "column"), np.zeros((2, 20, 3)))
    assert list(diagnostics(held)["variable"].values) == ["mass"]
