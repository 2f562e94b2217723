"""How a command ends: its exit code, and one line on standard error when it is not 0."""

from __future__ import annotations

import errno
import signal
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

import click

from ibpdist.base.errors import BUG, INTERRUPTED, OK, TERMINATED, IbpError, StorageError, UsageError
from ibpdist.base.streams import ReaderGone, guarded

_STORAGE = {
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.EFBIG,
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.ESTALE, errno.ENAMETOOLONG, errno.EMFILE,
}  # fmt: skip

INSISTS = 1.0
"""Seconds after which a signal that got lost is raised again."""


class Terminated(KeyboardInterrupt):
    """SIGTERM: cleaned up after as Ctrl-C is, with an exit code of its own."""


class _Stopped(Exception):
    """A signal on its way past click, which would take it for its own."""

    def __init__(self, code: int, word: str) -> None:
        self.code = code
        super().__init__(word)


class Cli(click.Group):
    """The group of all commands, in the order in which they were added."""

    program = "ibpdist"
    """What help and errors call it, whoever runs it."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except Terminated as stop:
            raise _Stopped(TERMINATED, "terminated") from stop
        except KeyboardInterrupt as stop:
            raise _Stopped(INTERRUPTED, "interrupted") from stop

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run one command and leave the process with its exit code."""
        options["standalone_mode"] = False
        options["prog_name"] = self.program
        with guarded():
            try:
                with _signals(), warnings.catch_warnings():
                    warnings.showwarning = _warn
                    code = super().main(args, *rest, **options)
            except SystemExit:
                raise
            except ReaderGone:
                code = OK
            except BaseException as error:  # noqa: BLE001  (a signal is an outcome too)
                code = _explain(error)
        sys.exit(code if isinstance(code, int) else 0)


def _explain(error: BaseException) -> int:
    """Print what went wrong in one line; the exit code."""
    code, sentence = _outcome(error)
    if code == BUG:
        traceback.print_exception(error)
        sentence = "this is a bug in ibpdist; please report the lines above"
    click.echo(f"ibpdist: {' '.join(sentence.split())}", err=True)
    return code


def _outcome(error: BaseException) -> tuple[int, str]:
    if isinstance(error, IbpError | _Stopped):
        return error.code, str(error)
    if isinstance(error, click.UsageError):
        where = error.ctx.command_path if error.ctx else "ibpdist"
        return UsageError.code, f"{error.format_message().rstrip('.')}; see {where} --help"
    if isinstance(error, click.ClickException):
        return UsageError.code, error.format_message()
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return INTERRUPTED, "interrupted"
    if isinstance(error, OSError) and error.errno in _STORAGE:
        return StorageError.code, f"{error.filename or 'storage'}: {error.strerror}"
    return BUG, str(error)


def _warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
    """A warning of ours is for the user and one line; those of libraries are for developers."""
    if category is UserWarning or category.__module__.startswith("ibpdist."):
        click.echo(f"ibpdist: warning: {' '.join(str(message).split())}", err=True)


@contextmanager
def _signals() -> Iterator[None]:
    """SIGTERM and SIGINT end the work tidily the first time, at once the second time.

    Compilers call back into Python and swallow exceptions there, so a signal that is not on its way
    out is raised again, and the message of Python about the swallowed one is hidden. So are messages of
    partially built objects that a signal left, which come when they are deleted.
    """

    def leave(number: int, frame: FrameType | None) -> NoReturn:
        stop = Terminated if number == signal.SIGTERM else KeyboardInterrupt

        def insist(alarm: int, frame: FrameType | None) -> None:
            if not _leaving():
                raise stop

        sys.unraisablehook = _half_made
        signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGALRM, insist)
        signal.setitimer(signal.ITIMER_REAL, INSISTS, INSISTS)
        raise stop

    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    signal.signal(signal.SIGINT, leave)
    signal.signal(signal.SIGTERM, leave)
    hook, sys.unraisablehook = sys.unraisablehook, _swallowed
    try:
        yield
    finally:
        if sys.unraisablehook is not _half_made:
            sys.unraisablehook = hook
        if signal.getsignal(signal.SIGALRM) is not before[signal.SIGALRM]:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def _swallowed(info: Any) -> None:
    if not isinstance(info.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(info)


def _half_made(info: Any) -> None:
    """Print nothing."""


def _leaving() -> bool:
    """Whether the code that runs now cleans up after a signal."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt | _Stopped):
        error = error.__context__
    return error is not None
