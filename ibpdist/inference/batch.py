"""Several fits advanced over the same chunks: read and decoded once, each with the bits it has alone.

Every member does its own arithmetic with its own draws, on all rows or on those of a subsample that has rows
in every chunk. A member that has stopped stays as it is;
one that fails is set aside with the reason, and the others go on. All of that is in the parameters,
so row state that was lost is made again as for a single fit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ibpdist.base.errors import IbpError
from ibpdist.base.randomness import Draws
from ibpdist.base.structs import NOTHING, Array, Nothing, dims, parts, replace, struct
from ibpdist.data._base import Chunk
from ibpdist.data.splits import SomeRows
from ibpdist.inference._base import AnyParallel, Info, Known, Trace
from ibpdist.inference.stopping import AnySnapshot, Snapshot, Stop, StopCode, StopRule

SHOWN = ("objective", "bound", "active")


@struct("member-params", since=1)
class MemberParams:
    """Parameters of a member, and how it stands.

    `level` and `heat` are of its last step; `ended` is the step it ended at, 0 while it runs; `word`
    and `reason` say why, in UTF-8. One that failed before its first step has no parameters.
    """

    params: Any
    level: Array = dims()
    heat: Array = dims()
    ended: Array = dims()
    word: Array = dims("letter")
    reason: Array = dims("character")

    @property
    def stop(self) -> Stop | None:
        """Why it ended; None while it runs."""
        return Stop(StopCode(_text(self.word)), _text(self.reason)) if self.word.size else None


@struct("members", since=1)
class Members:
    """Something of each member: parameters, row state, questions; two of them are combined one by one."""

    members: Any = parts()


@struct("failed-question", since=1)
class Left:
    """A question of a member that could not be asked, with the reason."""

    reason: Array = dims("character", reduce="same")


@dataclass(frozen=True)
class Member:
    """A fit that is one of several: its algorithm, its randomness, the rules that end it, and the rows that
    it is made of, None for all."""

    algorithm: AnyParallel
    seed: int
    chain: int = 0
    rules: tuple[StopRule, ...] = ()
    rows: SomeRows | None = None

    def draws(self, draws: Draws) -> Draws:
        return Draws(self.seed, draws.step, self.chain)

    def after(self, one: MemberParams, now: AnySnapshot) -> MemberParams:
        """How it stands after a step: running, or ended by one of its rules."""
        level, heat = now.info.objective, 1.0 if now.info.cold else now.info.heat or 0.0
        before = None if now.step == 1 else _before(one, now.step)
        made = replace(running(now.params), level=np.asarray(level), heat=np.asarray(float(heat)))
        stop = next((found for rule in self.rules if (found := rule(before, now)) is not None), None)
        return made if stop is None else _ended(made, now.step, stop)


@dataclass(frozen=True)
class Batch:
    """Fits of the same data, whose observations need the same facts of them. With `isolate` one that fails
    is set aside; chains of one sampler are no result without it."""

    members: tuple[Member, ...]
    isolate: bool = True

    @cached_property
    def views(self) -> tuple[SomeRows | None, ...]:
        """The rows that members are made of, each once."""
        return tuple(dict.fromkeys(member.rows for member in self.members))

    def summarise(self, chunk: Chunk) -> Members:
        """Facts of the rows of each of the views."""
        first = [next(i for i, one in enumerate(self.members) if one.rows is rows) for rows in self.views]
        return Members(
            tuple(self.members[i].algorithm.summarise(part) for i, part in self._seen(chunk, first))
        )

    def ask(self, survey: Any, known: Known, draws: Draws) -> Members | None:
        asked = [self._ask(i, survey, known, draws) for i in range(len(self.members))]
        return None if all(isinstance(one, Nothing) for one in asked) else Members(tuple(asked))

    def look(self, chunk: Chunk, question: Members, draws: Draws) -> Members:
        asked, found = question.members, [NOTHING] * len(self.members)
        asking = [i for i, one in enumerate(asked) if not isinstance(one, Nothing | Left)]
        for i, part in self._seen(chunk, asking):
            found[i] = self.members[i].algorithm.look(part, asked[i], self.members[i].draws(draws))
        return Members(tuple(found))

    def init(self, survey: Any, draws: Draws, known: Known = ()) -> Members:
        made = []
        for i, member in enumerate(self.members):
            left = [one for one, _ in _own(i, known) if isinstance(one, Left)]
            if left:
                made.append(_failed(NOTHING, 0, _text(left[0].reason)))
                continue
            try:
                params = member.algorithm.init(self._facts(i, survey), member.draws(draws), _own(i, known))
                made.append(running(params))
            except Exception as error:  # noqa: BLE001  (a member fails alone)
                made.append(_failed(NOTHING, 0, self._aside(error)))
        return Members(tuple(made))

    def adopt(self, params: Any, survey: Any) -> Members:
        facts = enumerate(self.members)
        return Members(tuple(running(m.algorithm.adopt(params, self._facts(i, survey))) for i, m in facts))

    def start(self, chunk: Chunk, params: Members, draws: Draws) -> Members:
        found: list[Any] = [NOTHING] * len(self.members)
        for i, part in self._seen(chunk, _running(params)):
            member = self.members[i]
            found[i] = member.algorithm.start(part, params.members[i].params, member.draws(draws))
        return Members(tuple(found))

    def local(self, chunk: Chunk, local: Members, params: Members, draws: Draws) -> tuple[Members, Members]:
        states, sums = list(local.members), [NOTHING] * len(self.members)
        for i, part in self._seen(chunk, _running(params)):
            member, one = self.members[i], params.members[i]
            states[i], sums[i] = member.algorithm.local(part, states[i], one.params, member.draws(draws))
        return Members(tuple(states)), Members(tuple(sums))

    def update(self, params: Members, sums: Members, draws: Draws) -> tuple[Members, Info]:
        made, terms = [], {}
        for i, (one, seen) in enumerate(zip(params.members, sums.members, strict=True)):
            if one.stop is None:
                one, trace = self._updated(self.members[i], one, seen, draws)
                terms.update({f"{i}/{name}": value for name, value in trace.items()})
            made.append(one)
        return Members(tuple(made)), summary(made, terms)

    def monotone(self) -> bool:
        return False

    def _seen(self, chunk: Chunk, members: Iterable[int]) -> Iterator[tuple[int, Chunk]]:
        """The chunk as each of these members sees it; those of the same rows come together."""
        wanted = list(members)
        for rows in self.views:
            those = [i for i in wanted if self.members[i].rows is rows]
            if those:
                part = chunk if rows is None else rows.part(chunk)
                yield from ((i, part) for i in those)

    def _facts(self, i: int, survey: Members) -> Any:
        """What a survey says of the rows of a member."""
        return survey.members[self.views.index(self.members[i].rows)]

    def _ask(self, i: int, survey: Any, known: Known, draws: Draws) -> Any:
        """The next question of a member; nothing, when it has asked enough or cannot."""
        own, member = _own(i, known), self.members[i]
        if len(own) < len(known) or any(isinstance(asked, Left) for asked, _ in own):
            return NOTHING
        try:
            found = member.algorithm.ask(self._facts(i, survey), own, member.draws(draws))
        except Exception as error:  # noqa: BLE001  (a member fails alone)
            return Left(_letters(self._aside(error)))
        return NOTHING if found is None else found

    def _updated(
        self, member: Member, one: MemberParams, sums: Any, draws: Draws
    ) -> tuple[MemberParams, Trace]:
        """A member after its update: running, ended by a rule, or failed; and its numbers."""
        try:
            params, info = member.algorithm.update(one.params, sums, member.draws(draws))
            return member.after(one, Snapshot(draws.step, params, info)), info.trace()
        except Exception as error:  # noqa: BLE001  (a member fails alone)
            return _failed(one.params, draws.step, self._aside(error)), {}

    def _aside(self, error: Exception) -> str:
        """Why a member is set aside, in a sentence; raises where none is."""
        if not self.isolate:
            raise error
        return (
            str(error) if isinstance(error, IbpError) else f"{type(error).__name__}: {error}; this is a bug"
        )


def terms_of(member: int, terms: Mapping[str, float]) -> dict[str, float]:
    """The terms of one member out of those of a step; empty when it made no step."""
    head = f"{member}/"
    return {name.removeprefix(head): value for name, value in terms.items() if name.startswith(head)}


@dataclass(frozen=True)
class AllEnded:
    """Every member has ended."""

    def __call__(self, before: AnySnapshot | None, now: AnySnapshot) -> Stop | None:
        if now.info.running:
            return None
        return Stop(StopCode.ENDED, "every fit has ended")


def summary(members: Sequence[MemberParams], terms: Mapping[str, float]) -> Info:
    """The terms of all members, those of the member with the best objective, and how many still run."""
    levels = {name: value for name, value in terms.items() if name.endswith("/objective")}
    best = max(levels, key=lambda name: levels[name], default=None)
    shown = {name: terms[f"{best.partition('/')[0]}/{name}"] if best else 0.0 for name in SHOWN}
    return Info({**shown, **terms}, running=float(sum(one.stop is None for one in members)))


def _running(params: Members) -> list[int]:
    """Members that have not ended."""
    return [i for i, one in enumerate(params.members) if one.stop is None]


def _own(i: int, known: Known) -> list[tuple[Any, Any]]:
    """The questions of one member with their answers."""
    return [
        (asked.members[i], found.members[i])
        for asked, found in known
        if not isinstance(asked.members[i], Nothing)
    ]


def _before(one: MemberParams, step: int) -> Snapshot[None]:
    return Snapshot(step - 1, None, Info({"objective": float(one.level)}, heat=float(one.heat)))


def running(params: Any) -> MemberParams:
    none, one = np.zeros(0, np.uint8), np.ones(())
    return MemberParams(params, level=np.zeros(()), heat=one, ended=np.asarray(0), word=none, reason=none)


def _ended(one: MemberParams, step: int, stop: Stop) -> MemberParams:
    word, reason = _letters(stop.code), _letters(stop.sentence)
    return replace(one, ended=np.asarray(step), word=word, reason=reason)


def _failed(params: Any, step: int, sentence: str) -> MemberParams:
    return _ended(running(params), step, Stop(StopCode.FAILED, sentence))


def _letters(text: str) -> Array:
    return np.frombuffer(text.encode(), np.uint8).copy()


def _text(letters: Array) -> str:
    return letters.astype(np.uint8).tobytes().decode()
