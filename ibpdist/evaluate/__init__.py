"""How good a fit is, and what it says of new rows.

The package has the name of its first function and can be called as it, so that
`ibpdist.evaluate(run)` works whatever was imported before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Evaluate(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        """See `ibpdist.evaluate.heldout.evaluate`."""
        from ibpdist.evaluate.heldout import evaluate

        return evaluate(*args, **options)


sys.modules[__name__].__class__ = _Evaluate
