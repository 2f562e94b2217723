"""What is said of chains in words, from draws made by hand."""

from typing import Any

import numpy as np
import xarray as xr

from ibpdist.report import chains
from ibpdist.runs.diagnostics import diagnostics

RNG = np.random.default_rng(2)


def tree(**scalars: Any) -> xr.DataTree:
    posterior = xr.Dataset({name: (("chain", "draw"), table) for name, table in scalars.items()})
    return xr.DataTree.from_dict({"posterior": posterior, "diagnostics": diagnostics(posterior)})


def test_a_scalar_that_some_draws_lack_says_so() -> None:
    scale = RNG.normal(size=(2, 50))
    scale[0, 10:15] = np.nan
    said = dict(chains.facts(tree(mass=RNG.normal(size=(2, 50)), scale=scale)))
    assert said["scale"].endswith("effective draws; a chain has one in 45 of 50 draws")
    assert said["mass"].endswith("effective draws")


def test_a_scalar_that_no_draw_has() -> None:
    said = dict(chains.facts(tree(scale=np.full((2, 50), np.nan))))
    assert said["scale"] == "no draw has one"


def test_a_constant_has_no_spread() -> None:
    said = dict(chains.facts(tree(mass=np.full((2, 10), 1e-9))))
    assert said["mass"] == "1e-09 +- 0"


def counts(system: str, *chains: Any) -> xr.DataTree:
    """Numbers of features (chain, draw) as a sampler found them."""
    made = tree(features=np.array(chains))
    made.attrs = {"system": system}
    return made


MOVING, STILL = np.arange(60) % 3 + 4, np.full(60, 5)
KEPT = "kept 5 features in every draw: {}; compare chains that begin with another K or --seed"


def test_a_chain_that_never_changed_its_number_of_features_is_remarked() -> None:
    said = list(chains.remarks(counts("lg-uncollapsed-infinite", MOVING, MOVING[::-1], STILL)))
    assert said[-1] == "chain 2 " + KEPT.format("it may be stuck")
    said = list(chains.remarks(counts("lg-uncollapsed-infinite", STILL, STILL + 1, STILL, STILL)))
    assert said[-2] == "chains 0, 2 and 3 " + KEPT.format("they may be stuck")
    assert said[-1].startswith("chain 1 kept 6 features in every draw: it may be stuck")
    said = list(chains.remarks(counts("lg-uncollapsed-infinite", STILL, STILL)))
    assert said[-1] == "all chains " + KEPT.format("that number is certain, or they are stuck")


def test_a_number_that_is_no_sign_of_being_stuck() -> None:
    """It changed, or had too few draws to change, or is limited by K."""
    for system, numbers in (
        ("lg-uncollapsed-infinite", MOVING),
        ("lg-collapsed-infinite", STILL[:59]),
        ("lg-gibbs-finite", STILL),
    ):
        assert not any("stuck" in text for text in chains.remarks(counts(system, numbers, numbers))), system


def test_too_few_draws_are_remarked() -> None:
    said = list(chains.remarks(tree(mass=RNG.normal(size=(2, 3)))))
    assert said == ["too few draws to judge (3 a chain; at least 4 are needed)"]
