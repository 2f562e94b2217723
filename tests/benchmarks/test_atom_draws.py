"""The command that measures draws of the beta process runs."""

import numpy as np
import pytest

from tests.benchmarks.atom_draws import main, memory


def test_memory_is_the_autocorrelation_time():
    rng, x, noise = np.random.default_rng(0), np.zeros(40_000), 0.8
    for at in range(1, x.size):
        x[at] = noise * x[at - 1] + rng.normal()
    assert memory(x) == pytest.approx((1 + noise) / (1 - noise), rel=0.2)


def test_the_command_runs(capsys):
    assert main(["--updates", "12", "--cases", "12 of 300"]) == 0
    told = capsys.readouterr().out
    assert "paper-exact" in told
    assert "exchangeable" in told
