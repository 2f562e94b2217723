"""Groups of fits: how many side by side, of which fits, with which memory; and side by side for real."""

import threading

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base import progress
from ibpdist.campaigns import groups as campaign_groups
from ibpdist.campaigns.directory import Manifest
from ibpdist.campaigns.groups import parallel_groups, resources_per_group, spread
from ibpdist.campaigns.spec import CampaignSpec
from ibpdist.engine.place import Place
from tests.support.compare import assert_same_result
from tests.support.grids import alone, grid, steps_made


def fits_of(store, **keys):
    return Manifest.of(CampaignSpec.make(**grid(store, **keys)), "data").fits


class Chunks:
    """A source with so many chunks."""

    def __init__(self, chunks):
        self.chunks = chunks


@pytest.mark.parametrize(
    ("chunks", "workers", "count"),
    [(1, 0, 1), (1, 2, 2), (1, 8, 8), (3, 8, 3), (13, 2, 2), (32, 2, 1), (31, 2, 2), (1000, 64, 2)],
)
def test_as_many_as_keep_all_workers_at_work(store, chunks, workers, count):
    fits = fits_of(store, truncation=[2, 3, 4, 5, 6], restarts=2)
    assert parallel_groups(fits, Chunks(chunks), workers) == count


def test_not_more_than_there_are_fits(store):
    assert parallel_groups(fits_of(store, truncation=3, restarts=3), Chunks(1), 8) == 3


def test_of_samplers_in_turn_each_chain_is_a_task(store):
    keys = {"truncation": 3, "restarts": 6, "system": "lg-collapsed-infinite", "chains": 4, "set": {}}
    keys |= {"start": "random", "rtol": None}
    spec = {name: value for name, value in grid(store, **keys).items() if value is not None}
    fits = Manifest.of(CampaignSpec.make(**spec), "data").fits
    assert parallel_groups(fits, Chunks(1000), 8) == 2
    assert parallel_groups(fits, Chunks(1000), 24) == 6


def test_the_largest_groups_are_divided():
    sizes = [len(some) for some in spread([list(range(9)), list("ab")], 4)]
    assert sorted(sizes) == [2, 2, 3, 4]
    whole = spread([list(range(9))], 3)
    assert sorted(one for some in whole for one in some) == list(range(9))
    assert whole[0][:2] == [0, 4], "those that are alike go to both halves"
    assert spread([["a"], ["b"]], 5) == [["a"], ["b"]]


def test_memory_and_cache_are_shared():
    place = Place(workers=2, memory=1000, cache=100)
    assert resources_per_group(place, 1, 2) == place
    assert resources_per_group(place, 4, 2) == Place(workers=2, memory=250, cache=25)
    assert resources_per_group(Place(workers=2), 2, 2).memory == campaign_groups.available(2) // 2


@pytest.mark.slow
def test_groups_side_by_side_have_the_bits_of_fits_alone(store, tmp_path):
    found = ibp.sweep(grid(store, restarts=3), tmp_path / "run", workers=2)
    assert (found.summary.status == "finished").all()
    assert len(list((tmp_path / "run" / "groups").iterdir())) == 2
    for at, fit in enumerate(found.manifest.fits[::2]):
        assert_same_result(found.open(fit), alone(fit, tmp_path / f"alone{at}"))


@pytest.mark.slow
def test_what_stops_one_group_stops_all_and_they_go_on(store, tmp_path):
    """As Ctrl-C does, in whichever thread it is noticed."""
    run, steps = tmp_path / "run", 0

    def stop(now):
        nonlocal steps
        steps += bool(now.running)
        if steps == 4:
            raise KeyboardInterrupt

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        ibp.sweep(grid(store, steps=400), run, workers=2, progress=stop)
    assert threading.active_count() <= before + 2, "threads of Dask may take a while"
    assert not (run / "lock").exists()
    counted = steps_made(run)
    found = ibp.sweep(grid(store, steps=400), run, workers=2)
    assert counted > 0
    assert (found.summary.steps == 400).all()
    assert len(list((run / "groups").iterdir())) == 2, "the same ones"


@pytest.mark.slow
def test_progress_counts_the_fits_of_all_groups(store, tmp_path):
    seen = []
    ibp.sweep(grid(store, steps=5), tmp_path / "run", workers=2, progress=seen.append)
    assert seen[0].ended == 0
    assert seen[-1].ended == seen[-1].fits == 4
    assert np.all(np.diff([one.ended for one in seen]) >= 0)
    assert max(len(one.running) for one in seen) == 4
    assert progress.CampaignStatus is type(seen[0])
