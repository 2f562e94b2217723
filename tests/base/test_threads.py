"""BLAS has one thread inside, and what it had before outside."""

import threading

import pytest
import scipy.linalg  # noqa: F401  (its BLAS is limited as well)
from threadpoolctl import threadpool_info, threadpool_limits

from ibpdist.base import threads
from ibpdist.base.threads import kernels, one_thread


def counts():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


@pytest.fixture(autouse=True)
def _two_threads_outside():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_one_inside_and_as_before_outside():
    before = counts()
    assert set(before) == {2}
    with one_thread():
        assert set(counts()) == {1}
    assert counts() == before


def test_nested():
    with one_thread():
        with one_thread():
            assert set(counts()) == {1}
        assert set(counts()) == {1}, "the inner block must not restore what the outer one limits"
    assert set(counts()) == {2}


def test_restored_after_an_error():
    with pytest.raises(KeyError), one_thread():
        raise KeyError
    assert set(counts()) == {2}


def test_a_thread_that_leaves_does_not_lift_the_limit_of_another():
    inside, leave, seen = threading.Event(), threading.Event(), []

    def other():
        with one_thread():
            inside.set()
            leave.wait(10)

    worker = threading.Thread(target=other)
    worker.start()
    inside.wait(10)
    with one_thread():
        leave.set()
        worker.join(10)
        seen = counts()
    assert set(seen) == {1}
    assert set(counts()) == {2}
    assert threads._inside == 0


def test_any_thread_may_limit_after_another():
    """The rule of threadpoolctl that the first thread to set a limit is the only one must not hold here."""
    first_lives = threading.Event()
    done = threading.Event()

    def first():
        with one_thread():
            pass
        done.set()
        first_lives.wait(10)

    worker = threading.Thread(target=first)
    worker.start()
    done.wait(10)
    with one_thread():
        assert set(counts()) == {1}
    assert set(counts()) == {2}
    first_lives.set()
    worker.join(10)


def test_the_last_to_leave_restores_whoever_began():
    inside, leave, left = threading.Event(), threading.Event(), threading.Event()

    def first():
        with one_thread():
            inside.set()
            leave.wait(10)
        left.wait(10)

    worker = threading.Thread(target=first)
    worker.start()
    inside.wait(10)
    with one_thread():
        leave.set()
    for _ in range(1000):
        if threads._inside == 0:
            break
        worker.join(0.01)
    assert set(counts()) == {2}
    left.set()
    worker.join(10)


def test_kernels_name_their_class():
    found = kernels()
    assert found
    assert all(lib["internal_api"] and lib["architecture"] for lib in found)


def test_kernels_have_one_order(monkeypatch):
    """The controller lists them as it finds them, in one order here and in another there."""
    libraries = [
        {"internal_api": "openblas", "version": v, "architecture": "Haswell"} for v in ("0.3.31", "0.3.30")
    ]

    class Controller:
        def select(self, user_api):
            return self

        def info(self):
            libraries.reverse()
            return libraries

    monkeypatch.setattr(threads, "ThreadpoolController", Controller)
    assert kernels() == kernels()
    assert len(kernels()) == 2
