"""Sparse or dense factors, chosen by rows of the training data that were held out."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.evaluate.choose import SYSTEMS, Choice, choose

FIT = {"K": 6, "serial": True, "steps": 60}


def rows(kind, count=240, columns=24, features=4, seed=1):
    """Rows that have every factor, or each about one in seven."""
    rng = np.random.default_rng(seed)
    on = np.ones((count, features)) if kind == "dense" else rng.random((count, features)) < 0.15
    w = on * rng.normal(size=(count, features)) * (1 if kind == "dense" else 2)
    return w @ rng.normal(size=(features, columns)) + 0.4 * rng.normal(size=(count, columns))


def test_rows_with_few_factors_are_sparse():
    found = choose(rows("sparse"), **FIT)
    assert found.system == "fa-vi-infinite"
    assert found.scores["fa-vi-infinite"] > found.scores["fa-vi-dense"] + 0.01


def test_rows_with_all_factors_lose_nothing_either_way():
    """The choice is the better of both, and dense is not far."""
    found = choose(rows("dense"), **FIT)
    assert found.scores[found.system] == max(found.scores.values())
    assert found.scores["fa-vi-dense"] > found.scores["fa-vi-infinite"] - 0.01


def test_the_score_is_of_rows_that_the_fit_did_not_see():
    """As the parts do by hand: hold rows out, fit, and predict each half from the other."""
    from ibpdist.data.arrays import as_source
    from ibpdist.data.splits import as_split

    x, holdout = rows("sparse"), "rows:share=0.2,seed=3"
    found = choose(x, share=0.2, seed=3, systems=["fa-vi-dense"], **FIT)
    result = ibp.fit(x, system="fa-vi-dense", seed=3, holdout=holdout, **FIT)
    test = as_split(holdout).test(as_source(x))
    assert 20 < test.rows < 80
    both = [float(ibp.evaluate(result, test, visible=half).score[1]) for half in ("even", "odd")]
    assert found.scores["fa-vi-dense"] == pytest.approx(np.mean(both), rel=1e-12)


def test_the_same_choice_again():
    x = rows("sparse", 80)
    one, two = (choose(x, seed=5, **FIT) for _ in range(2))
    assert one == two
    assert set(one.scores) == set(SYSTEMS)


def test_in_words():
    said = str(Choice("fa-vi-dense", {"fa-vi-dense": -0.51, "fa-vi-infinite": -0.62}))
    assert said.startswith("fa-vi-dense (held-out rows")
    assert "fa-vi-infinite -0.6200" in said


def test_no_system():
    with pytest.raises(UsageError, match="systems: empty"):
        choose(rows("dense", 40), systems=[], **FIT)
