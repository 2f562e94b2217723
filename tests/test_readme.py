"""The README says what is true: its table is the catalog, its code runs, its commands exist."""

import contextlib
import io
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

import ibpdist
from ibpdist.catalog.systems import SYSTEMS, settings_of
from ibpdist.cli import main
from ibpdist.evaluate.recovery import recovery
from ibpdist.runs.variables import GROUPS, Group

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
LINES = [line.strip() for line in README.splitlines() if line.startswith("    ")]
SAMPLED = ("posterior", "draws", "diagnostics")
UNNAMED = ("posterior", "trace", "diagnosis", "internals")
"""Groups without names of variables in the tables: many, not in every result, or in a table of their own."""
PARTS = [part.strip() for line in LINES for part in line.split("&&")]
COMMANDS = [part for part in PARTS if part.startswith("ibpdist ")]


def table(header: str) -> list[list[str]]:
    """The cells of the table that begins with a header."""
    _, _, rest = README.partition(f"| {header} |")
    lines = rest.partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines]


def test_the_table_of_systems_is_the_catalog() -> None:
    rows = [[row.name, row.prior, row.weights, row.observation, row.summary] for row in SYSTEMS.values()]
    wanted = "\n".join(f"| `{name}` | {' | '.join(rest)} |" for name, *rest in rows)
    assert table("system") == rows, f"the table should be\n{wanted}"


def test_the_table_of_settings_has_every_setting() -> None:
    known = {name for system in SYSTEMS for name in settings_of(system)}
    assert {row[0] for row in table("setting")} == known


def tables_of_variables() -> list[list[str]]:
    """The lines of the tables of result variables, in the order of the README."""
    lines = README.splitlines()
    return [line for line in lines if re.match(r"\| `/", line)]


def line_of(group: Group) -> str:
    names = "" if group.name in UNNAMED else " " + ", ".join(f"`{one.name}`" for one in group.variables)
    return f"| `/{group.name}`{names} | {group.dims} | {group.sentence} |"


def lines_of(group: Group) -> list[str]:
    return [
        f"| `/{group.name}` `{one.name}` | {', '.join(one.dims.split())} | {one.sentence} |"
        for one in group.variables
    ]


def test_the_tables_of_variables_are_those_of_results() -> None:
    samplers = [line_of(GROUPS[name]) for name in (*SAMPLED, "trace")]
    ours = [line for name in ("params", "rows") for line in lines_of(GROUPS[name])]
    others = [line_of(group) for name, group in GROUPS.items() if name not in ("params", "rows", *SAMPLED)]
    wanted = [line.replace("|  |", "| |") for line in (*samplers, *ours, *others)]
    assert tables_of_variables() == wanted, "the lines should be\n" + "\n".join(wanted)


@pytest.mark.slow
def test_the_first_fit_runs_and_finds_the_shapes() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    held: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(code, "README.md", "exec"), held)
    assert said.getvalue().startswith("4 features\n")
    assert int(recovery(held["result"], held["data"]).recovered) == 4


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_readme_is_parsed(line: str) -> None:
    name, *args = shlex.split(line)[1:]
    command = main.commands[name]
    context = command.make_context(name, args)
    assert isinstance(context, click.Context)


def test_the_readme_shows_most_commands() -> None:
    shown = {shlex.split(line)[1] for line in COMMANDS}
    assert set(main.commands) - shown <= {"systems"}


def test_what_it_names_exists() -> None:
    package, root = Path(ibpdist.__file__).parent, Path(__file__).parents[1]
    named = set(re.findall(r"\b((?:ibpdist|tests)/[\w/.-]*\w/?)", README)) | {"requirements.lock", ".ci/run"}
    assert {
        "ibpdist/mathematics/README.md",
        "ibpdist/catalog/systems.py",
        "tests/benchmarks/passes.py",
    } <= named
    for name in named:
        inside = name.startswith("ibpdist/")
        assert (package / name.removeprefix("ibpdist/") if inside else root / name).exists(), name


def test_the_folders_it_explains_hold_something() -> None:
    package, root = Path(ibpdist.__file__).parent, Path(__file__).parents[1]
    folders = [name for row in table("where | what") for name in re.findall(r"[\w/]+/", row[0])]
    assert {"ibpdist/data/", "ibpdist/model/", "tests/"} <= set(folders)
    for name in folders:
        inside = (package / name.removeprefix("ibpdist/")).is_dir()
        home = package / name.removeprefix("ibpdist/") if inside else root / name
        assert any(path.is_file() for path in home.iterdir()), name


def test_the_public_names_it_lists_are_all() -> None:
    listed = README.partition("Also in `ibp`:")[2].partition("\n\n")[0]
    names = {*re.findall(r"`(\w+)`", listed), *re.findall(r"\bibp\.(\w+)\(", README)}
    assert names == set(ibpdist.__all__) - {"__version__"}
