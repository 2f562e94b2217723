"""Reports of a result: in words, in pictures, and as a page.

The package has the name of its first function and can be called as it, so that
`ibpdist.report(run)` works whatever was imported before.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Report(ModuleType):
    def __call__(self, *args: Any, **options: Any) -> Any:
        """See `ibpdist.report.page.report`."""
        from ibpdist.report.page import report

        return report(*args, **options)


sys.modules[__name__].__class__ = _Report
