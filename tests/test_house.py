"""The house rules that a linter cannot hold: who imports what, how long things get, what is light."""

import ast
import re
import statistics
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import ibpdist
from ibpdist.catalog import systems

PACKAGE = Path(ibpdist.__file__).parent
ROOT = Path(__file__).parents[1]
CODE = {f"ibpdist/{path.relative_to(PACKAGE)}": path for path in sorted(PACKAGE.rglob("*.py"))}
CODE |= {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "flows").rglob("*.py"))}
TESTS = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "tests").rglob("*.py"))}

STORED = tuple(f"ibpdist/{room}/" for room in ("storage", "data", "predict", "runs", "evaluate", "campaigns"))
HOMES = {
    "dask": ("ibpdist/engine/",),
    "distributed": ("ibpdist/engine/",),
    "prefect": ("flows/",),
    "zarr": STORED,
    "xarray": STORED,
    "numba": ("ibpdist/kernels/",),
}
ROOMS = (
    "kernels", "base", "storage", "data", "model", "inference", "catalog",
    "engine", "predict", "runs", "evaluate", "campaigns", "report", "cli",
)  # fmt: skip
"""Folders of the package: each imports only from itself and from those before it."""
PICKLES = {"pickle", "_pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}
HEAVY = {*HOMES, "numpy", "scipy", "pandas", "pydantic", "yaml", "rich", "matplotlib", "arviz_stats"}


@cache
def tree_of(name: str) -> ast.Module:
    return ast.parse((CODE | TESTS)[name].read_text("utf-8"))


def imports(tree: ast.AST) -> Iterator[str]:
    """Top-level names of all imported modules, but for those that only annotations need."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
        yield from imports(node)


def strangers(name: str, tree: ast.AST) -> set[str]:
    """Libraries that a file of the package imports although they live elsewhere."""
    used = set(imports(tree))
    homeless = {library for library, homes in HOMES.items() if not name.startswith(homes)}
    return used & (homeless | PICKLES)


def functions(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Name and length of every function, its docstring not counted."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            yield node.name, length - (text.count("\n") + 1 if text else 0)


def rooms_of(tree: ast.AST) -> Iterator[str]:
    """Folders of the package that a file imports from, also for annotations."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        yield from (name.split(".")[1] for name in named if name.startswith("ibpdist."))


def rooms_above(room: str, tree: ast.AST) -> set[str]:
    """Folders after its own that a file imports from."""
    after = set(ROOMS[ROOMS.index(room) + 1 :])
    return after & set(rooms_of(tree))


INSIDE = [name for name in CODE if name.startswith("ibpdist/") and name.count("/") > 1]


def test_a_room_imports_only_from_those_before_it() -> None:
    above = {name: rooms_above(name.split("/")[1], tree_of(name)) for name in INSIDE}
    assert {name: rooms for name, rooms in above.items() if rooms} == {}


@pytest.mark.parametrize(
    ("room", "text", "found"),
    [
        ("data", "from ibpdist.runs.result import open_result", {"runs"}),
        ("data", "def f():\n    import ibpdist.cli.fits", {"cli"}),
        ("model", "from ibpdist import catalog", {"catalog"}),
        ("runs", "from ibpdist.base import errors\nfrom ibpdist.runs import result", set()),
    ],
)
def test_an_import_from_above_is_found(room: str, text: str, found: set[str]) -> None:
    assert rooms_above(room, ast.parse(text)) == found


MEMBERS = {
    member.name
    for registry in (systems._priors(), systems._weights(), systems._observations())
    for member in registry.values()
}
OWN_FILES = ("ibpdist/model/priors/", "ibpdist/model/weights/", "ibpdist/model/observations/")


def compared(tree: ast.AST) -> Iterator[object]:
    """Constants that a file compares something with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in ast.walk(node):
                if isinstance(side, ast.Constant):
                    yield side.value


def test_nothing_is_compared_with_the_name_of_a_member() -> None:
    """Members of the axes say what they are; other files ask them."""
    others = [name for name in CODE if not name.startswith(OWN_FILES)]
    found = {name: MEMBERS & {v for v in compared(tree_of(name)) if isinstance(v, str)} for name in others}
    assert {name: members for name, members in found.items() if members} == {}


def test_a_comparison_with_a_name_is_found() -> None:
    assert MEMBERS & set(compared(ast.parse("if model.prior.name in ('buffet', 3): pass"))) == {"buffet"}


def test_every_folder_of_the_package_is_a_room() -> None:
    folders = {name.split("/")[1] for name in INSIDE}
    assert folders == set(ROOMS)
    assert [name for name in CODE if name.startswith("ibpdist/") and name.count("/") == 1] == [
        "ibpdist/__init__.py"
    ]


def test_a_library_is_imported_only_where_it_lives() -> None:
    found = {name: strangers(name, tree_of(name)) for name in CODE}
    assert {name: libraries for name, libraries in found.items() if libraries} == {}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("ibpdist/model/model.py", "import numba", {"numba"}),
        ("ibpdist/model/model.py", "def f():\n    from dask.base import compute", {"dask"}),
        ("ibpdist/engine/dask.py", "from distributed import Client\nimport prefect", {"prefect"}),
        ("ibpdist/runs/result.py", "import xarray as xr, pickle", {"pickle"}),
        ("ibpdist/runs/fit.py", "if TYPE_CHECKING:\n    import xarray", set()),
        ("flows/fit.py", "import prefect\nimport zarr.storage", {"zarr"}),
    ],
)
def test_a_stranger_is_found(name: str, text: str, found: set[str]) -> None:
    assert strangers(name, ast.parse(text)) == found


def test_every_library_that_is_imported_is_declared() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    main, test = project["dependencies"], extras["test"] + extras["benchmark"]
    optional, with_pydantic = extras["anndata"], {"pydantic_core"}
    for files, declared in ((CODE, main + optional), (TESTS, main + test + optional)):
        used = {library for name in files for library in imports(tree_of(name))}
        foreign = used - sys.stdlib_module_names - {"ibpdist", "tests", "flows"} - with_pydantic
        known = {re.split(r"[^A-Za-z0-9_-]", text)[0].lower() for text in declared}
        # They need not be installed.
        homes = {"sklearn": ["scikit-learn"], "h5py": ["h5py"]} | packages_distributions()
        assert {library for library in foreign if not known & {d.lower() for d in homes[library]}} == set()


def test_the_lock_holds_every_dependency_with_hashes() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = project["dependencies"] + project["optional-dependencies"]["test"]
    names = {re.split(r"[^A-Za-z0-9_-]", text)[0].lower() for text in declared}
    lock = (ROOT / "requirements.lock").read_text("utf-8")
    entries = dict(re.findall(r"^([a-z0-9._-]+)==(.*(?:\n    --hash.*)+)", lock, re.MULTILINE))
    assert names - entries.keys() == set()
    assert len(re.findall(r"^[^ #\n]", lock, re.MULTILINE)) == len(
        re.findall(r"^[^ #\n].*\\\n    --hash", lock, re.MULTILINE)
    )
    assert "://" not in lock
    assert "--index" not in lock
    assert "--find-links" not in lock


def test_nothing_is_too_long_to_read() -> None:
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in CODE.items()}
    assert {name: count for name, count in lines.items() if count > 400} == {}
    lengths = [(name, *found) for name in (*CODE, *TESTS) for found in functions(tree_of(name))]
    assert [(name, function, length) for name, function, length in lengths if length > 50] == []


def test_most_things_are_short() -> None:
    files = [len(path.read_text("utf-8").splitlines()) for path in CODE.values()]
    lengths = [length for name in CODE for _, length in functions(tree_of(name))]
    assert statistics.median(size for size in files if size) <= 175
    assert statistics.mean(lengths) <= 13


def test_there_is_at_least_as_much_test_as_code() -> None:
    code, tests = (
        sum(len(path.read_text("utf-8").splitlines()) for path in files.values()) for files in (CODE, TESTS)
    )
    assert tests >= code


def test_a_file_says_what_it_is_and_leaves_nothing_open() -> None:
    texts = {name: path.read_text("utf-8") for name, path in CODE.items()}
    assert [name for name, text in texts.items() if text and not ast.get_docstring(tree_of(name))] == []
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    assert [name for name, text in texts.items() if later.search(text)] == []
    # A function that numba overloads for compiled code has a body that raises.
    unwritten = [name for name, text in texts.items() if "NotImplementedError" in text]
    assert [name for name in unwritten if not name.startswith("ibpdist/kernels/")] == []


def test_no_file_names_a_place_of_one_machine() -> None:
    machine = re.compile(r"/(home|root|opt|work|Users)/|pypi\.[a-z]|pythonhosted")
    kept = [
        *ROOT.glob("*.*"),
        *ROOT.glob(".ci/*"),
        *ROOT.glob("deploy/**/*"),
        *CODE.values(),
        *TESTS.values(),
    ]
    texts = {path: path.read_text("utf-8", "replace") for path in kept if path.is_file()}
    del texts[Path(__file__)]
    texts.pop(ROOT / ".git", None)  # of a worktree: a file that names its repository
    assert {path.name: match[0] for path, text in texts.items() if (match := machine.search(text))} == {}


@pytest.mark.parametrize("first", ["ibpdist.evaluate", "ibpdist.evaluate.heldout", "ibpdist.runs.fit", "sys"])
def test_evaluate_can_be_called_whatever_was_imported_before(first: str) -> None:
    call = "import ibpdist; print(ibpdist.evaluate.__name__, callable(ibpdist.evaluate))"
    lines = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import {first}; {call}"
    done = subprocess.run(
        [sys.executable, "-c", lines], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["ibpdist.evaluate", "True"]


@pytest.mark.parametrize("module", ["ibpdist", "ibpdist.cli"])
def test_importing_is_light(module: str) -> None:
    seen = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); import {module}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", seen], capture_output=True, text=True, check=True, timeout=60
    )
    assert {name.partition(".")[0] for name in done.stdout.split()} & HEAVY == set()


def test_public_names_are_found_when_they_are_used() -> None:
    for name in ibpdist.__all__:
        assert getattr(ibpdist, name) is not None
        assert name in dir(ibpdist)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = ibpdist.nothing
