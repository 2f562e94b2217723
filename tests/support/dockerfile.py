"""A Dockerfile as a list of steps, and its build steps run as a shell in a folder instead of a container."""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """A stage: where it begins, and its instructions in order."""

    base: str
    name: str = ""
    steps: list = field(default_factory=list)

    def all(self, word):
        return [text for one, text in self.steps if one == word]


def stages(path):
    """The stages of a Dockerfile; ARG before the first one is left out."""
    text = re.sub(r"^#.*\n", "", path.read_text("utf-8"), flags=re.MULTILINE)
    found = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            found.append(Stage(base, name))
        elif word and found:
            found[-1].steps.append((word, rest.strip()))
    return found


def assigned(text):
    """NAME=VALUE pairs of an ENV instruction."""
    return dict(re.findall(r"(\w+)=(\S+)", text))


class Shell:
    """Runs ENV, WORKDIR, COPY and RUN below `root`, with `context` as the folder of the build."""

    def __init__(self, root, context):
        self.root, self.context = root, context
        self.directory, self.variables = root, {}

    def run(self, word, text):
        getattr(self, word.lower())(text)

    def env(self, text):
        for name, value in assigned(text).items():
            self.variables[name] = self._inside(value).replace("$PATH", os.environ["PATH"])

    def workdir(self, text):
        self.directory = self.root / text.lstrip("/")
        self.directory.mkdir(parents=True, exist_ok=True)

    def copy(self, text):
        *sources, target = text.split()
        for source in sources:
            place = self.directory / target
            if (self.context / source).is_dir():
                shutil.copytree(self.context / source, place, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(self.context / source, place if target != "./" else self.directory)

    def run_(self, text):
        return subprocess.run(
            ["bash", "-ec", self._inside(text)],
            cwd=self.directory,
            env=os.environ | self.variables,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
        )

    def _inside(self, text):
        return re.sub(r"(?<![\w.$/])/(venv|tools|src)\b", lambda found: f"{self.root}/{found[1]}", text)


def outside(path: Path) -> list[str]:
    """Patterns of a .dockerignore, those that let something in without their `!`."""
    lines = path.read_text("utf-8").splitlines()
    assert lines[0] == "*", "everything is left out that is not named"
    return [line[1:] for line in lines if line.startswith("!")]
