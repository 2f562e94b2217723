"""A Prefect server of a test, with a process pool and a worker: on loopback, in a folder, gone at the end."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil

HERE = Path(__file__).parents[2]
POOL = "ibpdist"
PATIENT = {
    "PREFECT_SERVER_DATABASE_TIMEOUT": "60",
    "PREFECT_SERVER_SERVICES_SCHEDULER_LOOP_SECONDS": "5",
    "PREFECT_WORKER_QUERY_SECONDS": "2",
}
"""A busy machine, and schedules that are looked at more often than each minute."""


def quiet_environment(home, **more):
    """The environment of a process that uses Prefect with nothing of the user's, and tells nobody."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "DASK_"))}
    ours = {
        "PREFECT_HOME": str(home),
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "DO_NOT_TRACK": "1",
        "PREFECT_CLI_COLORS": "false",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return kept | ours | more


class PrefectServer:
    """A server with its processes, by the ids under which they were started."""

    def __init__(self, home):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.home, self.url = home, f"http://127.0.0.1:{self.port}/api"
        self.environment = quiet_environment(home, PREFECT_API_URL=self.url)
        self.environment |= PATIENT
        self.started = []

    def start(self):
        command = ["server", "start", "--host", "127.0.0.1", "--port", str(self.port)]
        self._start("server", command)
        self.wait(self.is_up, 120)

    def start_worker(self):
        """A worker of the pool; the id of its process."""
        return self._start("worker", ["worker", "start", "--pool", POOL, "--type", "process"])

    def workers(self):
        """Processes of workers that live."""
        return [process for process in self.started if "worker" in process.args and process.poll() is None]

    def prefect(self, *arguments, **variables):
        """One command of Prefect."""
        done = subprocess.run(
            [sys.executable, "-m", "prefect", "--no-prompt", *map(str, arguments)],
            env=self.environment | variables,
            cwd=HERE,
            capture_output=True,
            text=True,
            check=False,
            timeout=180,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def ask(self, path, body=None, method=None):
        """What the API answers; asked again while the database is locked."""
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(
            f"{self.url}/{path}", data, {"Content-Type": "application/json"}, method=method
        )
        for _ in range(30):
            try:
                with urllib.request.urlopen(asked, timeout=60) as answer:
                    text = answer.read()
                return json.loads(text) if text else None
            except urllib.error.HTTPError as error:
                if error.code != 503:
                    raise
                time.sleep(1)
        raise AssertionError(f"{path}: unavailable for half a minute")

    def is_up(self):
        try:
            return self.ask("health")
        except (urllib.error.URLError, OSError):
            return False

    def wait(self, happened, seconds=90.0, pause=0.2):
        """Until something is true; what it was then."""
        deadline = time.monotonic() + seconds
        while not (found := happened()):
            assert time.monotonic() < deadline, f"not in {seconds:g} s\n{self.logs()}"
            time.sleep(pause)
        return found

    def logs(self):
        texts = {file.name: file.read_text(errors="replace")[-6000:] for file in self.home.glob("*.log")}
        return "\n".join(f"== {name}\n{text}" for name, text in texts.items())

    def close(self):
        """End every process that was started, and those that they started."""
        family = []
        for process in self.started:
            with contextlib.suppress(psutil.Error):
                family += [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]
        for process in family:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(family, timeout=30)
        for process in self.started:
            process.wait(30)

    def _start(self, name, arguments):
        log = (self.home / f"{name}-{len(self.started)}.log").open("wb")
        with log:
            process = subprocess.Popen(
                [sys.executable, "-m", "prefect", *arguments],
                env=self.environment,
                cwd=self.home,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.started.append(process)
        return process
