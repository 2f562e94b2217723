"""URLs where a path is expected: to the operating system they are local folders with odd names."""

from __future__ import annotations

import re
from pathlib import Path

from ibpdist.base.errors import UsageError

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.:-]+):/+")
"""A scheme and its slashes; a `Path` keeps one of the two."""


def refuse_urls(*places: object) -> None:
    """UsageError for a place of data or results that is a URL, such as s3://bucket/run; only strings and
    paths can be one."""
    for text in (str(place) for place in places if isinstance(place, str | Path)):
        if _URL.match(text):
            url = text if "://" in text else _URL.sub(r"\1://", text, count=1)
            raise UsageError(
                f"{url}: is a URL, and data and results are on file systems only: "
                "give a path on this machine or on a mounted disk"
            )
