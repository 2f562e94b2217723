"""Where a fit runs, and what is refused."""

from types import SimpleNamespace

import numpy as np
import pytest

from ibpdist.base.errors import UsageError
from ibpdist.engine import place
from ibpdist.engine.place import Place, refuse_open
from tests.support.sizes import Sizes

SMALL, LARGE = Sizes(1000, 10, 100), Sizes(1 << 20, 32, 1 << 16)


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch):
    monkeypatch.setattr(place.os, "cpu_count", lambda: 4)


def test_small_data_stay_here():
    assert Place().for_data(SMALL, kept=True) == Place()
    assert not Place().for_data(SMALL, kept=True).distributed


def test_large_data_get_a_process_a_core():
    assert LARGE.rows * LARGE.columns * np.dtype(np.float32).itemsize >= 64 << 20
    assert Place().for_data(LARGE, kept=True) == Place(workers=4)


def test_counts_are_large_by_their_entries():
    counts = SimpleNamespace(rows=10**6, columns=50_000, largest_chunk=10**5, all_entries=(1 << 20) - 1)
    assert Place().for_data(counts, kept=True) == Place(), "whatever the number of cells"
    counts.all_entries = 1 << 20
    assert Place().for_data(counts, kept=True) == Place(workers=4)


def test_without_a_run_nothing_is_started():
    assert Place().for_data(LARGE, kept=False) == Place()
    assert Place(workers=2).for_data(LARGE, kept=False).workers == 2


def test_serial_wins_over_size():
    chosen = Place(serial=True).for_data(LARGE, kept=True)
    assert not chosen.distributed
    assert chosen.processes == 1


def test_one_core_needs_no_process(monkeypatch):
    monkeypatch.setattr(place.os, "cpu_count", lambda: 1)
    assert Place().for_data(LARGE, kept=True) == Place()


@pytest.mark.parametrize(
    "both", [{"workers": 2, "serial": True}, {"workers": 2, "scheduler": "tcp://127.0.0.1:1"}]
)
def test_two_places_are_refused(both):
    with pytest.raises(UsageError, match="exclude each other"):
        Place(**both)


@pytest.mark.parametrize("workers", [0, -1])
def test_no_workers_are_refused(workers):
    with pytest.raises(UsageError, match=f"workers is {workers}: expected 1 or more"):
        Place(workers=workers)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:8786", "127.0.0.1:8786", "localhost:8786", "tcp://[::1]:8786"]
)
def test_this_machine_needs_no_certificate(address):
    refuse_open(address)


def test_tls_may_be_anywhere():
    refuse_open("tls://cluster.example:8786")
    assert Place(scheduler="tls://10.0.0.1:8786").distributed


@pytest.mark.parametrize(
    "address", ["tcp://10.0.0.1:8786", "cluster.example:8786", "0.0.0.0:8786", "ws://10.0.0.1:1"]
)
def test_other_machines_without_tls_are_refused(address):
    with pytest.raises(UsageError, match="without TLS"):
        Place(scheduler=address)


def test_plan_is_that_of_one_process():
    assert Place(4, memory=1 << 30).plan(LARGE, 10).limit == 1 << 30
    assert Place(4).plan(LARGE, 10).limit == Place(1).plan(LARGE, 10).limit // 4
    assert (
        Place(4, memory=1 << 30).plan(LARGE, 10, 2).state
        == 2 * Place(4, memory=1 << 30).plan(LARGE, 10).state
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"memory": "1GB"}, "memory is '1GB': expected a whole number"),
        ({"workers": "2"}, "workers is '2'"),
        ({"workers": 1.5}, "workers is 1.5"),
        ({"cache": 1e6}, "cache is 1000000.0"),
    ],
)
def test_sizes_are_whole_numbers(given, said):
    with pytest.raises(UsageError, match=said):
        Place(**given)


def test_whole_numbers_of_numpy_will_do():
    assert Place(workers=np.int64(2)).processes == 2


def test_a_place_chosen_is_kept():
    for place_ in (Place(workers=3), Place(serial=True), Place(scheduler="tcp://127.0.0.1:1")):
        assert place_.for_data(LARGE, kept=True) is place_


def test_options_are_those_given():
    assert Place().options() == {}
    assert Place(workers=2, cache=0).options() == {"workers": 2, "cache": 0}


def test_threads_are_as_chosen():
    assert Place().threads(SMALL) == Place(serial=True).threads(LARGE) == 1
    assert Place(workers=3).threads(SMALL) == 3
    assert Place().threads(LARGE) == 4
    with pytest.raises(UsageError, match="in one process; give workers"):
        Place(scheduler="tcp://127.0.0.1:1").threads(SMALL)
