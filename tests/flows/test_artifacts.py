"""What a flow leaves on the pages of a server, and what it prints without one."""

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from flows import artifacts
from flows.artifacts import key, link, rows_of, say, table


def grid(heldout=(np.nan, np.nan, np.nan, np.nan)):
    """A summary of two levels of truncation and two restarts."""
    dims, shape = ("system", "truncation", "restart"), (1, 2, 2)
    values = {
        "objective": np.array([-3.0, -1.0, np.nan, -2.0]),
        "heldout": np.array(heldout),
        "active": np.array([2.0, 3.0, np.nan, 4.0]),
        "steps": np.array([9.0, 9.0, np.nan, 9.0]),
        "seconds": np.array([0.5, 0.25, np.nan, 1.0]),
        "status": np.array(["finished", "finished", "failed", "finished"]),
        "seed": np.array([1, 2**60, 3, 4]),
        "fit": np.array(["a", "b", "c", "d"]),
    }
    held = {name: (dims, one.reshape(shape)) for name, one in values.items()}
    held["data"] = ((), "x.zarr")
    return xr.Dataset(held, {"system": ["lg"], "truncation": [10, 20], "restart": [0, 1]})


@pytest.fixture
def made(monkeypatch):
    """Artifacts that would be made on a server."""
    kept = []
    monkeypatch.setattr(artifacts, "is_served", lambda: True)
    for name in ("create_table_artifact", "create_link_artifact", "create_markdown_artifact"):
        monkeypatch.setattr(artifacts, name, lambda *a, kind=name, **more: kept.append((kind, a, more)))
    return kept


@pytest.mark.parametrize(
    ("run", "found"),
    [
        ("a/Nightly.run", "nightly-run-summary"),
        ("../x y__z/", "x-y-z-summary"),
        (Path("größe<b>"), "gr-e-b-summary"),
        ("///", "run-summary"),
    ],
)
def test_keys_are_of_letters_numbers_and_dashes(run, found):
    assert key(run, "summary") == found


def test_rows_have_labels_and_numbers_of_every_fit():
    rows = list(rows_of(grid()))
    assert [(row["truncation"], row["restart"], row["fit"]) for row in rows] == [
        (10, 0, "a"),
        (10, 1, "b"),
        (20, 0, "c"),
        (20, 1, "d"),
    ]
    assert rows[0]["heldout"] is None
    assert rows[2]["objective"] is None
    assert rows[1]["seed"] == str(2**60), "JSON would round it"
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows


@pytest.mark.parametrize(
    ("heldout", "order"),
    [
        ((np.nan,) * 4, "bdac"),
        ((-0.5, -0.7, np.nan, -0.6), "adbc"),
        ((-0.5, np.nan, np.nan, -0.6), "adbc"),
    ],
)
def test_the_best_fit_comes_first(made, heldout, order):
    table("night", grid(heldout))
    ((kind, (rows,), more),) = made
    assert kind == "create_table_artifact"
    assert "".join(row["fit"] for row in rows) == order
    assert more == {"key": "night-summary", "description": "4 of 4 fits of night, best first"}


def test_a_table_has_an_end(made, monkeypatch):
    monkeypatch.setattr(artifacts, "LISTED", 2)
    table("night", grid())
    ((_, (rows,), more),) = made
    assert [row["fit"] for row in rows] == ["b", "d"]
    assert more["description"].startswith("2 of 4 fits")


def test_words_are_shown_as_they_are(made):
    say("night", "score", "# no title\n<script>x</script>")
    ((kind, (text,), more),) = made
    assert kind == "create_markdown_artifact"
    assert text == "    # no title\n    <script>x</script>"
    assert more["key"] == "night-score"


def test_the_link_to_a_report(made, tmp_path):
    link("night", tmp_path / "a b" / "report.html")
    ((kind, (where,), more),) = made
    assert kind == "create_link_artifact"
    assert where == f"file://{tmp_path}/a%20b/report.html"
    assert more == {"link_text": str(tmp_path / "a b" / "report.html"), "key": "night-report"}


def test_without_a_server_they_are_lines(capsys, monkeypatch):
    monkeypatch.setattr(artifacts, "create_table_artifact", lambda *a, **b: pytest.fail("a server was asked"))
    say("night", "score", "held-out score: 1")
    link("night", Path("night/report.html"))
    table("night", grid())
    assert capsys.readouterr().out == "held-out score: 1\nreport: night/report.html\n"


def test_hold_outs_come_one_after_the_other(made):
    one, other = grid((-0.5, -0.7, np.nan, -0.6)), grid((-9.0, -8.0, -7.0, -6.0))
    parts = [held.drop_vars("data") for held in (other, one)]
    both = xr.concat(parts, "holdout").assign_coords(holdout=["0.1", "0.6"])
    table("night", both)
    ((_, (rows,), more),) = made
    assert [(row["holdout"], row["fit"]) for row in rows] == [
        *(("0.1", fit) for fit in "dcba"),
        *(("0.6", fit) for fit in "adbc"),
    ]
    assert more["description"] == "8 of 8 fits of night, best first within each hold-out"
