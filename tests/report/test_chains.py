"""What is said of chains in words, from draws made by hand."""

from typing import Any

import numpy as np
import xarray as xr

from ibpdist.evaluate.diagnostics import diagnostics
from ibpdist.report import chains

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


def test_too_few_draws_are_remarked() -> None:
    said = list(chains.remarks(tree(mass=RNG.normal(size=(2, 3)))))
    assert said == ["too few draws to judge (3 a chain; at least 4 are needed)"]
