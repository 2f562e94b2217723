"""A fit on a cluster with TLS, made as deploy/README.md says: the same bits, and nobody else gets in."""

import subprocess
import sys

import pytest

import ibpdist as ibp
from tests.support.compare import assert_same_result
from tests.support.tls import HERE, environment, make_tls, tls_cluster

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def room(tmp_path_factory):
    made = tmp_path_factory.mktemp("room")
    assert make_tls(made / "tls").returncode == 0
    assert make_tls(made / "other").returncode == 0
    ibp.synthesise("images", made / "x.zarr", rows=120, noise=0.1, seed=3, chunk_rows=20)
    return made


@pytest.fixture(scope="module")
def address(room):
    with tls_cluster(room / "tls", room) as found:
        assert found.startswith("tls://127.0.0.1:")
        yield found


def fit(room, run, address, certificates):
    """The command of a user whose environment names certificates."""
    options = ["--system", "lg-vi-infinite", "-K", "6", "--seed", "2", "--steps", "6", "-q"]
    command = [
        sys.executable,
        "-c",
        "from ibpdist.cli import main; main()",
        "fit",
        str(room / "x.zarr"),
        str(run),
    ]
    return subprocess.run(
        [*command, *options, "--scheduler", address],
        env=environment(certificates),
        cwd=HERE,
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )


def test_a_fit_over_tls_has_the_bits_of_a_serial_one(room, address):
    done = fit(room, room / "run", address, room / "tls")
    assert (done.returncode, done.stderr) == (0, "")
    here = ibp.fit(
        room / "x.zarr", run=room / "here", system="lg-vi-infinite", K=6, seed=2, steps=6, serial=True
    )
    there = ibp.open_result(room / "run")
    assert_same_result(here, there)
    assert ibp.verify(room / "run") == []


def test_without_certificates_it_says_what_to_set(room, address):
    done = fit(room, room / "bare", address, None)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "DASK_DISTRIBUTED__COMM__TLS__CA_FILE" in done.stderr
    assert "deploy/make_tls.py" in done.stderr


def test_certificates_of_another_authority_are_turned_away(room, address):
    done = fit(room, room / "stranger", address, room / "other")
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "TLS certificate does not match" in done.stderr


def test_a_plain_client_is_turned_away(room, address):
    done = fit(room, room / "plain", address.replace("tls://", "tcp://"), room / "tls")
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1
    assert "cannot be reached" in done.stderr
