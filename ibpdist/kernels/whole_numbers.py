"""Whole numbers of a text, for files of counts: as fast as the text can be read."""

from __future__ import annotations

import numpy as np
from numba import njit

from ibpdist.kernels.options import INLINED, OPTIONS

ZERO, NINE, NEWLINE, POINT, COLON = 48, 57, 10, 46, 58
FINE, NO_NUMBER, NEGATIVE, FRACTION, TOO_LARGE = 0, 1, 2, 3, 4
"""What is wrong at the place where reading stopped."""
LARGEST = 10**15


@njit(**INLINED)
def _divides(byte):
    """Whether a byte divides numbers: a space, tab, colon, or the end of a line."""
    return byte in (32, 9, 13, COLON, NEWLINE)


@njit(**INLINED)
def _digit(byte):
    return ZERO <= byte <= NINE


@njit(**OPTIONS)
def _number(text, at):
    """(value, what is wrong, the place behind it) of the number that begins at a place."""
    if not _digit(text[at]):
        return 0, NEGATIVE if text[at] == 45 else NO_NUMBER, at
    value = np.int64(0)
    while at < text.size and _digit(text[at]):
        value = value * 10 + (text[at] - ZERO)
        if value > LARGEST:
            return 0, TOO_LARGE, at
        at += 1
    wrong = FINE
    if at < text.size and text[at] == POINT:
        at += 1
        while at < text.size and _digit(text[at]):
            wrong = wrong if text[at] == ZERO else FRACTION
            at += 1
    if at < text.size and not _divides(text[at]):
        wrong = NO_NUMBER
    return value, wrong, at


@njit(cache=True, **OPTIONS)
def read_numbers(text, numbers, lines):
    """(how many numbers, what is wrong, where): the numbers of `text` (byte) and the line of each, counted
    from zero, into `numbers` and `lines`, which have room.

    Numbers are divided by spaces, tabs, colons and ends of lines; the text ends with the end of a line. A
    number may have a point with zeros behind it.
    """
    count, line, at = 0, 0, 0
    while at < text.size:
        if _divides(text[at]):
            line += text[at] == NEWLINE
            at += 1
            continue
        value, wrong, behind = _number(text, at)
        if wrong != FINE:
            return count, wrong, at
        numbers[count], lines[count] = value, line
        count, at = count + 1, behind
    return count, FINE, at
