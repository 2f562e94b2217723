"""python -m flows.campaign without a server: our lines only, our exit codes, and no server is started."""

import json
import re
import subprocess
import sys
import threading
import time
from importlib.metadata import version
from pathlib import Path

import psutil
import pytest

import ibpdist as ibp
from tests.support.prefect_server import quiet_environment

HERE = Path(__file__).parents[2]
GRID = """\
data: x.zarr
system: lg-vi-infinite
truncation: 5
steps: 3
holdout: 0.2
set: {moves: false, start: random}
"""


@pytest.fixture
def folder(tmp_path):
    ibp.synthesise("images", tmp_path / "x.zarr", rows=60, noise=0.1, seed=3, chunk_rows=20)
    (tmp_path / "night.yaml").write_text(GRID)
    (tmp_path / "prefect").mkdir()
    return tmp_path


def start(folder, *arguments, **variables):
    return subprocess.Popen(
        [sys.executable, "-m", "flows.campaign", *map(str, arguments)],
        env=quiet_environment(folder / "prefect", **variables),
        cwd=HERE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Watch(threading.Thread):
    """What a process starts and which ports it opens, looked at again and again while it lives."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.process, self.children, self.ports = psutil.Process(pid), set(), set()

    def run(self):
        try:
            while self.process.status() != psutil.STATUS_ZOMBIE:
                self.children |= {" ".join(one.cmdline()) for one in self.process.children(recursive=True)}
                connections = self.process.net_connections("inet")
                self.ports |= {one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN}
                time.sleep(0.02)
        except psutil.Error:
            return


def test_it_prints_our_lines_and_starts_nothing(folder):
    process = start(folder, folder / "night.yaml", "--serial")
    watch = Watch(process.pid)
    watch.start()
    out, err = process.communicate(timeout=200)
    watch.join(10)
    assert process.returncode == 0, err
    assert (watch.children, watch.ports) == (set(), set())
    assert list((folder / "prefect").iterdir()) == [], "Prefect has no database and no settings here"
    page = folder / "night.run" / "report.html"
    assert page.is_file()
    assert out.splitlines()[-1] == f"report: {page}"
    assert out.splitlines()[0].endswith("by the held-out score the best: lg-vi-infinite, K = 5, restart 0")
    assert all(line.startswith("sweep: ") for line in err.splitlines())
    assert not re.search(r"prefect|server|warn|http", out + err, re.IGNORECASE)


SLOW = pytest.mark.slow
"""One wrong option and one wrong place are enough for every day; a process imports Prefect for seconds."""


@pytest.mark.parametrize(
    ("change", "arguments", "code", "said"),
    [
        ("truncation: 5", ["--workers", "0"], 2, "see python -m flows.campaign --help"),
        pytest.param(
            "truncation: 5\ntrunk: 3",
            ["--serial"],
            2,
            "night.yaml: line 4: trunk: unknown key",
            marks=SLOW,
        ),
        ("truncation: 5", ["--source", "nothing.csv", "--serial"], 6, "x.zarr: holds data of"),
        pytest.param(
            "truncation: 5",
            ["--scheduler", "tcp://10.0.0.1:8786"],
            2,
            "not on this machine and without TLS",
            marks=SLOW,
        ),
    ],
)
def test_failures_are_one_line_and_an_exit_code(folder, change, arguments, code, said):
    (folder / "night.yaml").write_text(GRID.replace("truncation: 5", change))
    process = start(folder, folder / "night.yaml", folder / "run", *arguments)
    out, err = process.communicate(timeout=200)
    assert process.returncode == code
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("ibpdist: ")
    assert said in err


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("notaurl", 2, "PREFECT_API_URL is 'notaurl': expected an address"),
        ("http://127.0.0.1:9/api", 5, "no Prefect server can be reached at http://127.0.0.1:9/api"),
    ],
)
def test_a_server_that_is_not_there_is_one_line_and_an_exit_code(folder, url, code, said):
    process = start(folder, folder / "night.yaml", folder / "run", PREFECT_API_URL=url)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out, err.count("\n")) == (code, "", 1)
    assert err.startswith(f"ibpdist: {said}")
    assert "unset PREFECT_API_URL" in err
    assert not (folder / "run").exists()


def test_a_fresh_interpreter_imports_it_with_versions_that_work():
    """FastAPI from 0.151 on breaks every flow, SQLAlchemy 2.1 the schedules of a server."""
    code = "import json, flows.campaign as c; print(json.dumps([c.campaign.name, type(c.campaign).__name__]))"
    done = subprocess.run(
        [sys.executable, "-W", "error::DeprecationWarning:flows", "-c", code],
        cwd=HERE,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert json.loads(done.stdout) == ["campaign", "Flow"]
    assert done.stderr == ""
    numbers = {name: tuple(int(n) for n in version(name).split(".")[:2]) for name in LIMITS}
    for name, (least, below) in LIMITS.items():
        assert least <= numbers[name] < below, f"{name} {version(name)}"


LIMITS = {"prefect": ((3, 8), (4, 0)), "fastapi": ((0, 139), (0, 151)), "sqlalchemy": ((2, 0), (2, 1))}
