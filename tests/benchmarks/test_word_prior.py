"""The sweep of the prior of words: which systems have one, and what the command prints."""

import pytest

from ibpdist.catalog.systems import SYSTEMS, settings_of
from tests.benchmarks.perplexity import corpus, ours, problem
from tests.benchmarks.word_prior import HEADER, main, prior_of_words, swept


def test_systems_with_a_prior_of_words_are_swept():
    assert {"counts-dense", "counts-beta-process", "counts-beta-process-hard", "nmf-vi"} <= set(swept())
    assert not {"nmf", "counts-gibbs-finite", "fa-vi-finite"} & set(swept())
    for name in swept():
        assert prior_of_words(SYSTEMS[name]) in settings_of(name)


def test_a_line_is_the_fit_of_its_system_and_value(capsys):
    system = "counts-finite-hard"
    assert main(["--values", "0.05", "2", "-K", "4", "--train", "120", "--systems", system]) == 0
    shown = [line.split("  ") for line in capsys.readouterr().out.splitlines()[:2]]
    assert [line[:3] for line in shown] == [[system, "0.05", "4"], [system, "2", "4"]]
    assert all(len(line) == len(HEADER) for line in shown)
    of = problem(corpus(None), 0, size=120)
    law, _, _ = ours(system, {"word_shape": 2.0}, of, 4, 0)
    assert shown[1][3] == f"{of.perplexity(law):.1f}" != shown[0][3]


def test_a_system_without_one_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--systems", "nmf"])
    assert "invalid choice" in capsys.readouterr().err
