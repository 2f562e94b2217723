"""The server that Prefect is set to use: whether it answers, and how its log is shown on this console."""

from __future__ import annotations

import logging
import re
from urllib.parse import urlsplit

from prefect.client.orchestration import get_client
from prefect.logging.handlers import PrefectConsoleHandler

from ibpdist.base.errors import ClusterLost, UsageError

_WAY_OUT = "or unset PREFECT_API_URL to run in this process"


def refuse_unreachable(url: str) -> None:
    """UsageError for a malformed address, ClusterLost when no server of Prefect answers there."""
    if not _is_address(url):
        raise UsageError(
            f"PREFECT_API_URL is {_shown(url)!r}: expected an address such as http://127.0.0.1:4200/api, "
            + _WAY_OUT
        )
    try:
        with get_client(sync_client=True) as client:
            client.raise_for_api_version_mismatch_once()
    except Exception as error:
        reason = re.split("\n| - ", str(error.__cause__ or error))[0]
        raise ClusterLost(
            f"no Prefect server can be reached at {_shown(url)} ({_shown(reason)}): "
            f"start it, correct its address, which ends in /api, {_WAY_OUT}"
        ) from error


def quiet_console() -> None:
    """Show a failure as one line of the log: the caller prints the reason, and a bug with its traceback.

    The server gets the full log.
    """
    for handler in logging.getLogger().handlers:
        if isinstance(handler, PrefectConsoleHandler) and not isinstance(handler.formatter, _OneLine):
            handler.setFormatter(_OneLine(handler.formatter or logging.Formatter()))


class _OneLine(logging.Formatter):
    """Another formatter, without the tracebacks of Prefect."""

    def __init__(self, whole: logging.Formatter) -> None:
        super().__init__()
        self._whole = whole

    def format(self, record: logging.LogRecord) -> str:
        if record.name.startswith("prefect"):
            record = logging.makeLogRecord(vars(record) | {"exc_info": None, "exc_text": None})
        return self._whole.format(record)


def _shown(text: str) -> str:
    """Without the name and password that an address may have."""
    return re.sub(r"//[^/\s]*@", "//", text)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
