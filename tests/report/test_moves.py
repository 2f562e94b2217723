"""What moves did, in words, from traces made by hand and of a fit."""

import numpy as np
import pytest
import xarray as xr

import ibpdist as ibp
from ibpdist.report.moves import Tally, nats, sentences, tallies

NAMES = ["delete", "reorient", "renew rows", "birth"]


def trace(*decisions: tuple[int, float, float]) -> xr.Dataset:
    move, gain, accepted = (np.array(column, float) for column in zip(*decisions, strict=True))
    return xr.Dataset({"move": ("step", move), "gain": ("step", gain), "accepted": ("step", accepted)})


MADE = trace((0, 0, 0), (1, 300, 1), (4, 25.5, 1), (4, -7000, 0), (3, 0.25, 1), (0, 0, 0), (4, -3, 0))


def test_each_move_is_counted_and_only_accepted_ones_gain() -> None:
    assert tallies(MADE, NAMES) == [
        Tally("delete", 1, 1, 300.0),
        Tally("renew rows", 1, 1, 0.25),
        Tally("birth", 3, 1, 25.5),
    ]


def test_in_words() -> None:
    assert list(sentences(MADE, NAMES)) == [
        "3 of 5 accepted, together +326 nats",
        "delete 1 of 1 (+300), renew rows 1 of 1 (+0.25), birth 1 of 3 (+26)",
    ]


def test_moves_of_which_none_was_accepted() -> None:
    assert list(sentences(trace((4, -3, 0), (4, -2, 0)), NAMES)) == ["0 of 2 accepted", "birth none of 2"]


@pytest.mark.parametrize("made", [xr.Dataset({"objective": ("step", [1.0])}), trace((0, 0, 0))])
def test_a_fit_without_moves_says_nothing(made: xr.Dataset) -> None:
    assert list(sentences(made, NAMES)) == []
    assert list(sentences(MADE, [])) == []


def test_gains_have_the_digits_that_tell_something() -> None:
    assert [nats(value) for value in (12345.6, 99.6, 3.14159, 0.001)] == ["12,346", "100", "3.1", "0.001"]


def test_the_trace_of_a_fit_names_its_moves() -> None:
    data = ibp.synthetic("images", rows=200, noise=0.1, seed=3)
    result = ibp.fit(data.x, system="lg-vi-infinite", K=8, seed=7, start="random")
    found = tallies(result["trace"], result.attrs["moves"])
    moves = result["trace"]["move"].values
    assert sum(one.tried for one in found) == int((moves > 0).sum()) > 0
    assert all(one.gain > 0 for one in found if one.accepted)
