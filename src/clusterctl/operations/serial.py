"""Requests, previews, events and results as JSON values, and back.

A mapping without text keys, such as one by port, is written as a list of pairs: JSON has only text as keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaSerializer, SchemaValidator, core_schema

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_problems import first_in_words

T = TypeVar("T")

_STRUCTURED = frozenset({"dataclass", "definition-ref", "frozenset", "tuple"})
"""Types of keys, by pydantic-core, that JSON objects do not have."""


class _Adapter(Generic[T]):
    """Converts values of one type. To build one takes up to tens of milliseconds."""

    def __init__(self, kind: type[T]) -> None:
        schema = _with_pairs(TypeAdapter(kind).core_schema)
        self.validate = SchemaValidator(schema).validate_python
        self._serializer = SchemaSerializer(schema)

    def dump(self, value: T) -> Any:
        """Return a value as JSON values."""
        return self._serializer.to_python(value, mode="json")


def _with_pairs(schema: Any) -> Any:
    """Return a core schema in which each mapping with structured keys is a list of pairs."""
    if isinstance(schema, (list, tuple)):
        return type(schema)(map(_with_pairs, schema))
    if not isinstance(schema, dict):
        return schema
    changed = {name: value if name == "metadata" else _with_pairs(value) for name, value in schema.items()}
    keys = changed.get("keys_schema")
    if changed.get("type") != "dict" or not isinstance(keys, dict) or keys["type"] not in _STRUCTURED:
        return changed
    pairs = core_schema.list_schema(core_schema.tuple_schema([keys, changed["values_schema"]]))
    writing = core_schema.plain_serializer_function_ser_schema(_pairs, return_schema=pairs)
    return core_schema.no_info_after_validator_function(dict, pairs, serialization=writing)


def _pairs(mapping: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
    return list(mapping.items())


_ADAPTERS: dict[type, _Adapter[Any]] = {}


def _adapter(kind: type) -> _Adapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = _Adapter(kind)
    return _ADAPTERS[kind]


def to_data(value: object) -> Any:
    """Return a dataclass of `operations` or `fleet` as JSON values: enums by value, times in ISO 8601."""
    return _adapter(type(value)).dump(value)


def from_data(kind: type[T], data: object) -> T:
    """Return the `kind` that `to_data` wrote. Raises `UsageError` naming the field that is wrong."""
    try:
        found: T = _adapter(kind).validate(data)
    except ValidationError as error:
        field, message = first_in_words(error)
        where = f"{kind.__name__}.{field}" if field else kind.__name__
        raise UsageError(message, where=where, remedy="correct this field") from error
    return found
