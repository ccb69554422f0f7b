"""Requests, previews, events and results as JSON values, and back."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from clusterctl.fleet.errors import UsageError

T = TypeVar("T")


_ADAPTERS: dict[type, TypeAdapter[Any]] = {}


def _adapter(kind: type) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def to_data(value: object) -> Any:
    """Return a dataclass of `operations` or `fleet` as JSON values: enums by value, times in ISO 8601."""
    return _adapter(type(value)).dump_python(value, mode="json")


def from_data(kind: type[T], data: object) -> T:
    """Return the `kind` that `to_data` wrote. Raises `UsageError` naming the field that is wrong."""
    try:
        found: T = _adapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, (kind.__name__, *first["loc"])))
        raise UsageError(str(first["msg"]), where=where, remedy="correct this field") from error
    return found
