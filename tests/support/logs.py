"""What the logs of runs and campaigns tell."""

from pathlib import Path
from typing import Any

from ibpdist.storage import events


def kinds_of_events(run: Path) -> list[str]:
    """The kind of every event of a run, in order."""
    return [event["event"] for event in events.read(run / "events.jsonl")]


def events_of_kind(run: Path, kind: str) -> list[dict[str, Any]]:
    """The events of one kind of a run or a campaign."""
    return [event for event in events.read(run / "events.jsonl") if event["event"] == kind]


def objectives(run: Path) -> dict[int, float]:
    """The objective of every step."""
    return {event["step"]: event["terms"]["objective"] for event in events_of_kind(run, "step")}
