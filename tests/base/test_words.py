"""Numbers in sentences."""

import numpy as np
import pytest

import ibpdist as ibp
from ibpdist.base.errors import UsageError
from ibpdist.base.words import counted, size
from ibpdist.data.arrays import as_source
from ibpdist.engine.memory import plan
from ibpdist.engine.place import Place


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 cells"), (1, "1 cell"), (2, "2 cells"), (1500, "1,500 cells")]
)
def test_counted(number, said):
    assert counted(number, "cell") == said


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 bytes"), (1, "1 byte"), (1000, "1,000 bytes"), (1024, "1 KB"), (5 << 30, "5,120 MB")],
)
def test_size(number, said):
    assert size(number) == said


def test_a_limit_below_a_megabyte_is_not_zero():
    with pytest.raises(UsageError, match="may use 60% of 1 KB"):
        plan(as_source(np.zeros((3, 2))), 2, 1, 1024)


@pytest.mark.parametrize("memory", [0, -1])
def test_no_memory_is_no_limit_to_work_with(memory):
    with pytest.raises(UsageError, match=f"memory is {memory}: expected 1 byte or more"):
        Place(memory=memory)


def test_the_help_of_fit_lists_every_parameter():
    import inspect

    names = [name for name in inspect.signature(ibp.fit).parameters if name != "settings"]
    said = ibp.fit.__doc__ or ""
    assert [name for name in names if f"\n    {name}:" not in said and f"\n    {name}, " not in said] == []
