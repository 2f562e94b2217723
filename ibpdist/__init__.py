"""Latent feature models of unknown size, for matrices larger than memory.

Names are imported when they are first used, so that `import ibpdist` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "SYSTEMS": "ibpdist.catalog",
    "append": "ibpdist.data.append",
    "bounds": "ibpdist",
    "choose": "ibpdist.evaluate.choose",
    "evaluate": "ibpdist",
    "fit": "ibpdist.pipeline",
    "ingest": "ibpdist.data.ingest",
    "open_campaign": "ibpdist.evaluate.campaign",
    "open_dataset": "ibpdist.data.store",
    "open_result": "ibpdist.runs.result",
    "posterior": "ibpdist.evaluate",
    "report": "ibpdist",
    "resume": "ibpdist.pipeline",
    "sweep": "ibpdist.campaigns",
    "synthesise": "ibpdist.data.synthetic",
    "synthetic": "ibpdist.data.synthetic",
    "transform": "ibpdist.evaluate.transform",
    "verify": "ibpdist.campaign_verify",
}
_MODULES = (__name__, "ibpdist.evaluate")
"""Where each name lives; those of `_MODULES` are modules themselves."""

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if home in _MODULES:
        return import_module(f"{home}.{name}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
