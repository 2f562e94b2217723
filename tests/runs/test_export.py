"""Results as CSV: every number comes back, labels stand where they belong, nothing is left of a failure."""

import csv
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from ibpdist.base.errors import OutputInUse, StorageError
from ibpdist.runs import export as module
from ibpdist.runs.export import export

ROWS, FEATURES, COLUMNS = 7, 3, 2
RNG = np.random.default_rng(5)


@pytest.fixture
def tree() -> xr.DataTree:
    params = xr.Dataset(
        {
            "mean": (("feature", "column"), RNG.standard_normal((FEATURES, COLUMNS))),
            "prevalence": ("feature", RNG.random(FEATURES)),
            "active": ("feature", np.array([True, True, False])),
            "basis": (("group", "feature", "component"), RNG.standard_normal((1, FEATURES, 2))),
            "noise": ((), 0.1 + 0.2),
            "mass": ((), 1.5),
        },
        {"column": ["gene a", 'b "quoted", with comma'], "batch": ("column", [1, 2])},
    )
    rows = xr.Dataset(
        {"z": (("row", "feature"), RNG.random((ROWS, FEATURES)).astype(np.float32))},
        {"row": [f"cell {n}" for n in range(ROWS)], "donor": ("row", np.arange(ROWS) % 2)},
    )
    trace = xr.Dataset(
        {"objective": ("step", [-3.0, -2.5]), "z prior": ("step", [-1.0, -1e-17])}, {"step": [1, 2]}
    )
    return xr.DataTree.from_dict({"params": params, "rows": rows, "trace": trace})


@pytest.fixture
def exported(tree: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "open_result", lambda run: tree)
    export("run", tmp_path / "csv")
    return tmp_path / "csv"


def read(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_there_is_a_file_for_every_array(exported: Path) -> None:
    files = {path.relative_to(exported).as_posix() for path in exported.rglob("*") if path.is_file()}
    assert files == {
        "params/active.csv", "params/basis.csv", "params/mean.csv", "params/prevalence.csv",
        "params/scalars.csv", "rows/z.csv", "trace.csv",
    }  # fmt: skip


def test_the_paths_are_returned(tree: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_result", lambda run: tree)
    paths = export("run", str(tmp_path / "csv"))
    assert paths == sorted((tmp_path / "csv").rglob("*.csv"))
    assert len(paths) == 7


def test_two_dims_are_a_table_with_labels(exported: Path, tree: xr.DataTree) -> None:
    head, *lines = read(exported / "params/mean.csv")
    assert head == ["feature", "column gene a", 'column b "quoted", with comma']
    assert [line[0] for line in lines] == ["0", "1", "2"]
    values = np.array([line[1:] for line in lines], dtype=float)
    np.testing.assert_array_equal(values, tree["params"]["mean"].values)


def test_rows_keep_their_labels_and_covariates(exported: Path, tree: xr.DataTree) -> None:
    head, *lines = read(exported / "rows/z.csv")
    assert head == ["row", "donor", "feature 0", "feature 1", "feature 2"]
    assert [line[:2] for line in lines] == [[f"cell {n}", str(n % 2)] for n in range(ROWS)]
    values = np.array([line[2:] for line in lines], dtype=np.float32)
    np.testing.assert_array_equal(values, tree["rows"]["z"].values)


def test_one_dim_is_a_column(exported: Path, tree: xr.DataTree) -> None:
    head, *lines = read(exported / "params/prevalence.csv")
    assert head == ["feature", "prevalence"]
    np.testing.assert_array_equal([float(line[1]) for line in lines], tree["params"]["prevalence"].values)
    assert [line[1] for line in read(exported / "params/active.csv")[1:]] == ["True", "True", "False"]


def test_three_dims_have_a_line_for_each_entry(exported: Path, tree: xr.DataTree) -> None:
    head, *lines = read(exported / "params/basis.csv")
    assert head == ["group", "feature", "component", "basis"]
    basis = tree["params"]["basis"].values
    assert len(lines) == basis.size
    for group, feature, component, value in lines:
        assert float(value) == basis[int(group), int(feature), int(component)]


def test_scalars_and_trace_lose_no_digit(exported: Path) -> None:
    assert read(exported / "params/scalars.csv") == [
        ["name", "value"],
        ["mass", "1.5"],
        ["noise", repr(0.1 + 0.2)],
    ]
    assert read(exported / "trace.csv") == [
        ["step", "objective", "z prior"], ["1", "-3.0", "-1.0"], ["2", "-2.5", "-1e-17"]
    ]  # fmt: skip


def turned(held: xr.Dataset) -> xr.Dataset:
    """The same dataset as a folder that lists its arrays the other way round would give it."""
    coords = {name: held.coords[name] for name in reversed(list(held.coords))}
    return xr.Dataset({name: held[name].variable for name in reversed(list(held.data_vars))}, coords)


def test_the_bytes_are_the_same_in_whatever_order_arrays_are_listed(
    tree: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = tree["rows"].to_dataset().assign_coords(age=("row", np.arange(ROWS)))
    one = {name: node.to_dataset() for name, node in tree.children.items()} | {"rows": more}
    written = []
    for name, nodes in (("a", one), ("b", {name: turned(held) for name, held in one.items()})):
        monkeypatch.setattr(module, "open_result", lambda run, nodes=nodes: xr.DataTree.from_dict(nodes))
        files = export("run", tmp_path / name)
        written.append({file.relative_to(tmp_path / name): file.read_bytes() for file in files})
    assert written[0] == written[1]
    assert written[0][Path("rows/z.csv")].startswith(b"row,age,donor,feature 0")


def test_a_diagnosis_comes_along(tree: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cosine = RNG.random((FEATURES, FEATURES))
    diagnosis = xr.Dataset(
        {
            "explained": ("feature", [0.5, 0.25, 1e-17]),
            "cosine": (("feature", "feature_"), cosine),
            "used_up": ((), True),
        }
    )
    whole = xr.DataTree.from_dict({f"/{name}": node for name, node in tree.children.items()})
    whole["diagnosis"] = xr.DataTree(diagnosis)
    monkeypatch.setattr(module, "open_result", lambda run: whole)
    paths = {path.relative_to(tmp_path).as_posix() for path in export("run", tmp_path / "csv")}
    assert {f"csv/diagnosis/{name}.csv" for name in ("explained", "cosine", "scalars")} <= paths
    assert len(paths) == 10
    folder = tmp_path / "csv/diagnosis"
    assert read(folder / "scalars.csv") == [["name", "value"], ["used_up", "True"]]
    assert read(folder / "explained.csv")[-1] == ["2", "1e-17"]
    head, *lines = read(folder / "cosine.csv")
    assert head == ["feature", "feature_ 0", "feature_ 1", "feature_ 2"]
    np.testing.assert_array_equal(np.array([line[1:] for line in lines], dtype=float), cosine)


@pytest.mark.parametrize("cells", [1, 6, 7, 1000])
def test_reading_in_parts_changes_nothing(
    cells: int, exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CELLS", cells)
    told: list[tuple[int, int | None]] = []
    export("run", tmp_path / "again", progress=lambda done, whole: told.append((done, whole)))
    for path in exported.rglob("*.csv"):
        assert (tmp_path / "again" / path.relative_to(exported)).read_bytes() == path.read_bytes()
    assert told[-1] == (ROWS, ROWS)
    assert len(told) == {1: 7, 6: 4, 7: 4, 1000: 1}[cells]


def test_an_existing_output_is_kept(exported: Path, tmp_path: Path) -> None:
    (exported / "trace.csv").write_text("mine")
    with pytest.raises(OutputInUse, match="exists"):
        export("run", exported)
    assert (exported / "trace.csv").read_text() == "mine"
    export("run", exported, overwrite=True)
    assert read(exported / "trace.csv")[0] == ["step", "objective", "z prior"]


def test_overwriting_takes_only_an_export_away(exported: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("years")
    with pytest.raises(OutputInUse):
        export("run", tmp_path / "mine", overwrite=True)
    assert (tmp_path / "mine/thesis.txt").read_text() == "years"


def test_a_failure_leaves_nothing(tree: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "open_result", lambda run: tree)

    def full(result: xr.DataTree, into: Path, progress: object) -> None:
        (into / "params").mkdir()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "_write_all", full)
    with pytest.raises(StorageError, match=r"csv: cannot be written: No space left on device"):
        export("run", tmp_path / "csv")
    assert list(tmp_path.iterdir()) == []


def test_chains_have_tables_of_steps_draws_and_variables(
    tree: xr.DataTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joint, number = RNG.standard_normal((2, 3)), RNG.integers(9, size=(2, 2))
    whole = xr.DataTree.from_dict(
        {
            "params": tree["params"].to_dataset(),
            "rows": tree["rows"].to_dataset(),
            "trace": xr.Dataset({"log joint": (("chain", "step"), joint)}, {"step": [1, 2, 3]}),
            "posterior": xr.Dataset(
                {"features": (("chain", "draw"), number), "noise": (("chain", "draw"), number / 3)},
                {"draw": [5, 9]},
            ),
            "diagnostics": xr.Dataset(
                {"rhat": ("variable", [1.0, 1.5])}, {"variable": ["features", "noise"]}
            ),
            "heldout": xr.Dataset(
                {
                    "score": (("evaluation", "estimate"), [[-1.0, -2.0]]),
                    "data": ("evaluation", ["x.zarr"]),
                },
                {"estimate": ["plug_in", "variance"]},
            ),
        }
    )
    monkeypatch.setattr(module, "open_result", lambda run: whole)
    paths = {path.relative_to(tmp_path / "csv").as_posix() for path in export("run", tmp_path / "csv")}
    assert {"trace.csv", "posterior.csv", "diagnostics.csv", "heldout.csv"} <= paths
    head, *lines = read(tmp_path / "csv/trace.csv")
    assert head == ["chain", "step", "log joint"]
    assert [(int(c), int(s), float(v)) for c, s, v in lines] == [
        (chain, step + 1, joint[chain, step]) for chain in range(2) for step in range(3)
    ]
    head, *lines = read(tmp_path / "csv/posterior.csv")
    assert head == ["chain", "draw", "features", "noise"]
    assert [float(line[3]) for line in lines] == [value / 3 for value in number.ravel()]
    assert [line[:2] for line in lines] == [["0", "5"], ["0", "9"], ["1", "5"], ["1", "9"]]
    assert read(tmp_path / "csv/diagnostics.csv")[1:] == [["features", "1.0"], ["noise", "1.5"]]
    assert read(tmp_path / "csv/heldout.csv")[1:] == [
        ["0", "plug_in", "x.zarr", "-1.0"], ["0", "variance", "x.zarr", "-2.0"]
    ]  # fmt: skip
