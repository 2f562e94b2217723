"""Where rows are scored: points of a grid that cover a range, and splines through them."""

import numpy as np
import pytest

from ibpdist.predict.precision_grid import GRID, SPACING
from ibpdist.predict.precision_nodes import NARROW, VALUES, Nodes

LOW = np.array([-0.02, -1.3, -9.0, -20.0, 11.9, 0.25, -20.0])
HIGH = np.array([0.03, 0.9, 2.0, 12.0, 12.0, 0.25, -20.0])


def test_nodes_cover_the_range_and_are_few():
    nodes = Nodes.covering(LOW, HIGH)
    assert ((nodes.count >= 2) & (nodes.count <= VALUES)).all()
    for row, places in enumerate(nodes.places()):
        at = GRID[places]
        assert len(at) == nodes.count[row]
        assert at[0] <= LOW[row]
        assert at[-1] >= HIGH[row]
        np.testing.assert_allclose(np.diff(at), SPACING * nodes.step[row])
    assert nodes.step[0] == NARROW, "the least distance suffices"


def test_nodes_of_rows_lie_on_a_common_grid():
    nodes = Nodes.covering(LOW, HIGH)
    assert (nodes.first % nodes.step == 0).all()
    assert np.log2(nodes.step / NARROW) == pytest.approx(np.round(np.log2(nodes.step / NARROW)))


def test_groups_are_all_rows_with_their_places():
    nodes, seen = Nodes.covering(LOW, HIGH), []
    for rows, places in nodes.groups():
        seen += list(rows)
        for row, place in zip(rows, places, strict=True):
            np.testing.assert_array_equal(place, np.flatnonzero(nodes.places()[row]))
    assert sorted(seen) == list(range(len(LOW)))


def test_splines_pass_through_the_nodes_and_stay_constant_beyond():
    nodes = Nodes.covering(LOW[[1]], HIGH[[1]])
    rows = np.array([0])
    places = np.flatnonzero(nodes.places()[0])
    shares = nodes.shares(rows, GRID[None, places])
    np.testing.assert_allclose(shares[0], np.eye(len(places)), atol=1e-12)
    far = nodes.shares(rows, np.array([[-15.0, 10.0]]))[0]
    np.testing.assert_allclose(far, np.eye(len(places))[[0, -1]], atol=1e-12)
