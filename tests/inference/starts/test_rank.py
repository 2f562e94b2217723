"""The rank is the planted number of features, and nonsense has none."""

import numpy as np
import pytest

from ibpdist.inference.starts.rank import leading_spectrum, noise_edge, spectrum
from tests.support.start_cases import Matrix, eigen, plant

PROBLEMS = [
    (rows, columns, features, prevalence, seed)
    for seed, (rows, columns, features) in enumerate(
        [(500, 50, 10), (500, 100, 20), (300, 200, 15), (100, 500, 25), (50, 300, 8)]
    )
    for prevalence in (0.1, 0.3, 0.5, 0.79)
]


@pytest.mark.parametrize(("rows", "columns", "features", "prevalence", "seed"), PROBLEMS)
def test_rank_is_the_planted_number(
    rows: int, columns: int, features: int, prevalence: float, seed: int
) -> None:
    made = plant(rows, columns, features, prevalence, seed=seed)
    found = spectrum(eigen(made.x)[0], rows, columns, 2 * features)
    assert found.rank == features
    assert not found.capped
    assert found.noise == pytest.approx(0.25, rel=0.1)
    assert found.signal.shape == found.ratio.shape == (features,)
    assert np.all(np.diff(found.signal) <= 0)


@pytest.mark.parametrize(("rows", "columns", "features", "prevalence", "seed"), PROBLEMS)
def test_leading_eigenvalues_and_the_trace_say_the_same(
    rows: int, columns: int, features: int, prevalence: float, seed: int
) -> None:
    values = eigen(plant(rows, columns, features, prevalence, seed=seed).x)[0]
    whole = spectrum(values, rows, columns, 30)
    part = leading_spectrum(values[:35], values.sum(), rows, columns, 30)
    assert part.rank == whole.rank
    assert part.noise == pytest.approx(whole.noise, rel=1e-9)
    np.testing.assert_allclose(part.signal, whole.signal, rtol=1e-9)


@pytest.mark.parametrize(("rows", "columns"), [(400, 60), (60, 400), (200, 200), (1000, 5)])
def test_noise_alone_has_no_rank(rows: int, columns: int) -> None:
    ranks = []
    for seed in range(20):
        x = np.random.default_rng(seed).standard_normal((rows, columns)) * 3.0
        found = spectrum(eigen(x)[0], rows, columns, 10)
        ranks.append(found.rank)
        assert found.noise == pytest.approx(9.0, rel=0.1)
    assert sum(ranks) <= 1  # the edge is passed once in a hundred


def test_the_edge_is_near_the_marchenko_pastur_one_and_scales() -> None:
    edge = noise_edge(2.0, 20_001, 5_000, 0)
    assert edge == pytest.approx(2 * (1 + 0.5) ** 2, rel=0.01)
    assert edge > 2 * (1 + 0.5) ** 2
    assert noise_edge(4.0, 20_001, 5_000, 0) == pytest.approx(2 * edge)
    assert noise_edge(2.0, 20_001, 5_000, 100) < edge


def test_the_edge_is_passed_by_one_in_a_hundred() -> None:
    top = [eigen(np.random.default_rng(s).standard_normal((60, 40)))[0][0] for s in range(1000)]
    assert 1 <= np.sum(np.array(top) > noise_edge(1.0, 60, 40, 0)) <= 25


def test_signal_is_debiased() -> None:
    # One spike of variance 3 in 200 columns: the eigenvalue is (1 + l)(1 + g / l), far above 1 + l.
    rng = np.random.default_rng(5)
    x = rng.standard_normal((400, 200))
    x[:, 0] *= 2.0
    values = eigen(x)[0]
    found = spectrum(values, 400, 200, 10)
    assert found.rank == 1
    assert values[0] > 4.3
    assert found.signal[0] == pytest.approx(3.0, rel=0.15)


def test_the_rank_is_capped_and_says_so() -> None:
    made = plant(500, 100, 20, 0.3)
    values = eigen(made.x)[0]
    cut = spectrum(values, 500, 100, 12)
    assert (cut.rank, cut.capped) == (12, True)
    assert cut.noise == spectrum(values, 500, 100, 40).noise
    assert spectrum(values, 500, 100, 20).capped is False


def test_the_scale_of_the_data_does_not_matter() -> None:
    values = eigen(plant(300, 60, 8, 0.3).x)[0]
    one = spectrum(values, 300, 60, 20)
    for factor in (1e-40, 1e-9, 1e12, 1e60):
        other = spectrum(values * factor, 300, 60, 20)
        assert other.rank == one.rank
        np.testing.assert_allclose(other.ratio, one.ratio, rtol=1e-6)


@pytest.mark.parametrize(
    ("x", "why"),
    [
        (np.ones((1, 20)), "one row"),
        (np.arange(8.0).reshape(2, 4), "two rows: one direction, no noise left to compare with"),
        (np.full((50, 10), 7.0), "constant"),
        (np.zeros((50, 10)), "zero"),
        (np.random.default_rng(0).standard_normal((50, 1)), "one column"),
    ],
)
def test_degenerate_data_have_rank_zero(x: Matrix, why: str) -> None:
    values, (rows, columns) = eigen(x)[0], x.shape
    for found in (
        spectrum(values, rows, columns, 5),
        leading_spectrum(values[:1], float(values.sum()), rows, columns, 5),
    ):
        assert found.rank == 0, why
        assert found.signal.shape == (0,)
        assert np.isfinite(found.noise)


def test_fewer_rows_than_features_stay_finite() -> None:
    made = plant(6, 50, 20, 0.5)
    found = spectrum(eigen(made.x)[0], 6, 50, 20)
    assert 0 <= found.rank < 5
    assert np.all(np.isfinite(found.ratio))


def test_data_without_noise_have_the_exact_rank() -> None:
    made = plant(200, 40, 6, 0.4, noise_sd=0.0)
    found = spectrum(eigen(made.x)[0], 200, 40, 20)
    assert found.rank == 6
    assert np.all(found.ratio > 0)
    assert np.all(found.ratio < 1e-9)


def test_no_eigenvalues_no_rank() -> None:
    assert spectrum([], 10, 10, 5).rank == 0
    assert spectrum([3.0, 1.0], 100, 50, 0).rank == 0
