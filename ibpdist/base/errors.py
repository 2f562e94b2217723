"""Everything that can go wrong and is not a bug: a sentence and an exit code each."""

from __future__ import annotations

OK = 0
BUG = 1
STEP_LIMIT = 7
INTERRUPTED = 130
TERMINATED = 143


class IbpError(Exception):
    """A failure that the user can act on; `code` is the exit code of the command line."""

    code = BUG


class UsageError(IbpError):
    """An option, a setting or a configuration file is not usable."""

    code = 2


class InputError(IbpError):
    """The data are not usable; says where, what was found and what to do."""

    code = 3

    def __init__(
        self,
        reason: str,
        *,
        file: str | None = None,
        row: int | None = None,
        column: str | int | None = None,
        value: str | None = None,
        kind: str = "input",
    ) -> None:
        self.reason, self.file, self.row, self.column = reason, file, row, column
        self.value, self.kind = value, kind
        super().__init__(_sentence(reason, file, row, column, value))


class StorageError(IbpError):
    """The disk is full, read-only, unreachable, or holds something damaged."""

    code = 4


class ClusterLost(IbpError):
    """The workers or the scheduler are gone; the run resumes from its directory."""

    code = 5


class OutputInUse(IbpError):
    """The output exists, or another process is writing it."""

    code = 6


def _sentence(
    reason: str,
    file: str | None,
    row: int | None,
    column: str | int | None,
    value: str | None,
) -> str:
    place = [
        f"row {row}" if row is not None else "",
        f"column {column}" if column is not None else "",
    ]
    where = ", ".join(part for part in place if part)
    parts = [file or "", where, repr(value) if value is not None else "", reason]
    return ": ".join(part for part in parts if part)
