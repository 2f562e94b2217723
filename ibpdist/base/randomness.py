"""Randomness as a function of (seed, purpose, step, global row): never carried, never shared.

Row-wise numbers come from a counter-based generator (Philox 4x32-10), so they do not depend
on chunking, on the order of work or on how many workers there are.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ibpdist.kernels.philox import uniforms_of


@dataclass(frozen=True)
class Stream:
    """Row-wise numbers of one purpose in one step."""

    words: NDArray[np.uint32]

    def uniform(self, rows: NDArray[np.intp], width: int) -> NDArray[np.float64]:
        """(width, row) uniforms in (0, 1) for these global rows."""
        return uniforms_of(self.words, rows, width)

    def normal(self, rows: NDArray[np.intp], width: int) -> NDArray[np.float64]:
        """(width, row) standard normals for these global rows."""
        normal: NDArray[np.float64] = ndtri(self.uniform(rows, width))
        return normal


@dataclass(frozen=True)
class Draws:
    """All randomness of one step of one chain."""

    seed: int
    step: int = 0
    chain: int = 0

    def at(self, step: int) -> Draws:
        return Draws(self.seed, step, self.chain)

    def generator(self, purpose: str) -> np.random.Generator:
        """A generator for global draws of this step."""
        return np.random.Generator(np.random.PCG64DXSM(self._sequence(purpose)))

    def uniform(self, purpose: str, start: int, rows: int, width: int) -> NDArray[np.float64]:
        """(width, rows) uniforms in (0, 1) for the global rows from `start` on."""
        return self.stream(purpose).uniform(np.arange(start, start + rows), width)

    def normal(self, purpose: str, start: int, rows: int, width: int) -> NDArray[np.float64]:
        """(width, rows) standard normals for the global rows from `start` on."""
        return self.stream(purpose).normal(np.arange(start, start + rows), width)

    def stream(self, purpose: str) -> Stream:
        """The numbers of a purpose, for rows to be named."""
        return Stream(self._sequence(purpose).generate_state(3).astype(np.uint32))

    def key(self, purpose: str) -> NDArray[np.uint64]:
        """Two words for kernels that make their own numbers (kernels/philox.py)."""
        return self._sequence(purpose).generate_state(2).astype(np.uint64)

    def _sequence(self, purpose: str) -> np.random.SeedSequence:
        name = zlib.crc32(purpose.encode())
        return np.random.SeedSequence(self.seed, spawn_key=(name, self.chain, self.step))
