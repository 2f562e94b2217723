"""Draws that are kept: which, in what files, and what they are in a result."""

from types import SimpleNamespace

import numpy as np
import pytest
import zarr

from ibpdist.inference._base import Info
from ibpdist.inference.stopping import Snapshot
from ibpdist.runs import posterior_draws
from ibpdist.runs.posterior_draws import Drawn, DrawStore, Plan

COLUMNS = 3


def described(step, chain):
    """Globals of a draw, with a number of features that changes."""
    rng, features = np.random.default_rng([step, chain]), (step + chain) % 4
    return {
        "mean": (("feature", "column"), rng.normal(size=(features, COLUMNS))),
        "prevalence": (("feature",), np.sort(rng.random(features))[::-1]),
        "chance": (("feature",), rng.random(features)),
        "id": (("feature",), rng.integers(99, size=features)),
        "noise": ((), np.asarray(rng.random())),
        "scale": ((), np.asarray(rng.random())),
        "mass": ((), np.asarray(rng.random())),
    }


class Fit:
    """Describes what a step and chain are."""

    def describe(self, params):
        return described(*params)


def keeper(folder, plan, chains=2):
    return DrawStore(folder, plan, [(Fit(), None)] * chains, rows=False)


def now(step, chains=2):
    params = SimpleNamespace(members=[SimpleNamespace(params=(step, chain)) for chain in range(chains)])
    return Snapshot(step, params, Info({}))


def offered(kept, steps, flush=5):
    for step in steps:
        kept.offer(now(step))
        if step % flush == 0:
            kept.flush()


@pytest.mark.parametrize(
    ("plan", "steps"),
    [
        (Plan(10, 5, 1), [6, 7, 8, 9, 10]),
        (Plan(10, 4, 3), [7, 10]),
        (Plan(9, 0, 4), [4, 8]),
        (Plan(3, 3, 1), []),
    ],
)
def test_which_steps_are_kept(plan, steps):
    assert plan.kept() == steps
    assert [step for step in range(1, plan.steps + 1) if plan.keeps(step)] == steps


def test_draws_are_read_in_order(tmp_path):
    kept = keeper(tmp_path, Plan(12, 2, 2))
    kept.begin(0)
    offered(kept, range(1, 13))
    kept.flush()
    found = list(posterior_draws.read(tmp_path))
    assert [(step, chain) for step, chain, _ in found] == [(s, c) for s in (4, 6, 8, 10, 12) for c in (0, 1)]
    for step, chain, drawn in found:
        np.testing.assert_array_equal(drawn.mean, described(step, chain)["mean"][1].astype(np.float32))
        assert float(drawn.mass) == float(described(step, chain)["mass"][1])


def test_nothing_is_held_longer_than_need_be(tmp_path, monkeypatch):
    monkeypatch.setattr(posterior_draws, "HELD", 100)
    kept = keeper(tmp_path, Plan(50, 0, 1))
    kept.begin(0)
    for step in range(1, 51):
        kept.offer(now(step))
        assert kept._bytes <= 100 + 500
    assert len(list(tmp_path.glob("*.rec"))) > 5


def test_what_comes_after_a_checkpoint_is_made_again(tmp_path):
    plan = Plan(20, 0, 1)
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for folder in (whole, broken):
        kept = keeper(folder, plan)
        kept.begin(0)
        offered(kept, range(1, 21) if folder is whole else range(1, 18))
        kept.flush()
    (broken / "00000099-00000100.rec.12ab.partial").write_bytes(b"half")
    again = keeper(broken, plan)
    again.begin(10)
    assert max(int(path.stem[-8:]) for path in broken.iterdir()) == 10
    offered(again, range(11, 21))
    assert content(whole) == content(broken)


def content(folder):
    return [
        (step, chain, drawn.mean.tobytes(), drawn.prevalence.tobytes())
        for step, chain, drawn in posterior_draws.read(folder)
    ]


@pytest.mark.parametrize("block", [1, 100, 1 << 20])
def test_arrays_of_a_result(tmp_path, monkeypatch, block):
    """However many draws a chunk holds."""
    monkeypatch.setattr(posterior_draws, "BLOCK", block)
    plan = Plan(12, 2, 2)
    kept = keeper(tmp_path / "draws", plan)
    kept.begin(0)
    offered(kept, range(1, 13))
    kept.flush()
    posterior_draws.write(tmp_path / "draws", tmp_path / "result.zarr", plan, 2)
    group = zarr.open_group(tmp_path / "result.zarr", path="draws", mode="r")
    assert posterior_draws.places(tmp_path / "draws") == 3
    assert group["mean"].shape == (2, 5, 3, COLUMNS)
    assert group["mean"].metadata.dimension_names == ("chain", "draw", "place", "column")
    assert group["mass"].metadata.dimension_names == ("chain", "draw")
    for at, step in enumerate(plan.kept()):
        for chain in (0, 1):
            named = described(step, chain)
            features = len(named["id"][1])
            np.testing.assert_array_equal(group["prevalence"][chain, at, :features], named["prevalence"][1])
            assert np.isnan(group["prevalence"][chain, at, features:]).all()
            assert np.isnan(group["mean"][chain, at, features:]).all()
            assert group["noise"][chain, at] == named["noise"][1]


def test_rows_and_variances_of_columns(tmp_path):
    made = Drawn(
        mean=np.ones((2, COLUMNS), np.float32),
        prevalence=np.ones(2),
        chance=np.ones(2),
        id=np.arange(2),
        noise=np.arange(3.0),
        scale=np.ones(1),
        mass=np.ones(()),
        z=np.array([[True, False], [True, True]]),
        intercept=np.arange(float(COLUMNS)),
        weight_mean=np.full(2, np.nan),
        row_freedom=np.asarray(np.nan),
        weight_shape=np.full(2, np.nan),
        tokens=np.full(2, np.nan),
        eta=np.asarray(np.nan),
        concentration=np.asarray(np.nan),
    )
    kept = keeper(tmp_path / "draws", Plan(2, 1, 1), 1)
    kept.begin(0)
    kept._held["2/0"] = made
    kept.flush()
    posterior_draws.write(tmp_path / "draws", tmp_path / "result.zarr", Plan(2, 1, 1), 1)
    group = zarr.open_group(tmp_path / "result.zarr", path="draws", mode="r")
    assert group["z"].dtype == bool
    assert group["z"][0, 0].tolist() == [[True, False], [True, True]]
    assert group["noise"].metadata.dimension_names == ("chain", "draw", "column")
    assert group["scale"].shape == (1, 1)
    np.testing.assert_array_equal(group["intercept"][0, 0], np.arange(COLUMNS))
    assert "weight_mean" not in group
    assert "row_freedom" not in group


def test_no_draws_no_group(tmp_path):
    posterior_draws.write(tmp_path / "draws", tmp_path / "result.zarr", Plan(2, 2, 1), 1)
    assert not (tmp_path / "result.zarr").exists()
