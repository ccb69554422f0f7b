"""JSON documents read into frozen dataclasses, with one wording for what does not fit them.

Standard library only: a node reads its own documents by the same code (`clusterctl-node check`). Unknown fields are
ignored. A number may be a text (`"12"`), as some tools print it; all other types must be as declared.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import math
import re
import types
import typing
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypeVar

from clusterctl.fleet.errors import ParseError

T = TypeVar("T")
Read = Callable[[Any], Any]
"""Returns a JSON value as the declared type. Raises `MisfitError`."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Metadata of `Annotated`: what a value must be, in addition to its type. Pydantic holds site files to it, too."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str | None = None
    allow_inf_nan: bool | None = None

    @property
    def rules(self) -> Mapping[str, Any]:
        """The rules that are set, by the names that pydantic gives them."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: value for name, value in values.items() if value is not None}

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Return pydantic's schema of the type, with the rules (docs.pydantic.dev: custom types)."""
        return {**handler(source), **self.rules}


@dataclasses.dataclass(frozen=True, slots=True)
class Alias:
    """Metadata of `Annotated`: the field's name in the document."""

    alias: str


Count = Annotated[int, Within(ge=0)]
Figure = Annotated[float, Within(ge=0, allow_inf_nan=False)]
Text = Annotated[str, Within(min_length=1)]


class MisfitError(ValueError):
    """A value that is not of the declared type. `path` leads to it."""

    def __init__(self, message: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(message)
        self.message, self.path = message, path

    @property
    def field(self) -> str:
        """The path as text, empty for the document itself."""
        return ".".join(map(str, self.path))


def read_document(kind: type[T], text: str, where: str) -> T:
    """Return the JSON text as `kind`. Raises `ParseError` that names `where` and the first wrong field."""
    try:
        return read_json(kind, text)
    except MisfitError as error:
        raise not_understood(error, where) from None


def read_json(kind: type[T], text: str) -> T:
    """Return the JSON text as `kind`. Raises `MisfitError`."""
    return typing.cast("T", reader(typing.cast("Any", kind))(_decoded(text)))


def read_value(kind: type[T], value: Any, where: str) -> T:
    """Return a decoded JSON value as `kind`. Raises `ParseError` like `read_document`."""
    try:
        return typing.cast("T", reader(typing.cast("Any", kind))(value))
    except MisfitError as error:
        raise not_understood(error, where) from None


def not_understood(error: MisfitError, where: str) -> ParseError:
    """Return the error for the first wrong field. It repeats no input: that may hold a secret."""
    return ParseError(f"not understood: {error.message}", where=f"{where} {error.field}".strip())


def _decoded(text: str) -> Any:
    try:
        value = json.loads(text)
        if not text.isascii() or "\\ud" in text or "\\uD" in text:
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair is no text
    except RecursionError:
        raise MisfitError("it nests too deep") from None
    except json.JSONDecodeError as error:
        reason = f"{error.msg}, line {error.lineno} column {error.colno}"
        raise MisfitError(f"it is no JSON document: {reason}") from None
    except ValueError as error:
        raise MisfitError(f"it is no JSON document: {type(error).__name__}") from None
    return value


def reader(kind: Any) -> Read:
    """Return the function that reads values of a type, made once for each type."""
    return _reader(kind, repr(kind))


@functools.cache
def _reader(kind: Any, _written: str) -> Read:
    """Return the function. Python calls `int | str` and `str | int` equal: the text shows which type is tried first."""
    while hasattr(kind, "__supertype__"):
        kind = kind.__supertype__
    if kind is Any or kind is object:
        return lambda value: value
    origin = typing.get_origin(kind)
    if origin is not None:
        return _generic(origin, typing.get_args(kind))
    if kind in _SCALARS:
        return _SCALARS[kind]
    if dataclasses.is_dataclass(kind):
        return _Fields(kind).read
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return functools.partial(_member, kind)
    raise TypeError(f"no reader for {kind}")


class _Fields:
    """The fields of a dataclass. Their readers are made with the first value: a class may contain itself."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @functools.cached_property
    def _readers(self) -> tuple[tuple[str, str, Read, frozenset[type], bool], ...]:
        """Name, name in the document, reader, types of values that stay as they are, and whether it is required."""
        hints = typing.get_type_hints(self._kind, include_extras=True)
        absent = dataclasses.MISSING
        return tuple(
            (one.name, _alias(hints[one.name]) or one.name, reader(hints[one.name]), _kept(hints[one.name]), required)
            for one in dataclasses.fields(self._kind)
            if one.init
            for required in [one.default is absent and one.default_factory is absent]
        )

    def read(self, value: Any) -> Any:
        if not isinstance(value, dict):
            if isinstance(value, self._kind):
                return value
            raise MisfitError("must be an object")
        found, key = {}, ""
        try:
            for name, key, read, kept, required in self._readers:
                if key in value:
                    one = value[key]
                    found[name] = one if type(one) in kept else read(one)
                elif required:
                    _lack_field()
        except MisfitError as error:
            raise MisfitError(error.message, (key, *error.path)) from None
        return self._kind(**found)


def _kept(kind: Any) -> frozenset[type]:
    """Return the types of values that the reader of `kind` returns unchanged: a fleet's documents are mostly these."""
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return frozenset(one for one in typing.get_args(kind) if one in _SCALARS)
    return frozenset({kind}) if kind in _SCALARS else frozenset()


def _lack_field() -> typing.NoReturn:
    raise MisfitError("this field is required")


def _alias(hint: Any) -> str:
    return next((one.alias for one in getattr(hint, "__metadata__", ()) if isinstance(one, Alias)), "")


def _member(kind: type[enum.Enum], value: Any) -> enum.Enum:
    try:
        return kind(value)
    except ValueError:
        raise MisfitError(f"must be one of {', '.join(str(one.value) for one in kind)}") from None


def _generic(origin: Any, arguments: tuple[Any, ...]) -> Read:
    if origin is Annotated:
        return _annotated(*arguments)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is typing.Literal:
        return functools.partial(_literal, arguments)
    if issubclass(origin, Mapping):
        return functools.partial(_mapping, reader(arguments[0]), reader(arguments[1]))
    if origin is tuple and arguments[1:] != (Ellipsis,):
        return functools.partial(_fixed, tuple(map(reader, arguments)))
    if issubclass(origin, tuple | frozenset):
        return functools.partial(_items, origin, reader(arguments[0]), _kept(arguments[0]))
    raise TypeError(f"no reader for {origin}")


def _annotated(kind: Any, *metadata: Any) -> Read:
    """Return the reader of the type and of its rules."""
    rules = [(_RULES[name], bound) for one in metadata if isinstance(one, Within) for name, bound in one.rules.items()]
    inner = reader(kind)

    def read(value: Any) -> Any:
        value = inner(value)
        for (fits, words), bound in rules:
            if not fits(value, bound):
                raise MisfitError(words.format(bound))
        return value

    return read


def _union(kinds: tuple[Any, ...]) -> Read:
    """Return the reader: the type that the value has already, else the first that takes it."""
    exact = {kind: reader(kind) for kind in kinds if isinstance(kind, type)}
    others = tuple(reader(kind) for kind in kinds if kind is not types.NoneType)

    def read(value: Any) -> Any:
        if type(value) in exact:
            return exact[type(value)](value)
        first: MisfitError | None = None
        for one in others:
            try:
                return one(value)
            except MisfitError as error:
                first = first or error
        raise first or MisfitError("fits no type")

    return read


def _literal(allowed: tuple[Any, ...], value: Any) -> Any:
    if not any(type(one) is type(value) and one == value for one in allowed):
        raise MisfitError(f"must be {' or '.join(map(repr, allowed))}")
    return value


def _mapping(read_key: Read, read: Read, value: Any) -> Any:
    if not isinstance(value, dict):
        raise MisfitError("must be an object")
    found, key = {}, ""
    try:
        for key, item in value.items():
            found[read_key(key)] = read(item)
    except MisfitError as error:
        raise MisfitError(error.message, (str(key), *error.path)) from None
    return found


def _items(kind: Any, read: Read, kept: frozenset[type], value: Any) -> Any:
    _expect_list(value)
    if kept.issuperset(map(type, value)):
        return kind(value)
    found = []
    try:
        for item in value:
            found.append(read(item))  # noqa: PERF401 — the length is the index of the wrong one
    except MisfitError as error:
        raise MisfitError(error.message, (len(found), *error.path)) from None
    return found if kind is list else kind(found)


def _fixed(readers: tuple[Read, ...], value: Any) -> tuple[Any, ...]:
    _expect_list(value)
    if len(value) != len(readers):
        raise MisfitError(f"must have {len(readers)} items")
    return tuple(read(item) for read, item in zip(readers, value, strict=True))


def _expect_list(value: Any) -> None:
    if not isinstance(value, list | tuple | frozenset):
        raise MisfitError("must be a list")


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise MisfitError("must be text")
    return value


def _nothing(value: Any) -> None:
    if value is not None:
        raise MisfitError("must be null")


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise MisfitError("must be true or false")
    return value


_WHOLE = re.compile(r"\s*[+-]?\d{1,4000}(?:\.0+)?\s*", re.ASCII)


def _whole(value: Any) -> int:
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        return int(value.strip().partition(".")[0])
    raise MisfitError("must be a whole number")


def _number(value: Any) -> float:
    if isinstance(value, int | float | str):
        try:
            return float(value)
        except (OverflowError, ValueError):
            pass
    raise MisfitError("must be a number")


_SCALARS: Mapping[Any, Read] = {str: _text, int: _whole, float: _number, bool: _flag, types.NoneType: _nothing}


def _long(value: Collection[Any], bound: int) -> bool:
    return len(value) >= bound


_RULES: Mapping[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (lambda value, bound: value >= bound, "must be {} or more"),
    "gt": (lambda value, bound: value > bound, "must be more than {}"),
    "le": (lambda value, bound: value <= bound, "must be {} or less"),
    "min_length": (_long, "must not be empty"),
    "max_length": (lambda value, bound: len(value) <= bound, "must have at most {} items"),
    "pattern": (lambda value, bound: re.search(bound, value) is not None, "must match {}"),
    "allow_inf_nan": (lambda value, _: math.isfinite(value), "must be a finite number"),
}
"""Whether a value keeps the rule, and the words for one that does not."""
