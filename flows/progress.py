"""Progress of a task, sent to the server at most once a minute and without waiting for it."""

from __future__ import annotations

import contextvars
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from uuid import UUID

from prefect.artifacts import create_progress_artifact, update_progress_artifact

from flows.artifacts import key
from flows.steps import is_served
from ibpdist.base import progress as lines
from ibpdist.base.fit_series import Snapshot

log = logging.getLogger("ibpdist")
EVERY, LAST = 60.0, 5.0
"""Seconds from one message to the next, and for the last one."""


class Minutely:
    """Posts the newest report from a thread of its own.

    A server that is slow or gone does not delay the work: a report that cannot be posted is dropped.
    """

    def __init__(self, key: str, every: float = EVERY) -> None:
        self._key, self._every = key, every
        self._newest: tuple[float, str] | None = None
        self._artifact: UUID | None = None
        self._done = threading.Event()
        run = contextvars.copy_context().run  # it holds which task the artifact belongs to
        self._thread = threading.Thread(target=run, args=(self._work,), daemon=True)
        self._thread.start()

    def tell(self, percent: float, sentence: str) -> None:
        self._newest = percent, sentence

    def close(self) -> None:
        self._done.set()
        self._thread.join(LAST)

    def _work(self) -> None:
        while not self._done.wait(self._every):
            self._post()
        self._post()

    def _post(self) -> None:
        newest, self._newest = self._newest, None
        if newest is None:
            return
        percent, sentence = newest
        try:
            if self._artifact is None:
                artifact = create_progress_artifact(percent, key=self._key, description=sentence)
                self._artifact = cast("UUID", artifact)  # not a coroutine: no loop runs in this thread
            else:
                update_progress_artifact(self._artifact, percent, description=sentence)
        except Exception as error:  # noqa: BLE001  (whatever a client may raise, the work goes on)
            log.debug("progress was not posted: %s", error)


@contextmanager
def minutely(key: str, every: float = EVERY) -> Iterator[Minutely]:
    """Post reports during the work and at its end."""
    reports = Minutely(key, every)
    try:
        yield reports
    finally:
        reports.close()


@contextmanager
def stepping(run: str, limit: int) -> Iterator[lines.Step]:
    """Progress of at most `limit` steps: an artifact, or without a server lines on standard error."""
    if not is_served():
        with lines.stepping("fit", limit) as progress:
            yield progress
        return
    with minutely(key(run, "progress")) as reports:

        def tell(now: Snapshot) -> None:
            note = f"step {now.step} of at most {limit}, {level(now.trace['objective'], now.trace['active'])}"
            reports.tell(100.0 * now.step / limit, note)

        yield tell
        reports.tell(100.0, "finished")


@contextmanager
def sweeping(run: str) -> Iterator[lines.Sweep]:
    """Progress of a campaign: an artifact, or without a server lines on standard error."""
    if not is_served():
        with lines.sweeping("sweep") as progress:
            yield progress
        return
    with minutely(key(run, "progress")) as reports:
        yield lambda now: reports.tell(100.0 * now.ended / now.fits, in_words(now))


def in_words(now: lines.CampaignStatus) -> str:
    """The status of a campaign: a line for each running fit and one for all."""
    return "\n".join(lines.status_lines("sweep", now))


def level(objective: float, active: float) -> str:
    return f"objective {objective:,.4f}, {active:.0f} active"
