"""Residuals of the rows that are explained worst: exactly those, in any chunks and groups of chunks."""

from functools import reduce

import numpy as np
import pytest

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import Nothing, arrays_of, combine, replace
from ibpdist.engine.tree import TreeSum
from ibpdist.inference.ascent import move_schedule
from tests.support.planted_rows import masked, planted
from tests.support.search_cases import Rows, search


def asked_for(alg, source, seed, share):
    """Parameters that ask for residuals, and the sums of chunks of a width."""
    params = alg.init(alg.summarise(source.read(0)), Draws(seed))
    asked = replace(params, stand=replace(params.stand, share=np.asarray(share)))

    def of(width):
        rows = Rows(source.x, source.observed, width)
        chunks = [rows.read(index) for index in range(rows.chunks)]
        return [alg.local(c, alg.start(c, asked, Draws(seed)), asked, Draws(seed, 1))[1] for c in chunks]

    return asked, of


@pytest.mark.parametrize("tile", [16, 4096])
@pytest.mark.parametrize("kind", ["complete", "masked"])
def test_the_worst_rows_are_those_of_all_rows(monkeypatch, kind, tile):
    """By squared residual in units of the noise less observed cells, whatever the chunks and tiles are."""
    monkeypatch.setattr(move_schedule, "SAMPLE_ROWS", 24)
    monkeypatch.setattr("ibpdist.inference.ascent.search.tile_rows", lambda columns, itemsize: tile)
    x, _, _ = planted(3, 90, 6, (0.3, 0.4))
    x, observed = masked(x, kind)
    alg = search(features=3, noise="column")
    source = Rows(x, observed, 90)
    asked, of = asked_for(alg, source, 0, 0.1)
    found = [reduce(combine, of(width)).rows.worst for width in (90, 30, 7, 5)]
    sums = alg.local(source.read(0), alg.start(source.read(0), asked, Draws(0)), asked, Draws(0, 1))
    left = x - sums[0].now.z.T @ asked.now.observation.mean
    left = left if observed is None else np.where(observed, left, 0)
    seen = 6 if observed is None else observed.sum(axis=1)
    misfit = (left**2 / asked.now.observation.noise).sum(axis=1) - seen
    order = np.argsort(-misfit, kind="stable")[:12]
    for one in found:
        assert one.row.tolist() == order.tolist()
        np.testing.assert_allclose(one.misfit, misfit[order], rtol=1e-12)
        np.testing.assert_allclose(one.residuals, left[order], atol=1e-12)


@pytest.mark.parametrize("width", [1, 3, 8])
def test_the_worst_rows_have_the_same_bits_in_any_groups(monkeypatch, width):
    """In aligned blocks of 1, 2, 4 and 8 chunks, as workers add them; some rows are there twice."""
    monkeypatch.setattr(move_schedule, "SAMPLE_ROWS", 40)
    x, _, _ = planted(5, 61, 4, (0.3, 0.4))
    x = np.concatenate([x, x[::2]])
    parts = asked_for(search(features=3), Rows(x, None, len(x)), 0, 0.1)[1](width)
    whole = reduce(combine, parts).rows.worst
    for size in (1, 2, 4, 8):
        total = TreeSum()
        for at in range(0, len(parts), size):
            group = TreeSum()
            for part in parts[at : at + size]:
                group.add(part)
            total.add(group.value(), len(parts[at : at + size]))
        assert packed_arrays(total.value().rows.worst) == packed_arrays(whole)


def packed_arrays(record):
    return {name: (a.shape, a.tobytes()) for name, a in arrays_of(record).items()}


def test_no_worst_rows_where_none_are_asked_for():
    x, _, _ = planted(5, 40, 4, (0.3, 0.4))
    rows = Rows(x, None, 40)
    assert all(isinstance(s.rows, Nothing) for s in asked_for(search(features=3), rows, 0, 0.0)[1](20))
    for sums in asked_for(search(features=3), rows, 0, 1.0)[1](20):
        assert sums.rows.worst.residuals.shape == (0, 4)
        assert len(sums.rows.residuals) == len(sums.rows.row) == 20
