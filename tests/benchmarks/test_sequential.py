"""The benchmark of collapsed sweeps measures what it says."""

import numpy as np

from tests.benchmarks.sequential import arithmetic, bare, measure, problem, swept, transcription, whole


def test_the_bare_arithmetic_is_done():
    rng = np.random.default_rng(0)
    x, wide, square = rng.normal(size=(3, 5)), rng.normal(size=(2, 5)), rng.normal(size=(2, 2))
    one, two, out = rng.normal(size=2), rng.normal(size=2), np.empty(2)
    expected, table = wide.copy(), square.copy()
    for row in x:
        product = expected @ row
        expected += np.outer(one + two, row)
        table += np.outer(one, one) + np.outer(two, two)
    arithmetic(x, wide, square, one, two, out)
    np.testing.assert_allclose(out, product)
    np.testing.assert_allclose(wide, expected)
    np.testing.assert_allclose(square, table)


def test_the_two_regimes_are_what_they_are_called(capsys):
    quiet, loud = problem(60, 40, 4, 1.0), problem(60, 40, 4, 200.0)
    still, moved = swept(quiet, 1), swept(loud, 1)
    assert (quiet.z != still.z[:, :4].T).any(axis=0).mean() < 0.3
    assert (loud.z != moved.z[:, :4].T).any(axis=0).mean() > 0.7
    assert whole(quiet)(1)[0].state.z.shape[1] == 60
    bare(quiet)()
    sweep = measure("quiet", quiet)
    transcription(quiet, sweep)
    said = capsys.readouterr().out
    assert "ratio" in said
    assert "times faster" in said
