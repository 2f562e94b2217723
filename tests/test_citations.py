"""Citations of the mathematics: each names a page and a section that exist, and the pages hang together.

A docstring or a comment cites a section as `PAGE.md NUMBER`, several sections as `PAGE.md NUMBER, NUMBER`.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

import ibpdist

PACKAGE, ROOT = Path(ibpdist.__file__).parent, Path(__file__).parents[1]
FOLDER = PACKAGE / "mathematics"
INDEX = "README.md"
PAGES = {path.name: path.read_text("utf-8") for path in sorted(FOLDER.glob("*.md"))}
CODE = {f"ibpdist/{path.relative_to(PACKAGE)}": path for path in sorted(PACKAGE.rglob("*.py"))}
CODE |= {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "flows").rglob("*.py"))}
TESTS = {str(path.relative_to(ROOT)): path for path in sorted((ROOT / "tests").rglob("*.py"))}
del TESTS["tests/test_citations.py"]

HEADING = re.compile(r"^## (\d+)\. \S.*$", re.MULTILINE)
CITATION = re.compile(r"\b([A-Za-z][\w-]*\.md)\b(?:[ \n]\s*(\d+(?:, \d+)*)\b)?")
FOREIGN = re.compile(
    r"\bDESIGN\b|\bmath/|\b(?:vibp|sbbp|nsfa|ribp|ddibp)(?:\.md|\b,?\s+(?:E?\d|section))"
    r"|\.md,? (?:section\b|[A-Z]+\d*\b|\d+ ?[A-Za-z]\b|\d+\.\d)|\b(?:mathematics|house|starts|factors2)\.md\b"
)
CITES = re.compile(r"\.md\b|DESIGN|math/|vibp|sbbp|nsfa|ribp|ddibp")
"""What every citation has in it, right or wrong: files without it need not be read."""
LINK = re.compile(r"\]\(([^)\s]+)\)(?:,\s+sections?\s+(\d+(?:, \d+)*))?")
OWN = re.compile(r"\bsections?\s+(\d+(?:(?:, | and | or | to )\d+)*)")
NAME = re.compile(r"`([A-Za-z_][\w.]*)`")


def prose(text: str) -> Iterator[str]:
    """Docstrings, strings that stand alone beneath a constant, and comments, adjoining ones as one."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)
    lines: list[str] = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines.append(token.string.lstrip("# "))
        elif token.type not in (tokenize.NL, tokenize.NEWLINE) and lines:
            yield "\n".join(lines)
            lines = []
    yield "\n".join(lines)


def sections(pages: Mapping[str, str]) -> dict[str, list[int]]:
    """Numbers of the sections of each page, in their order."""
    return {name: [int(number) for number in HEADING.findall(text)] for name, text in pages.items()}


def unresolved(text: str, known: Mapping[str, list[int]]) -> list[str]:
    """What the prose of a source file cites that is not there, or does not cite as it should."""
    found = []
    for part in prose(text) if CITES.search(text) else ():
        found += [match[0] for match in FOREIGN.finditer(part)]
        for page, numbers in CITATION.findall(part):
            if (page, numbers) == (INDEX, ""):
                continue  # the name of a file, which is cited nowhere
            there = page in known and {int(number) for number in numbers.split(", ") if number} <= {
                *known[page]
            }
            if not (numbers and there):
                found.append(f"{page} {numbers}".strip())
    return found


def broken_links(name: str, pages: Mapping[str, str], known: Mapping[str, list[int]]) -> list[str]:
    """What a page refers to that is not there: pages, sections of pages, and sections of itself."""
    named = LINK.findall(pages[name]) + [one for one in CITATION.findall(pages[name]) if one[1]]
    named += [(name, numbers) for numbers in OWN.findall(LINK.sub("", pages[name]))]
    found = []
    for target, numbers in named:
        wanted = {int(number) for number in re.findall(r"\d+", numbers)}
        if "://" not in target and (target not in pages or not wanted <= {*known[target]}):
            found.append(f"{target} {numbers}".strip())
    return found


def reachable(pages: Mapping[str, str]) -> set[str]:
    """Pages that links lead to from the index."""
    seen, left = set(), [INDEX]
    while left:
        page = left.pop()
        if page not in seen and page in pages:
            seen.add(page)
            left += [target for target, _ in LINK.findall(pages[page])]
    return seen


def implementing(text: str) -> set[str]:
    """Names in the lines of a page that begin with "Code:", up to the empty line that ends them."""
    parts = re.findall(r"^Code: (.*?)(?:\n\n|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name for part in parts for name in NAME.findall(part)}


@cache
def defined() -> set[str]:
    """Names of functions, classes, constants and methods of the package, methods with their class as well."""
    found: set[str] = set()
    for name, path in CODE.items():
        if not name.startswith("ibpdist/"):
            continue
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                inside = (one.name for one in node.body if isinstance(one, ast.FunctionDef))
                found |= {node.name, *(f"{node.name}.{method}" for method in inside)}
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(node.name)
        found |= {
            one.id
            for node in tree.body
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for one in ast.walk(node)
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)
        }
    return found


def test_every_citation_resolves() -> None:
    known = sections(PAGES)
    lost = {name: unresolved(path.read_text("utf-8"), known) for name, path in (CODE | TESTS).items()}
    assert {name: citations for name, citations in lost.items() if citations} == {}


def test_every_page_is_cited() -> None:
    texts = [part for path in CODE.values() for part in prose(path.read_text("utf-8"))]
    assert {page for text in texts for page, _ in CITATION.findall(text)} == {*PAGES} - {INDEX}


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('"""A row (samplers.md 2)."""', []),
        ('"""A row (samplers.md 1, 2)."""', []),
        ('"""A row (samplers.md\n    2)."""', []),
        ("# A row (samplers.md 1).", []),
        ('"""As the README.md says."""', []),
        ('x = "samplers.md 9"', []),
        ('"""A row (samplers.md 3)."""', ["samplers.md 3"]),
        ('"""A row (samplers.md 2, 3)."""', ["samplers.md 2, 3"]),
        ('"""A row (sampler.md 2)."""', ["sampler.md 2"]),
        ('"""A row (samplers.md)."""', ["samplers.md"]),
        ("LEAST = 1\n'''Rows (samplers.md 3).'''", ["samplers.md 3"]),
        ("x = 1  # rows (samplers.md\n# 3)", ["samplers.md 3"]),
        ('"""A row (vibp 9.5)."""', ["vibp 9"]),
        ('"""A row (vibp E23, nsfa 5.2)."""', ["vibp E2", "nsfa 5"]),
        ('"""Cells (DESIGN 4)."""', ["DESIGN"]),
        ('"""Hints (samplers.md T2)."""', [".md T2", "samplers.md"]),
        ('"""Rows (samplers.md, section 2)."""', [".md, section", "samplers.md"]),
        ('"""Rows (samplers.md 2 F)."""', [".md 2 F"]),
    ],
)
def test_a_citation_that_does_not_resolve_is_found(line: str, wrong: list[str]) -> None:
    known = {"samplers.md": [1, 2]}
    assert unresolved(line, known) == wrong


def test_sections_are_numbered_from_one_on() -> None:
    for name, numbers in sections(PAGES).items():
        assert numbers == list(range(1, len(numbers) + 1)), name
        assert len(numbers) == len(re.findall(r"^##? ", PAGES[name], re.MULTILINE)) - 1, name


@pytest.mark.parametrize("name", PAGES)
def test_links_between_pages_resolve(name: str) -> None:
    assert broken_links(name, PAGES, sections(PAGES)) == []


def test_every_page_is_reached_from_the_index() -> None:
    assert reachable(PAGES) == {*PAGES}
    assert [path.name for path in FOLDER.iterdir() if path.suffix != ".md"] == []


def test_a_broken_link_and_a_lost_page_are_found() -> None:
    pages = {
        INDEX: "[a](a.md), [gone](gone.md), [out](https://example.org)",
        "a.md": "## 1. A\n\n[here](a.md), section 2, [a](a.md), section 1, a.md 3, section 4, section 1",
        "lost.md": "## 1. Lost",
    }
    assert broken_links(INDEX, pages, sections(pages)) == ["gone.md"]
    assert broken_links("a.md", pages, sections(pages)) == ["a.md 2", "a.md 3", "a.md 4"]
    assert reachable(pages) == {INDEX, "a.md"}


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_says_implements_it_exists(name: str) -> None:
    assert implementing(PAGES[name]) - defined() == set()


def test_what_does_not_exist_is_found() -> None:
    page = (
        "Text.\n\nCode: `solve`, `Gaussian.score`, `not_there` (of\nthe `Gaussian.neither`).\n\nThen `other`."
    )
    assert implementing(page) == {"solve", "Gaussian.score", "not_there", "Gaussian.neither"}
    assert implementing(page) - defined() == {"not_there", "Gaussian.neither"}


@pytest.mark.parametrize("name", [name for name in PAGES if name != INDEX])
def test_a_page_ends_with_corrections_and_measurements(name: str) -> None:
    titles = re.findall(r"^## \d+\. (.*)$", PAGES[name], re.MULTILINE)
    assert titles[-1] == "Measured"
    assert "Corrections to the papers" in titles or name == "engine.md"
