"""The genotype panel: what is simulated, and that both priors are told of."""

import numpy as np

from tests.benchmarks.genotype_panel import FAR, HEADER, REGIONS, drifted, main, panel


def test_people_of_a_region_are_more_alike():
    made = panel(300, 200, seed=1)
    assert made.x.shape == (300, 200)
    np.testing.assert_allclose(made.x.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(made.x.std(axis=0), 1)
    alike, same = made.x @ made.x.T / 200, made.region[:, None] == made.region
    apart = ~np.eye(300, dtype=bool)
    assert alike[same & apart].mean() > 0.03 > 0 > alike[~same].mean()
    assert set(made.region) == set(range(REGIONS))


def test_drift_has_its_variance():
    rng = np.random.default_rng(0)
    found = drifted(np.full((40_000, 1), 0.3), FAR, rng)
    assert abs(found.mean() - 0.3) < 4 * found.std() / 200
    np.testing.assert_allclose(found.var(), FAR * 0.3 * 0.7, rtol=0.05)


def test_a_line_for_each_system(capsys):
    main(["3", "--people", "60", "--loci", "20", "-K", "3", "--steps", "3"])
    shown = [line.split("  ") for line in capsys.readouterr().out.splitlines()]
    assert tuple(shown[0]) == HEADER
    assert [line[1] for line in shown[1:]] == ["fa-vi-infinite", "fa-vi-beta-process"]
    assert all(len(line) == len(HEADER) for line in shown)
    assert shown[1][-2] == "-" != shown[2][-2]


def test_fits_begin_where_they_are_told(capsys):
    """A random start has another objective after a step, and the same one again."""
    given, found = ["--people", "60", "--loci", "20", "-K", "3", "--steps", "1", "--systems"], []
    for start in ("principal", "random", "random"):
        main(["3", *given, "fa-vi-infinite", "--start", start])
        found.append(capsys.readouterr().out.splitlines()[1].split("  ")[-1])
    assert found[0] != found[1] == found[2]
