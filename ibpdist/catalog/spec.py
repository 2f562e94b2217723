"""What one fit is: a checked, frozen record, to and from YAML, with an id.

The YAML is plain: numbers, true, false, words. Anchors, tags, duplicate or unknown keys and
wrong types are refused with the key and its line; `no` and `012` are words, never guessed at.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
)
from pydantic_core import PydanticCustomError

from ibpdist.base.errors import UsageError

LARGEST_FILE = 1 << 20
_POSITIVE = ("mass", "noise", "scale", "concentration", "eta", "smoothing", "shape", "word_shape", "floor")
_LEAST, _MOST = 1e-120, 1e120
"""Between these a number can be squared and divided by; data whose numbers are larger are refused too."""
_INT = re.compile(r"[-+]?(0|[1-9][0-9]{0,999})\Z")
_FLOAT = re.compile(r"([-+]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan)\Z")
_RECIPE = re.compile(r"(cells|rows|tokens)(:.*)?\Z")
_NOT_RESULT = {"data", "checkpoint"}
_OPTIONAL = {"stability", "subsample", "member"}
"""Keys that a spec has only where they differ from their defaults, so that other specs keep their ids."""
Lines = dict[tuple[str, ...], int]


def scalar(text: str) -> bool | int | float | str:
    """A number, true or false when the word is one, else the word itself."""
    if text in ("true", "false"):
        return text == "true"
    if _INT.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text.replace(".inf", "inf").replace(".nan", "nan"))
    return text


def _plain(value: Any) -> Any:
    """Python's number for one of numpy's."""
    return getattr(value, "item", lambda: value)()


def _setting(value: object) -> object:
    value = _plain(value)
    if isinstance(value, bool | int | str) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError("a setting is a finite number, true, false or a word")


def _holdout(value: object) -> object:
    if isinstance(value, str):
        if not _RECIPE.match(value):
            raise ValueError(
                "expected a share of the columns, or a recipe that begins with cells, rows or tokens"
            )
        _recipe(value)
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError("expected finite number")
    if not 0 <= value < 1:
        raise ValueError("expected less than 1" if value >= 1 else "expected 0 or greater")
    return float(value)


def _recipe(text: str) -> None:
    """Refuse a recipe that does not say what to hold out; its text is told by the sentence around it."""
    from ibpdist.data.splits import parse_split

    try:
        seed = parse_split(text).seed
    except UsageError as error:
        raise ValueError(str(error).removeprefix(f"held-out {text!r}: ")) from None
    if seed < 0:
        raise ValueError("expected a seed of 0 or greater")


def _truncation(value: object) -> object:
    if value == "auto":
        return value
    if not isinstance(value, int) or value is True or value is False:
        raise ValueError("expected integer or auto")
    if value < 1:
        raise ValueError("expected greater than 0")
    return value


def _name(value: str) -> str:
    if not value.isprintable():
        raise ValueError("a name has no control characters")
    return value


Name = Annotated[str, Field(min_length=1, max_length=4096), AfterValidator(_name)]
Setting = Annotated[Any, BeforeValidator(_setting)]
Holdout = Annotated[float | str, BeforeValidator(_holdout)]
Truncation = Annotated[int | Literal["auto"], BeforeValidator(_truncation)]


class Spec(BaseModel):
    """A frozen record of what a file of keys and values says; what is wrong with one is a UsageError."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def make(cls, **values: Any) -> Self:
        """A spec from options, numpy's numbers among them; a fault is a UsageError that names the option."""
        return cls._checked({name: _plain(value) for name, value in values.items()}, "", {})

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """The spec in a YAML file; a fault is a UsageError with the key and its line."""
        values, lines = _read_yaml(Path(path))
        return cls._checked(values, f"{path}: ", lines)

    @classmethod
    def parse(cls, text: str, name: str = "spec") -> Self:
        """The spec that `dump` wrote; `name` stands for the file in errors."""
        values, lines = _parse_yaml(text, name)
        return cls._checked(values, f"{name}: ", lines)

    @classmethod
    def _checked(cls, values: Mapping[str, Any], file: str, lines: Lines) -> Self:
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise UsageError(file + _sentence(error, lines, list(cls.model_fields))) from None

    def dump(self) -> str:
        """Canonical YAML, keys in the order of the fields; reading it gives an equal spec."""
        return yaml.dump(self.written(), Dumper=_Dumper, sort_keys=False, allow_unicode=True)

    def written(self) -> dict[str, Any]:
        """Keys and values as they are written to a file."""
        fields = type(self).model_fields
        values = self.model_dump()
        return {k: v for k, v in values.items() if k not in _OPTIONAL or v != fields[k].default}


class FitSpec(Spec):
    """One fit: the data, the system of the catalog, and everything that decides the result.

    `truncation` is K, the maximum number of features, or `auto`: as many as the
    data ask for. `seed` is any integer from 0 on.
    `rtol` is the relative gain of the objective at which a fit stops, `steps` the limit.
    `inner` sweeps over the features are made in a step. `holdout` is the share of the columns
    hidden in the last half of the rows, or a recipe such as `rows:share=0.1` (data/splits.py).
    A sampler makes `steps` steps of each of `chains` chains; of those after the first `burn` (half of
    all, unless it is said) every `thin`-th is kept. `checkpoint` is the number of steps between
    checkpoints; it does not change the result. `stability` is the number of subsamples that are fitted
    beside all rows, `subsample` the share of the rows in each, and `member` the subsample that this fit
    is made of, None for all rows. `set` holds the settings of the system.
    """

    data: Name
    system: str = Field(min_length=1, max_length=64)
    truncation: Truncation
    seed: int = Field(ge=0)
    steps: int = Field(default=1000, gt=0)
    rtol: float = Field(default=1e-6, ge=0, lt=1)
    inner: int = Field(default=1, gt=0)
    restarts: int = Field(default=1, gt=0)
    chains: int = Field(default=1, gt=0)
    burn: int | None = Field(default=None, ge=0)
    thin: int = Field(default=1, gt=0)
    holdout: Holdout = 0.0
    checkpoint: int = Field(default=10, gt=0)
    stability: int | None = Field(default=None, ge=2)
    subsample: float = Field(default=0.5, gt=0, lt=1)
    member: int | None = Field(default=None, ge=0)
    set: dict[str, Setting] = Field(default_factory=dict)

    @property
    def burned(self) -> int:
        """Steps of a chain that are not kept: half of them unless it is said."""
        return self.steps // 2 if self.burn is None else self.burn

    @field_validator("set")
    @classmethod
    def _in_range(cls, value: dict[str, Any]) -> dict[str, Any]:
        for name, setting in value.items():
            positive(name, setting)
        return value

    def id(self, fingerprint: str) -> str:
        """16 hex digits: a hash of all that decides the result, the data by their fingerprint."""
        decides = {key: value for key, value in self.written().items() if key not in _NOT_RESULT}
        text = json.dumps([decides, fingerprint], sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def positive(name: str, value: Any) -> None:
    """Refuse a setting that must be positive, and is a number that is not or that is out of all range."""
    if name not in _POSITIVE or isinstance(value, str):
        return
    if isinstance(value, bool) or value <= 0:
        raise setting_error(name, value, "expected greater than 0")
    if not _LEAST <= value <= _MOST:
        between = f"expected between {_LEAST:g} and {_MOST:g}; give the data another unit"
        raise setting_error(name, value, between)


def setting_error(name: str, value: Any, reason: str, within: tuple[str, ...] = ()) -> PydanticCustomError:
    """What is wrong with one of many settings; the sentence names it and its line.

    `within` are the keys around it that the validator does not stand for.
    """
    told = {"keys": (*within, name), "value": value, "reason": reason}
    return PydanticCustomError("setting", "{reason}", told)


def _sentence(error: ValidationError, lines: Lines, known: list[str]) -> str:
    first = error.errors(include_url=False)[0]
    at = tuple(str(part) for part in first["loc"] if not isinstance(part, int))
    value = first["input"]
    if first["type"] == "setting":
        at, value = (*at, *first["ctx"]["keys"]), first["ctx"]["value"]
    line = lines.get(at, lines.get(at[:1]))
    where = (f"line {line}: " if line is not None else "") + ".".join(at)
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(at[-1], known, n=1, cutoff=0.75)
        hint = f"did you mean {close[0]}?" if close else f"expected one of {', '.join(known)}"
        return f"{where}: unknown key; {hint}"
    if first["type"] == "missing":
        return f"{where}: this key is required"
    reason = first["msg"].removeprefix("Value error, ")
    reason = re.sub(r"^Input should be (a valid |an? )?", "expected ", reason)
    return f"{where}: {reason}, got {value!r:.200}"


def _read_yaml(path: Path) -> tuple[dict[str, Any], Lines]:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise UsageError(f"{path}: larger than 1 MiB; a configuration is a short text")
        text = path.read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"{path}: not UTF-8 text") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    return _parse_yaml(text, str(path))


def _parse_yaml(text: str, name: str) -> tuple[dict[str, Any], Lines]:
    lines: Lines = {}
    loader = _Loader(text)
    try:
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            raise UsageError(f"{name}: expected keys and values")
        _walk(node, (), lines)
        values: dict[str, Any] = loader.construct_document(node)
    except yaml.YAMLError as error:
        raise UsageError(f"{name}: {_yaml_sentence(error)}") from None
    except RecursionError:
        raise UsageError(f"{name}: nested too deeply; a configuration has two levels") from None
    finally:
        loader.dispose()
    return values, lines


def _walk(node: yaml.Node, at: tuple[str, ...], lines: Lines) -> None:
    """Note the line of each key; refuse a key that stands twice or is not a word."""
    if not isinstance(node, yaml.MappingNode):
        return
    for key, value in node.value:
        line = key.start_mark.line + 1
        if not isinstance(key, yaml.ScalarNode) or key.tag != "tag:yaml.org,2002:str":
            raise yaml.MarkedYAMLError(problem="a key must be a word", problem_mark=key.start_mark)
        here = (*at, key.value)
        if here in lines:
            problem = f"{'.'.join(here)} stands twice, first in line {lines[here]}"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
        lines[here] = line
        _walk(value, here, lines)


def _yaml_sentence(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    if problem.startswith("but "):
        problem = f"{getattr(error, 'context', '')} {problem}"
    return f"line {mark.line + 1}: {problem}" if mark is not None else str(problem)


class _Loader(yaml.SafeLoader):
    """Safe YAML with the scalars of the JSON kind only, without anchors."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(problem="anchors are not read", problem_mark=event.start_mark)
        return super().compose_node(parent, index)


class _Dumper(yaml.SafeDumper):
    """Quotes every word that `_Loader` or another reader of YAML would take for something else."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


for _side in (_Loader, _Dumper):
    _side.add_implicit_resolver("tag:yaml.org,2002:null", re.compile(r"(~|null|)\Z"), ["~", "n", ""])
    _side.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(true|false)\Z"), list("tf"))
    _side.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
    _side.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+.0123456789"))
