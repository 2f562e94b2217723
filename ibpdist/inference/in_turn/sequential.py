"""Samplers that take the rows one after the other: the protocol, and what a chain is.

Each step of such a chain needs all rows in turn, so one process holds the data and the chain; what
runs side by side are chains (chains.py). A sweep is a pure function of the data, the chain and
the draws of its step, so a chain that was lost is made again.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from ibpdist.base.randomness import Draws
from ibpdist.base.structs import struct
from ibpdist.data._base import Chunk
from ibpdist.inference._base import Info
from ibpdist.inference.ascent.params import GaussianModel
from ibpdist.model.observations._base import Survey


@struct("chain", since=1)
class Chain:
    """One draw of everything: globals, and who has what in all rows."""

    params: Any
    state: Any


@runtime_checkable
class Sequential(Protocol):
    """A sampler over data that one process holds."""

    @property
    def model(self) -> GaussianModel: ...

    def start(self, data: Chunk, survey: Survey, draws: Draws) -> Chain:
        """Where a chain begins."""
        ...

    def sweep(self, data: Chunk, chain: Chain, draws: Draws) -> tuple[Chain, Info]:
        """One step of the chain, which leaves the posterior as it is, and the terms of the log joint."""
        ...
