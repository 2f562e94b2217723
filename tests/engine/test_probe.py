"""A scheduler that does not answer: soon told, exit 5, nothing left behind; a signal ends every wait."""

import signal
import socket
import subprocess
import sys
import threading

import pytest

import ibpdist as ibp
from ibpdist.base.errors import ClusterLost
from ibpdist.engine import cluster as clusters
from ibpdist.engine.cluster import probe
from tests.support.command import HOME, invoke

FIT = ["--system", "lg-vi-finite", "-K", "3"]
PATIENT = (
    f"import sys; sys.path.insert(0, {HOME!r}); from ibpdist.engine import cluster; cluster.ANSWER = 1e6"
)
WITHOUT_PROBE = f"{PATIENT}; cluster.probe = lambda address: None"
COMMAND = "from ibpdist.cli import main; main()"
SECONDS = 60
"""Within which a signalled command ends, on a loaded machine; on today's, half a second."""


@pytest.fixture
def silent():
    """A socket that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(clusters, "ANSWER", 0.3)
    monkeypatch.setattr(clusters, "REPORT_AFTER", 0.1)


def address_of(listening):
    return "tcp://{}:{}".format(*listening.getsockname())


def closed():
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return address_of(listening)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["silent", "closed"])
def test_it_is_told_and_given_up(silent, caplog, kind):
    address = address_of(silent) if kind == "silent" else closed()
    with pytest.raises(
        ClusterLost, match=rf"^scheduler {address}: cannot be reached: no answer within 0\.3 s$"
    ):
        probe(address)
    assert caplog.messages == [f"waiting for the scheduler at {address}"]


@pytest.mark.usefixtures("impatient")
def test_who_hangs_up_is_no_scheduler(silent):
    def hang_up():
        silent.accept()[0].close()

    with_nobody = threading.Thread(target=hang_up)
    with_nobody.start()
    with pytest.raises(ClusterLost, match=r"cannot be reached: "):
        probe(address_of(silent))
    with_nobody.join()


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("kind", ["silent", "closed"])
def test_nothing_is_left_behind(store, tmp_path, silent, kind):
    address = address_of(silent) if kind == "silent" else closed()
    (tmp_path / "grid.yaml").write_text(f"data: {store}\nsystem: lg-vi-finite\ntruncation: 3\n")
    for command in (
        ["fit", store, tmp_path / "run", *FIT],
        ["sweep", tmp_path / "grid.yaml", tmp_path / "run"],
        ["demo", tmp_path / "run"],
    ):
        result = invoke(*command, "--scheduler", address)
        assert result.exit_code == ClusterLost.code
        assert result.stderr.splitlines()[-1].startswith(f"ibpdist: scheduler {address}: cannot be reached")
        assert not (tmp_path / "run").exists()


@pytest.mark.usefixtures("impatient")
def test_what_was_there_is_not_overwritten(store, tmp_path):
    ibp.fit(store, system="lg-vi-finite", K=3, steps=3, run=tmp_path / "run")
    before = (tmp_path / "run/run.json").read_bytes()
    with pytest.raises(ClusterLost):
        ibp.fit(store, system="lg-vi-finite", K=3, run=tmp_path / "run", overwrite=True, scheduler=closed())
    assert (tmp_path / "run/run.json").read_bytes() == before


@pytest.mark.parametrize("setting", [PATIENT, WITHOUT_PROBE], ids=["probe", "client"])
@pytest.mark.parametrize(
    ("number", "code"),
    [pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow), (signal.SIGTERM, 143)],
    ids=["INT", "TERM"],
)
def test_a_signal_ends_the_wait(store, tmp_path, silent, setting, number, code):
    """Also the wait of Dask's client, which in its finaliser would wait for 240 s."""
    command = ["fit", store, tmp_path / "run", *FIT, "--scheduler", address_of(silent)]
    with subprocess.Popen(
        [sys.executable, "-c", f"{setting}; {COMMAND}", *map(str, command)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        connection, _ = silent.accept()
        process.send_signal(number)
        try:
            _, said = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
            connection.close()
    assert process.returncode == code
    assert "Traceback" not in said
    assert said.splitlines()[-1] == {130: "ibpdist: interrupted", 143: "ibpdist: terminated"}[code]
    if setting == PATIENT:
        assert not (tmp_path / "run").exists()
