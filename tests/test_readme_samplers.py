"""The section on samplers: what it calls works, what it names is in a result."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

import ibpdist as ibp
from ibpdist.catalog.systems import SYSTEMS
from tests.support import report_fits

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
SECTION = README.partition("## Samplers\n")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("samplers") / "chains.run"
    return report_fits.drawn(folder, "lg-gibbs-infinite", chains=2, steps=20, burn=4, thin=2)


def test_its_code_runs(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```py\n(.*?)```", SECTION, re.DOTALL)
    monkeypatch.chdir(run.parent)
    calls = [node for node in ast.parse(code).body if isinstance(node, ast.Expr)]
    found: list[Any] = [eval(ast.unparse(call), {"ibp": ibp}) for call in calls]
    number, features, rows, shared = found
    assert rows["z"].sizes["feature"] == features.sizes["feature"]
    assert float(number.sum()) == pytest.approx(1.0)
    assert {"share", "mean", "low", "high", "prevalence"} <= set(features)
    assert shared.sizes == {"row": 2, "row_": 2}


OF_COUNTS = {"weight_shape", "tokens", "eta", "concentration"}


def test_the_groups_it_names_are_in_a_result(tmp_path: Path) -> None:
    """Of factors, which have all of the variables but those of counts."""
    run = report_fits.drawn(tmp_path / "factors.run", "fa-gibbs-infinite", chains=2, steps=20, burn=4, thin=2)
    result = ibp.open_result(run)
    rows = re.findall(r"^\| `/(\w+)`(.*?)\|([^|]*)\|", SECTION, re.MULTILINE)
    assert [name for name, _, _ in rows] == ["posterior", "draws", "diagnostics", "trace"]
    for name, variables, dims in rows:
        group = result[name]
        assert set(re.findall(r"`(\w+)`", variables)) - OF_COUNTS <= set(group.data_vars)
        assert {dim.strip(" ()") for dim in dims.split(",")} <= set(group.sizes)


def test_burn_and_thin_are_what_it_says(run: Path) -> None:
    steps = ibp.open_result(run)["posterior"]["step"].values.tolist()
    assert steps == list(range(6, 21, 2))


def test_the_systems_it_names_are_samplers() -> None:
    named = set(re.findall(r"`((?:lg|fa)-[\w-]+)`", SECTION))
    assert {"lg-gibbs-infinite", "lg-collapsed-infinite"} <= named
    assert all(SYSTEMS[name].sampler for name in named)
