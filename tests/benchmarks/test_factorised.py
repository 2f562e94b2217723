"""The benchmark of factors by mean field: its fits and its command."""

import numpy as np
import pytest

from tests.benchmarks.factorised import main, methods
from tests.benchmarks.perplexity import corpus, problem, unigram


@pytest.mark.parametrize("name", methods(0.5))
def test_factors_predict_the_other_half(name):
    of = problem(corpus(None), 0)
    law, features, in_all = methods(0.5)[name](of, 8, 0)
    np.testing.assert_allclose(law.sum(axis=1), 1)
    assert of.perplexity(law) < 0.8 * of.perplexity(unigram(of, 0, 0)[0])
    assert (features < 8) == name.endswith("-hard")
    assert in_all <= 8


def test_the_command_runs(capsys):
    assert main(["--sizes", "3", "--restarts", "1", "--methods", "finite-hard", "nmf"]) == 0
    told = capsys.readouterr().out
    assert "finite-hard" in told
    assert "nmf-vi" not in told
