"""Settings of the whole suite: reproducible examples, pictures without a display; fixtures of many files."""

import os

import matplotlib
import pytest
from hypothesis import HealthCheck, settings
from threadpoolctl import threadpool_limits

from tests.support.grids import small_store

matplotlib.use("Agg")
settings.register_profile(
    "everyday", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("everyday")


@pytest.fixture(scope="session", autouse=True)
def fsync_does_not_wait():
    """No test cuts the power, and thousands of short runs would wait for the disk at each of their files.

    Whoever asks for what is not an open file is still refused, and what other processes write is synced.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


@pytest.fixture(scope="session", autouse=True)
def one_blas_thread():
    """Processes that test side by side would wait for each other's threads: a third of the time of a fit."""
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture(scope="module")
def two_blas_threads(one_blas_thread):
    """What a user has: for tests of what must not depend on it."""
    with threadpool_limits(2, user_api="blas"):
        yield


@pytest.fixture(scope="session")
def store(tmp_path_factory):
    """The dataset of small campaigns; nothing is ever written to it."""
    return small_store(tmp_path_factory.mktemp("data"))


@pytest.fixture
def save_whenever_due(monkeypatch):
    """A checkpoint is saved whenever one is due, however short the steps are."""
    monkeypatch.setattr("ibpdist.runs.loop.SHARE", 0)
