"""One BLAS thread while a task runs: the same bits everywhere, and no fight for the cores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import threadpoolctl
from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_controller: ThreadpoolController | None = None
_limiter: Any = None
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the first to enter sets it, the last to leave restores it.

    The limit belongs to the process, so threads that work side by side share it.
    """
    _enter()
    try:
        yield
    finally:
        _leave()


def kernels() -> list[dict[str, str]]:
    """The BLAS libraries of this process and the kernel class each has chosen."""
    return [dict(one) for one in _kernels()]


@cache
def _kernels() -> list[dict[str, str]]:
    import_module("scipy.linalg")  # numpy and scipy each bring one; it is loaded with its user
    found = ThreadpoolController().select(user_api="blas").info()
    keys = ("internal_api", "version", "architecture")
    # The controller finds them in an order of its own, which differs from process to process.
    return sorted(
        ({key: str(lib.get(key)) for key in keys} for lib in found), key=lambda lib: [*lib.values()]
    )


def _enter() -> None:
    global _controller, _limiter, _inside
    with _lock:
        _inside += 1
        if _controller is None:  # finding the libraries takes milliseconds, so it is done once
            _controller = ThreadpoolController()
        _take_control()
        made = _controller.limit(limits=1, user_api="blas")  # by each: some libraries count by thread
        if _inside == 1:
            _limiter = made


def _leave() -> None:
    global _limiter, _inside
    with _lock:
        _inside -= 1
        if _inside == 0:
            _take_control()
            _limiter.restore_original_limits()
            _limiter = None
            _take_control()


def _take_control() -> None:
    """Recent versions of threadpoolctl obey only the thread that set a limit first, for as long as
    that lives, and silently. Tasks run in many threads, and the lock here does what that rule is for."""
    give_up = getattr(threadpoolctl.OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)
