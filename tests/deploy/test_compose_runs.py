"""Scheduler and worker of the compose file as processes of this machine: they meet and are healthy."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.tls import make_tls, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]
TEXT = (Path(__file__).parents[2] / "deploy" / "compose.yaml").read_text("utf-8")


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return str(free.getsockname()[1])


class Container:
    """A service as a process: names of hosts, ports and folders are those of this machine."""

    def __init__(self, name, room, port):
        health = free_port()
        places = {"/tls/": f"{room}/tls/", "=/scratch": f"={room}", "0.0.0.0": "127.0.0.1"}
        ports = {"8786": port, "8787": health, "scheduler:": "127.0.0.1:"}
        text = re.sub(r"\$\{(\w+):-([^}]*)\}", r"\2", TEXT)
        service = yaml.safe_load(text)["services"][name]
        self.command, self.check = service["command"], service["healthcheck"]["test"]
        for old, new in (places | ports).items():
            self.command = [part.replace(old, new) for part in self.command]
            self.check = [part.replace(old, new) for part in self.check]
        variables = {k: v.replace("/tls/", f"{room}/tls/") for k, v in service["environment"].items()}
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DASK_", "MALLOC_"))}
        self.environment = kept | variables
        self.log = room / f"{name}.log"

    def start(self):
        with self.log.open("wb") as log:
            arguments = [sys.executable, "-m", *self.command]
            self.process = subprocess.Popen(arguments, env=self.environment, stdout=log, stderr=log)

    def is_healthy(self):
        command = [sys.executable, *self.check[2:]]
        return subprocess.run(command, capture_output=True, check=False, timeout=30).returncode == 0

    def end(self):
        self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait(30)


def test_they_find_each_other_and_say_how_they_are(tmp_path):
    assert make_tls(tmp_path / "tls").returncode == 0
    port = free_port()
    scheduler, worker = (Container(name, tmp_path, port) for name in ("scheduler", "workers"))
    assert not scheduler.is_healthy()
    scheduler.start()
    try:
        wait_for(scheduler.is_healthy, 120)
        worker.start()
        try:
            wait_for(worker.is_healthy, 120)
            wait_for(lambda: "Register worker" in scheduler.log.read_text(), 60)
        finally:
            worker.end()
        assert not worker.is_healthy()
    finally:
        scheduler.end()
    said = scheduler.log.read_text() + worker.log.read_text()
    assert f"tls://127.0.0.1:{port}" in said
    assert "tcp://" not in said
    assert "Traceback" not in said, said
