"""A small parallel algorithm whose row state matters, and a dataset in memory, for tests of engines and runs.

Soft K-means with memory: the responsibilities of a row are a mixture of those of the step before
and of the new ones, so a lost or stale row state changes the bits. With `draw`, they are drawn.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ibpdist.base.errors import InputError
from ibpdist.base.structs import Array, dims, struct
from ibpdist.catalog.spec import FitSpec
from ibpdist.data._base import Chunk
from ibpdist.engine.provenance import facts
from ibpdist.engine.serial import Serial
from ibpdist.inference._base import Info
from ibpdist.runs.bench import bench_of
from ibpdist.runs.directory import RunDirectory, is_run
from ibpdist.runs.job import Job
from ibpdist.runs.loop import drive

MEMORY = 0.25


@struct("test-toy-params", since=1)
class ToyParams:
    centre: Array = dims("feature column")
    weight: Array = dims("feature")


@struct("test-toy-local", since=1)
class ToyLocal:
    share: Array = dims("row feature")


@struct("test-toy-sums", since=1)
class ToySums:
    on: Array = dims("feature")
    total: Array = dims("feature column")
    fit: Array = dims("")
    rows: Array = dims("")


@struct("test-toy-facts", since=1)
class ToyFacts:
    total: Array = dims("column")
    square: Array = dims("column")
    rows: Array = dims("")


@dataclass(frozen=True)
class Toy:
    """K centres; `draw` makes it a sampler."""

    features: int = 3
    draw: bool = False

    def summarise(self, chunk):
        return ToyFacts(chunk.x.sum(0), (chunk.x**2).sum(0), np.float64(chunk.rows))

    def ask(self, survey, known, draws):
        return None

    def look(self, chunk, question, draws):
        raise AssertionError("nothing was asked")

    def init(self, survey, draws, known=()):
        mean = survey.total / survey.rows
        spread = np.sqrt(survey.square / survey.rows - mean**2)
        noise = draws.generator("centre").normal(size=(self.features, mean.size))
        return ToyParams(mean + spread * noise, np.full(self.features, 1 / self.features))

    def adopt(self, params, survey):
        return params

    def start(self, chunk, params, draws):
        share = draws.uniform("share", chunk.start, chunk.rows, self.features).T
        return ToyLocal(share / share.sum(1, keepdims=True))

    def local(self, chunk, local, params, draws):
        score = chunk.x @ params.centre.T - 0.5 * (params.centre**2).sum(1) + np.log(params.weight)
        top = score.max(1, keepdims=True)
        new = np.exp(score - top)
        fit = (np.log(new.sum(1)) + top[:, 0]).sum()
        new /= new.sum(1, keepdims=True)
        if self.draw:
            u = draws.uniform("pick", chunk.start, chunk.rows, 1).T
            new = (np.cumsum(new, 1) > u).astype(float)
            new[:, 1:] -= new[:, :-1].copy()
        share = MEMORY * local.share + (1 - MEMORY) * new
        sums = ToySums(share.sum(0), share.T @ chunk.x, np.float64(fit), np.float64(chunk.rows))
        return ToyLocal(share), sums

    def update(self, params, sums, draws):
        on = np.maximum(sums.on, 1e-9)
        centre = sums.total / on[:, None]
        if self.draw:
            centre = centre + draws.generator("centre").normal(size=centre.shape) / np.sqrt(on[:, None])
        weight = on / on.sum()
        fit, active = float(sums.fit), float((sums.on > 0.5).sum())
        return ToyParams(centre, weight), Info({"objective": fit, "bound": fit, "active": active})

    def additive(self, params):
        return False

    def monotone(self):
        return False

    def rescale_old_sums(self, params, sums):
        return sums

    def handover_params(self, params):
        return params

    def row_inference(self):
        return self

    def describe(self, params):
        order = np.argsort(-params.weight, kind="stable")
        return {
            "mean": (("feature", "column"), params.centre[order]),
            "prevalence": (("feature",), params.weight[order]),
        }

    def describe_rows(self, local, params):
        order = np.argsort(-params.weight, kind="stable")
        return {"z": (("feature", "row"), local.share.T[order])}


@dataclass(frozen=True)
class MemorySource:
    """Rows of an array in chunks of `width`."""

    x: np.ndarray
    width: int

    @property
    def rows(self):
        return len(self.x)

    @property
    def columns(self):
        return self.x.shape[1]

    @property
    def dtype(self):
        return self.x.dtype

    @property
    def chunks(self):
        return -(-self.rows // self.width)

    @property
    def fingerprint(self):
        return hashlib.sha256(self.x.tobytes() + str(self.width).encode()).hexdigest()

    def bounds(self, index):
        return index * self.width, min(self.rows, (index + 1) * self.width)

    def read(self, index):
        start, stop = self.bounds(index)
        return Chunk(index, start, np.ascontiguousarray(self.x[start:stop]))

    def row_coords(self, index):
        return {}

    def column_coords(self):
        return {}


def blobs(rows=230, columns=5, seed=3, width=10):
    """A source of three overlapping groups; the last chunk is short when width does not divide rows."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=(3, columns)) * 1.5
    x = centre[rng.integers(3, size=rows)] + rng.normal(size=(rows, columns))
    return MemorySource(x, width)


def save_blobs(path, source):
    """Put a source in a file, for workers to open."""
    np.save(path, source.x)
    return f"{path}:{source.width}"


def toy_spec(data, **changes):
    """The spec of a toy fit; `set` may hold `draw` and `faults`, a folder of orders to die."""
    values = {"data": data, "system": "toy", "truncation": 3, "seed": 7, "steps": 12, "checkpoint": 3}
    return FitSpec.make(**values | changes)


def toy_job(spec):
    file, _, width = spec.data.rpartition(":")
    source = MemorySource(np.load(file), int(width))
    toy = Toy(spec.truncation, bool(spec.set.get("draw", False)))
    orders = spec.set.get("faults", "")
    return Job(spec, Mortal(toy.features, toy.draw, orders) if orders else toy, source)


def open_toy(run, cache, spill):
    """The workbench of a toy run, as a worker makes it."""
    return bench_of(toy_job(FitSpec.read(Path(run) / "spec.yaml")), run, cache, spill)


def toy_fit(path, spec, progress=None):
    """Make a toy run, or go on with it, to its end; its folder."""
    if is_run(path):
        run, job = RunDirectory.open(path), toy_job(spec)
    else:
        run, job = toy_run(path, spec)
    try:
        drive(run, job, serial_engine(path, job), progress)
    finally:
        run.close()
    return path


OPEN_TOY = "tests.support.toy:open_toy"


def toy_run(path, spec, **options):
    """A new run directory of a toy."""
    job = toy_job(spec)
    return RunDirectory.create(path, spec.dump(), lambda: facts(job.source), **options), job


def serial_engine(run, job, **options):
    return Serial(bench_of(job, str(run), **options))


@dataclass(frozen=True)
class Mortal(Toy):
    """A toy that obeys orders: a file `STEP-ROW` in the folder kills, once, the process that makes
    that step of the chunk that starts at that row. The file is renamed first, as proof."""

    orders: str = ""

    def local(self, chunk, local, params, draws):
        order = Path(self.orders) / f"{draws.step}-{chunk.start}"
        with suppress(FileNotFoundError):  # no order, or another worker with the same task obeys it
            order.rename(order.with_name(f"obeyed-{order.name}"))
            os.kill(os.getpid(), signal.SIGKILL)
        return super().local(chunk, local, params, draws)


def shares(bench, first, last, step):
    """Row state of adjoining chunks, wherever it is."""
    return [bench.state(index, step).share for index in range(first, last)]


def echo(bench, *values):
    return list(values)


def refuse(bench, row):
    if row == 17:
        raise InputError("not a number", row=row)
    return row


def sleep(bench, seconds):
    time.sleep(seconds)


def slowly(bench, index):
    time.sleep(0.2)
    return index


def build_name(run, cache, spill):
    """A workbench that is only the name of its run."""
    return run


def same(bench):
    return bench
