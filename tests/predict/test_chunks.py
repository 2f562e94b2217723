"""Work over chunks in threads: in order, few at a time, errors come through."""

import threading

import pytest

from ibpdist.base.errors import UsageError
from ibpdist.base.threads import kernels
from ibpdist.predict.chunks import over_chunks


@pytest.mark.parametrize("threads", [1, 3])
def test_results_come_in_order(threads):
    gate = threading.Event()

    def work(index):
        if index == 0 and threads > 1:
            gate.wait(5)
        if index == 2:
            gate.set()
        return index * index

    assert list(over_chunks(work, 10, threads)) == [i * i for i in range(10)]


def test_few_results_are_held():
    started = []

    def work(index):
        started.append(index)
        return index

    results = over_chunks(work, 100, 2)
    for expected in range(5):
        assert next(results) == expected
        assert len(started) <= expected + 3
    results.close()
    assert len(started) < 10


def test_an_error_of_a_chunk_is_raised():
    def work(index):
        if index == 3:
            raise UsageError("chunk 3 is bad")
        return index

    with pytest.raises(UsageError, match="chunk 3"):
        list(over_chunks(work, 10, 2))


def test_no_chunks():
    assert list(over_chunks(lambda index: index, 0, 2)) == []


def test_the_libraries_are_left_as_they_were():
    before = kernels()
    list(over_chunks(lambda index: index, 3, 2))
    assert kernels() == before
