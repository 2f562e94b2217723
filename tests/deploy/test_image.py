"""The image: what its Dockerfile says, and its build steps run as a shell."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import ibpdist
from tests.support.dockerfile import Shell, assigned, outside, stages

ROOT = Path(__file__).parents[2]
BUILD, FINAL = stages(ROOT / "deploy" / "Dockerfile")


def taken_from(name):
    """A file or folder of the checkout; the package may be installed and not here (.ci/run)."""
    here = ROOT / name
    return here if here.exists() or name != "ibpdist" else Path(ibpdist.__file__).parent


def copied(stage):
    return [part for text in stage.all("COPY") if "--from" not in text for part in text.split()[:-1]]


def test_nothing_is_installed_without_a_hash_but_our_own_wheel():
    installs = [part for text in BUILD.all("RUN") for part in text.split("&&") if "pip install" in part]
    assert len(installs) == 3
    for install in installs:
        assert ("--require-hashes" in install) != ("--no-deps dist/*.whl" in install), install


def test_the_tools_of_the_build_have_hashes():
    lock = (ROOT / "deploy" / "build.lock").read_text("utf-8")
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    names = re.findall(r"^([a-z0-9._-]+)==[^ ]+ \\\n    --hash", lock, re.MULTILINE)
    assert {re.split("[^a-z]", one)[0] for one in wanted} <= set(names)
    assert len(names) == len(re.findall(r"^[a-z]", lock, re.MULTILINE))
    assert "://" not in lock


def test_it_runs_as_nobody_in_particular():
    (user,) = FINAL.all("USER")
    assert user == "10001:10001"
    words = [word for word, _ in FINAL.steps]
    assert words.index("USER") > max(at for at, word in enumerate(words) if word in ("RUN", "COPY"))
    (made,) = FINAL.all("RUN")
    assert "useradd --uid 10001 " in made
    assert "-m 0700 /data /scratch /tls" in made, "volumes take their owner from here"


def test_it_brings_no_tools_of_the_build():
    (taken,) = [text for text in FINAL.all("COPY") if "--from" in text]
    assert taken == "--from=build /venv /venv"
    assert FINAL.base == BUILD.base == "${PYTHON}"


def test_what_it_takes_is_there_and_is_let_in():
    entries = outside(ROOT / "deploy" / "Dockerfile.dockerignore")
    for name in copied(BUILD) + copied(FINAL):
        assert taken_from(name).exists(), name
        assert Path(name).parts[0] in entries, name


def test_it_writes_to_tmp_only():
    variables = assigned(" ".join(FINAL.all("ENV")))
    for name in ("HOME", "NUMBA_CACHE_DIR", "PREFECT_HOME"):
        assert variables[name].startswith("/tmp"), name
    assert variables["PREFECT_SERVER_ANALYTICS_ENABLED"] == "false"
    assert "secret" not in str(variables).lower()


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_build_steps_make_an_environment_that_works(tmp_path):
    """Needs a package index; skipped without."""
    if shutil.which("python3.11") is None:
        pytest.skip("python3.11 is not on the path")
    shell, context = Shell(tmp_path / "root", tmp_path / "context"), tmp_path / "context"
    shell.root.mkdir()
    for name in copied(BUILD):
        place = context / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(taken_from(name))
    for word, text in BUILD.steps:
        if word != "RUN":
            shell.run(word, text)
            continue
        done = shell.run_(text)
        if done.returncode and "No matching distribution found" in done.stderr:
            pytest.skip("no package index can be reached")
        assert done.returncode == 0, done.stdout + done.stderr
    room = tmp_path / "room"
    shutil.copytree(ROOT / "flows", room / "flows")
    python = shell.root / "venv" / "bin" / "python"
    code = "import ibpdist, flows.campaign; print(ibpdist.__file__)"
    done = subprocess.run(
        [python, "-c", code], cwd=room, capture_output=True, text=True, check=True, timeout=200
    )
    assert done.stdout.startswith(str(shell.root / "venv")), "the wheel, not a checkout"
    done = subprocess.run(
        [python.with_name("ibpdist"), "systems"], capture_output=True, text=True, timeout=100, check=True
    )
    assert "lg-vi-infinite" in done.stdout
    assert Path(sys.executable) != python
