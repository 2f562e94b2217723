"""What the kinds of splits have in common."""

from __future__ import annotations

import hashlib
from dataclasses import fields
from typing import Any

from ibpdist.base.errors import UsageError
from ibpdist.data._base import Source
from ibpdist.data.wrapped import Wrapped


def refuse_share(name: str, share: float) -> None:
    """Refuse what is not strictly between nothing and all."""
    if not 0 < share < 1:
        raise UsageError(f"held-out {name} is {share}: expected more than 0 and less than 1")


def recipe(kind: str, split: Any) -> str:
    """The text that `parse_split` reads."""
    values = [f"{field.name}={getattr(split, field.name)!r}" for field in fields(split)]
    return f"{kind}:{','.join(values)}"


def fingerprint(source: Source, text: str, role: str) -> str:
    """Fingerprint of the part of a source that a recipe (`text`) gives to training or test (`role`)."""
    return hashlib.sha256(f"{source.fingerprint} {text} {role}".encode()).hexdigest()


class TrainingPart(Wrapped):
    """A source without what a split hides within its rows; a subclass reads it."""

    def __init__(self, source: Source, split: Any) -> None:
        super().__init__(source)
        self.split = split

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.source, self.split.text, "train")
