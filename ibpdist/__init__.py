"""Latent feature models of unknown size, for matrices larger than memory.

Names are imported when they are first used, so that `import ibpdist` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOME = {
    "SYSTEMS": "ibpdist.catalog.systems",
    "append": "ibpdist.data.append",
    "bounds": "ibpdist.model",
    "choose": "ibpdist.evaluate.choose",
    "evaluate": "ibpdist",
    "fit": "ibpdist.runs.fit",
    "ingest": "ibpdist.data.ingest",
    "open_campaign": "ibpdist.campaigns.campaign",
    "open_dataset": "ibpdist.data.store",
    "open_result": "ibpdist.runs.result",
    "posterior": "ibpdist.evaluate",
    "reconstruct": "ibpdist.evaluate.reconstruct",
    "report": "ibpdist",
    "resume": "ibpdist.runs.fit",
    "round_bounds": "ibpdist.model",
    "shared_features": "ibpdist.evaluate.groups",
    "sweep": "ibpdist.campaigns.run",
    "synthesise": "ibpdist.evaluate.synthetic",
    "synthetic": "ibpdist.evaluate.synthetic",
    "transform": "ibpdist.evaluate.transform",
    "verify": "ibpdist.campaigns.verify",
}
_MODULES = (__name__, "ibpdist.evaluate", "ibpdist.model")
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
