"""Small campaigns for tests: data, a grid, and what is the same in two results."""

from pathlib import Path
from typing import Any

import ibpdist as ibp
from ibpdist.storage import events

HERE = Path(__file__).parents[2]


def small_store(folder: Path, rows: int = 240, **options: Any) -> Path:
    """Rows with three planted features, in chunks of 64."""
    path = folder / "data.zarr"
    shape = {"columns": 8, "features": 3, "noise": 0.1, "seed": 1, "chunk_rows": 64}
    ibp.synthesise("linear-gaussian", path, rows=rows, **(shape | options))
    return path


def grid(store: Path | str, **keys: Any) -> dict[str, Any]:
    """Two truncation levels and two restarts, from random starts and without moves."""
    plain = {"system": "lg-vi-infinite", "truncation": [3, 4], "restarts": 2, "steps": 6, "rtol": 0.0}
    return {"data": str(store), **plain, "start": "random", "set": {"moves": False}} | keys


def as_yaml(keys: dict[str, Any]) -> str:
    """The grid as a file says it."""
    lines = []
    for name, value in keys.items():
        if isinstance(value, dict):
            lines += [f"{name}:", *(f"  {inner}: {_text(one)}" for inner, one in value.items())]
        else:
            lines.append(f"{name}: {_text(value)}")
    return "\n".join(lines) + "\n"


def alone(fit: Any, run: Path, **where: Any) -> Any:
    """The same fit by itself."""
    spec = fit.spec
    keys = ("steps", "rtol", "inner", "holdout", "seed", "checkpoint", "chains", "burn", "thin")
    given = {name: getattr(spec, name) for name in keys}
    return ibp.fit(spec.data, run=run, system=spec.system, K=spec.truncation, **given, **spec.set, **where)


def steps_made(run: Path) -> int:
    """Steps of all groups; those that were made twice are counted twice."""
    logs = [events.read(log) for log in run.glob("groups/*/events.jsonl")]
    return sum(event["event"] == "step" for log in logs for event in log)


def _text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
