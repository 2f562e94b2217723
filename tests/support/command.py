"""The command `ibpdist`: called in this process, or started as a process of its own."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

import ibpdist
from ibpdist.cli import main

HOME = str(Path(ibpdist.__file__).parents[1])
"""The folder from which another process can import the package."""
START = f"import sys; sys.path.insert(0, {HOME!r}); from ibpdist.cli import main; sys.exit(main())"


def invoke(*arguments: object) -> Result:
    """`ibpdist ARGUMENTS` in this process."""
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def program(*arguments: object) -> list[str]:
    """The words that start `ibpdist ARGUMENTS` as a process."""
    return [sys.executable, "-c", START, *map(str, arguments)]


def start(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """`ibpdist ARGUMENTS` in a process of its own; its output is in pipes unless told otherwise."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(program(*arguments), **(pipes | options))
