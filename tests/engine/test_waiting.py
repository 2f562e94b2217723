"""A scheduler without workers: the wait is reported, it ends after a while, and a signal ends it at once."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ibpdist as ibp
from ibpdist.base.errors import ClusterLost
from ibpdist.engine import cluster as clusters
from ibpdist.engine.cluster import attached
from ibpdist.engine.place import Place

HOME = Path(__file__).parents[2]
SECONDS = 60
"""Within which a signalled command ends, on a loaded machine; without the signal it waits for 120 s."""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """The address of a scheduler that has no workers."""
    file = tmp_path_factory.mktemp("scheduler") / "scheduler.json"
    command = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--no-dashboard",
    ]
    with subprocess.Popen(
        [*command, "--port", "0", "--scheduler-file", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            while not file.exists():
                assert process.poll() is None
                time.sleep(0.05)
            yield json.loads(file.read_text())["address"]
        finally:
            process.kill()


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(clusters, "START", 3.0)
    monkeypatch.setattr(clusters, "REPORT_AFTER", 0.1)
    monkeypatch.setattr(clusters, "REPORT_EVERY", 0.1)


def waiting(address):
    return f"waiting for workers of {address}: none yet, giving up in "


def test_the_first_report_comes_soon():
    assert clusters.REPORT_AFTER <= 3


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_the_wait_is_reported_and_given_up(scheduler):
    reports = []
    with (
        pytest.raises(ClusterLost, match=rf"^scheduler {scheduler}: 0 of 1 workers came within 3 s$"),
        attached(scheduler, tell=reports.append),
    ):
        raise AssertionError
    assert len(reports) > 1
    assert all(report.startswith(waiting(scheduler)) for report in reports)


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_without_progress_it_is_logged(scheduler, caplog):
    with pytest.raises(ClusterLost), Place(scheduler=scheduler).cluster():
        raise AssertionError
    assert caplog.messages[0].startswith(waiting(scheduler))


@pytest.mark.slow
@pytest.mark.usefixtures("impatient")
def test_a_campaign_reports_it(scheduler, store, tmp_path):
    statuses = []
    grid = {"data": str(store), "system": "lg-vi-finite", "truncation": 3}
    with pytest.raises(ClusterLost):
        ibp.sweep(grid, tmp_path / "run", scheduler=scheduler, progress=statuses.append)
    assert any(status.waiting.startswith(waiting(scheduler)) for status in statuses)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("command", ["fit", "sweep"])
def test_a_signal_ends_the_wait(scheduler, store, tmp_path, command, number, code):
    (tmp_path / "grid.yaml").write_text(f"data: {store}\nsystem: lg-vi-finite\ntruncation: 3\n")
    words = {
        "fit": ["fit", store, tmp_path / "run", "--system", "lg-vi-finite", "-K", "3"],
        "sweep": ["sweep", tmp_path / "grid.yaml", tmp_path / "run"],
    }[command]
    call = f"import sys; sys.path.insert(0, {str(HOME)!r}); from ibpdist.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", call, *map(str, words), "--scheduler", scheduler],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            lines = []
            while not lines or waiting(scheduler) not in lines[-1]:
                lines.append(process.stderr.readline())
                assert lines[-1], lines
            process.send_signal(number)
            _, rest = process.communicate(timeout=SECONDS)
        finally:
            process.kill()
    assert process.returncode == code
    assert "Traceback" not in rest
