"""The part of pydantic that checks and formats use, by the standard library alone; `pydantic` in the node's file.

Values are converted as pydantic does by default (lax mode, docs.pydantic.dev: conversion table). The messages differ;
no verdict depends on them. A test judges every recorded case with both.
"""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

_MISSING: Any = object()
_TRUE, _FALSE = {"1", "true", "t", "yes", "y", "on"}, {"0", "false", "f", "no", "n", "off"}


class ValidationError(ValueError):
    """A value that does not fit. `at`: the path to it."""

    def __init__(self, message: str, at: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.at = at

    def errors(self, **_options: object) -> list[dict[str, Any]]:
        """Return the first error, in pydantic's form."""
        return [{"loc": self.at, "msg": self.message, "type": "value_error"}]

    def below(self, key: str | int) -> ValidationError:
        """Return the error as seen from one level higher."""
        return ValidationError(self.message, (key, *self.at))


@dataclasses.dataclass(frozen=True, eq=False)
class FieldInfo:
    """What `Field` asks of a value."""

    default: Any = _MISSING
    alias: str = ""
    rules: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def check(self, value: Any) -> Any:
        """Return the value. Raises `ValidationError` where it breaks a rule."""
        for name, bound in self.rules.items():
            if not _RULES[name](value, bound):
                raise ValidationError(f"must be {name} {bound}")
        return value


def _finite(value: Any, allowed: bool) -> bool:
    return allowed or math.isfinite(value)


_RULES: Mapping[str, Callable[[Any, Any], bool]] = {
    "ge": lambda value, bound: value >= bound,
    "gt": lambda value, bound: value > bound,
    "le": lambda value, bound: value <= bound,
    "lt": lambda value, bound: value < bound,
    "min_length": lambda value, bound: len(value) >= bound,
    "max_length": lambda value, bound: len(value) <= bound,
    "pattern": lambda value, bound: re.search(bound, value) is not None,
    "allow_inf_nan": _finite,
}


def Field(default: Any = _MISSING, *, alias: str = "", description: str = "", **rules: Any) -> Any:  # noqa: N802
    """Return what is asked of a field."""
    del description
    if unknown := rules.keys() - _RULES.keys():
        raise TypeError(f"no rule is called {', '.join(sorted(unknown))}")
    return FieldInfo(default, alias, rules)


@dataclasses.dataclass(frozen=True)
class BeforeValidator:
    """A function that a value passes before it is converted."""

    func: Callable[[Any], Any]


@dataclasses.dataclass(frozen=True)
class AfterValidator:
    """A function that a value passes once it is converted."""

    func: Callable[[Any], Any]


def ConfigDict(**settings: Any) -> dict[str, Any]:  # noqa: N802
    """Return the settings of a model."""
    return settings


class BaseModel:
    """A document with fields, each converted to its type. Unknown fields are ignored unless `extra="forbid"`."""

    model_config: typing.ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **settings: Any) -> None:
        cls.model_config = {**cls.model_config, **settings}

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(_fields(type(self), values))

    @classmethod
    def model_validate(cls, value: Any) -> Any:
        """Return the value as this model."""
        return convert(cls, value)

    @classmethod
    def model_validate_json(cls, text: str | bytes) -> Any:
        """Return the JSON text as this model."""
        try:
            value = json.loads(text)
            json.dumps(value, ensure_ascii=False).encode()  # halves of surrogate pairs are no text
        except RecursionError:
            raise ValidationError("is nested too deep") from None
        except ValueError as error:
            raise ValidationError(f"is no JSON: {error}") from None
        return convert(cls, value)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash(tuple(self.__dict__.values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"


class RootModel(BaseModel):
    """A document that is one value of a type: `RootModel[dict[str, int]]`."""

    root_type: typing.ClassVar[Any] = None
    root: Any

    def __class_getitem__(cls, kind: Any) -> type[RootModel]:
        return type(cls.__name__, (cls,), {"root_type": kind})


_HINTS: dict[type, Mapping[str, Any]] = {}


def _hints(cls: type) -> Mapping[str, Any]:
    if cls not in _HINTS:
        _HINTS[cls] = typing.get_type_hints(cls, include_extras=True)
    return _HINTS[cls]


def _fields(cls: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the converted fields of a model."""
    found: dict[str, Any] = {}
    known = set()
    for name, kind in _hints(cls).items():
        if typing.get_origin(kind) is typing.ClassVar:
            continue
        info = getattr(cls, name, _MISSING)
        default = info.default if isinstance(info, FieldInfo) else info
        key = (info.alias or name) if isinstance(info, FieldInfo) else name
        known.add(key)
        if key in values:
            try:
                value = convert(kind, values[key])
                found[name] = info.check(value) if isinstance(info, FieldInfo) else value
            except ValidationError as error:
                raise error.below(key) from None
        elif default is _MISSING:
            raise ValidationError("is missing", (key,))
        else:
            found[name] = default
    if getattr(cls, "model_config", {}).get("extra") == "forbid" and (extra := values.keys() - known):
        raise ValidationError("is not known", (min(map(str, extra)),))
    return found


def convert(kind: Any, value: Any) -> Any:
    """Return the value as this type. Raises `ValidationError` where it is none."""
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    if kind is Any or kind is object:
        return value
    origin = typing.get_origin(kind)
    if origin is not None:
        return _generic(kind, origin, value)
    if kind is type(None):
        return _exactly(type(None), value, "null")
    if kind in _SCALARS:
        return _SCALARS[kind](value)
    if isinstance(kind, type):
        return _object(kind, value)
    raise TypeError(f"cannot convert to {kind}")


def _object(kind: type, value: Any) -> Any:
    if isinstance(value, kind):
        return value
    if issubclass(kind, enum.Enum):
        try:
            return kind(value)
        except ValueError:
            raise ValidationError("is none of the values") from None
    if issubclass(kind, RootModel):
        made = kind.__new__(kind)
        made.__dict__["root"] = convert(kind.root_type, value)
        return made
    if not isinstance(value, Mapping):
        raise ValidationError("should be an object")
    if issubclass(kind, BaseModel):
        return _model(kind, value)
    if dataclasses.is_dataclass(kind):
        hints = _hints(kind)
        return kind(**{name: convert(hints[name], item) for name, item in value.items()})
    raise TypeError(f"cannot convert to {kind}")


def _model(kind: type[BaseModel], value: Mapping[str, Any]) -> BaseModel:
    made = kind.__new__(kind)
    made.__dict__.update(_fields(kind, value))
    return made


def _generic(kind: Any, origin: Any, value: Any) -> Any:
    arguments = typing.get_args(kind)
    if origin is typing.Annotated:
        return _annotated(arguments, value)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments, value)
    if origin is typing.Literal:
        if any(type(one) is type(value) and one == value for one in arguments):
            return value
        raise ValidationError(f"should be one of {', '.join(map(repr, arguments))}")
    if issubclass(origin, tuple) or origin in (list, set, frozenset, Sequence, Iterable):
        return _items(arguments, origin, value)
    if issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValidationError("should be an object")
        return {convert(arguments[0], key): _below(arguments[1], item, str(key)) for key, item in value.items()}
    raise TypeError(f"cannot convert to {kind}")


def _annotated(arguments: Sequence[Any], value: Any) -> Any:
    kind, *rules = arguments
    for rule in rules:
        if isinstance(rule, BeforeValidator):
            value = _called(rule.func, value)
    value = convert(kind, value)
    for rule in rules:
        if isinstance(rule, FieldInfo):
            value = rule.check(value)
        elif isinstance(rule, AfterValidator):
            value = _called(rule.func, value)
    return value


def _called(function: Callable[[Any], Any], value: Any) -> Any:
    try:
        return function(value)
    except ValidationError:
        raise
    except (ValueError, AssertionError) as error:
        raise ValidationError(str(error)) from None


def _union(kinds: Sequence[Any], value: Any) -> Any:
    """Return the value as the type that it has already, else as the first that takes it."""
    exact = [kind for kind in kinds if isinstance(kind, type) and type(value) is kind]
    first: ValidationError | None = None
    for kind in (*exact, *kinds):
        try:
            return convert(kind, value)
        except ValidationError as error:
            first = first or error
    raise first or ValidationError("fits no type")


def _items(arguments: Sequence[Any], origin: Any, value: Any) -> Any:
    if not isinstance(value, list | tuple | set | frozenset):
        raise ValidationError("should be a list")
    if len(arguments) > 1 and arguments[1] is not Ellipsis:
        if len(value) != len(arguments):
            raise ValidationError(f"should have {len(arguments)} items")
        return tuple(_below(kind, item, at) for at, (kind, item) in enumerate(zip(arguments, value, strict=True)))
    kind = arguments[0] if arguments else Any
    made = [_below(kind, item, at) for at, item in enumerate(value)]
    return made if origin is list else frozenset(made) if origin in (set, frozenset) else tuple(made)


def _below(kind: Any, value: Any, key: str | int) -> Any:
    try:
        return convert(kind, value)
    except ValidationError as error:
        raise error.below(key) from None


def _exactly(kind: type, value: Any, name: str) -> Any:
    if isinstance(value, kind):
        return value
    raise ValidationError(f"should be {name}")


def _int(value: Any) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return int(value)
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?\d+(_\d+)*(\.0+)?\s*", value):
        return int(value.strip().partition(".")[0])
    raise ValidationError("should be a whole number")


def _float(value: Any) -> float:
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (OverflowError, ValueError):
            pass
    raise ValidationError("should be a number")


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    if isinstance(value, str) and value.lower() in _TRUE | _FALSE:
        return value.lower() in _TRUE
    raise ValidationError("should be true or false")


_SCALARS: Mapping[Any, Callable[[Any], Any]] = {
    str: lambda value: _exactly(str, value, "a text"),
    int: _int,
    float: _float,
    bool: _bool,
}
