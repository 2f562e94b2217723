"""Sources that wrap another: what they do not change is that of the source below."""

import inspect

import pytest

from ibpdist.data._base import Source
from ibpdist.data.arrays import ArrayData
from ibpdist.data.one_chunk import Whole
from ibpdist.data.splits import HeldCells, HeldRows
from ibpdist.data.wrapped import Wrapped, innermost
from tests.support.matrices import matrix

MEMBERS = [name for name in vars(Source) if not name.startswith("_")]


def data():
    return ArrayData(matrix(40, 6), 16)


class Named:
    """Every member is, or returns, its own name and the arguments."""

    def __getattr__(self, name):
        called = inspect.isfunction(vars(Source)[name])
        return (lambda *arguments: (name, *arguments)) if called else name


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_of_a_source_is_forwarded(name):
    ours, theirs = getattr(Wrapped(Named()), name), getattr(Named(), name)
    if not callable(theirs):
        assert ours == theirs
        return
    arguments = [3] * (len(inspect.signature(vars(Source)[name]).parameters) - 1)
    assert ours(*arguments) == theirs(*arguments)


@pytest.mark.parametrize(
    "wrap", [HeldCells().train, HeldRows(0.3).train, HeldRows(0.3).test, lambda s: Whole(s, 2)]
)
def test_what_a_wrapper_does_not_change_is_that_of_the_source(wrap):
    source = data()
    wrapped = wrap(source)
    assert isinstance(wrapped, Wrapped)
    assert (wrapped.columns, wrapped.dtype) == (source.columns, source.dtype)
    assert wrapped.column_coords() == source.column_coords()
    assert wrapped.fingerprint != source.fingerprint


def test_innermost_is_below_all_wrappers():
    source = data()
    assert innermost(source) is source
    assert innermost(Whole(HeldCells().train(source), 3)) is source
