"""Pydantic's errors as messages for the file's author: what is expected, what was found, what to do."""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Union

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

UNSHOWN = "unshown"
"""Type of a `PydanticCustomError` with an input that may be a secret: it is never repeated in the message."""

_FIELDS = "must hold fields, one `name: value` a line"
_WORDS: Mapping[str, str] = {
    "bool_parsing": "must be true or false",
    "bool_type": "must be true or false",
    "dataclass_type": _FIELDS,
    "dict_type": _FIELDS,
    "finite_number": "must be a finite number",
    "float_parsing": "must be a number",
    "float_type": "must be a number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "int_from_float": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_type": "must be a whole number",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "list_type": "must be a list",
    "literal_error": "must be {expected}",
    "missing": "this field is required",
    "model_attributes_type": _FIELDS,
    "model_type": _FIELDS,
    "string_too_short": "must not be empty",
    "string_type": "must be text",
    "too_short": "must name at least {min_length}",
    "tuple_type": "must be a list",
}
"""Pydantic's type of an error → our words; braces are filled from its context."""

_UNKNOWN = frozenset({"extra_forbidden", "invalid_key", "unexpected_keyword_argument"})
"""Errors for a field that the model does not have."""

_SHAPES = frozenset({"dataclass_type", "dict_type", "model_attributes_type", "model_type", "missing", UNSHOWN})
"""Errors without a repeated input: it is no single value, or may be a secret in the wrong place."""


class FieldError(ValueError):
    """A check across fields that finds one of them wrong: the error is reported at that field."""

    def __init__(self, field: str, value: object, message: str) -> None:
        super().__init__(message)
        self.field, self.value = field, value


@dataclass(frozen=True, slots=True)
class FieldProblem:
    """One wrong field. `remedy` is empty where only the page that explains the fields can help."""

    path: tuple[str | int, ...]
    text: str
    remedy: str = ""


def problems(error: ValidationError, model: type[Any], data: Any) -> tuple[FieldProblem, ...]:
    """Return at least one; `data` is what was validated.

    A required field that is misspelt is one problem, not two; so is a list whose items are wrong.
    """
    details = error.errors(include_url=False)
    found = [(item["type"], _problem(item, model, data)) for item in details]
    meant = {(*p.path[:-1], _nearest(p, model, data)) for kind, p in found if kind in _UNKNOWN}
    spoilt = {problem.path[:-1] for _, problem in found}
    return tuple(
        problem
        for kind, problem in found
        if not (kind == "missing" and problem.path in meant) and not (kind == "too_short" and problem.path in spoilt)
    )


def _problem(item: ErrorDetails, model: type[Any], data: Any) -> FieldProblem:
    path = _path(item, data)
    kind, value = item["type"], item["input"]
    if kind in _UNKNOWN:
        return _unknown(path, model, data)
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        return _no_kind(path, item)
    error = item.get("ctx", {}).get("error")
    if isinstance(error, FieldError):
        path, value = (*path, error.field), error.value
    words = in_words(item)
    shown = f", found {_shown(value)}" if kind not in _SHAPES else ""
    quoted = kind == "string_type" and isinstance(value, (bool, int, float))
    remedy = "put it in quotes: without, YAML reads a number or a yes/no" if quoted else ""
    return FieldProblem(path, words + (shown if isinstance(value, (str, int, float)) else ""), remedy)


def in_words(item: ErrorDetails) -> str:
    """Return what is wrong with a field, in our words and without the field's value."""
    words = _WORDS.get(item["type"])
    if words is None:
        message = item["msg"].removeprefix("Value error, ").replace("Invalid JSON:", "is no valid JSON:")
        return f"{message[:1].lower()}{message[1:]}"
    return words.format_map({name: _figure(value) for name, value in item.get("ctx", {}).items()})


def first_in_words(error: ValidationError) -> tuple[str, str]:
    """Return the first wrong field (`inventory.gpus.0`; empty for the document) and what is wrong with it."""
    first = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    if first["type"] in _UNKNOWN:
        return field, "there is no such field"
    return field, in_words(first)


def _no_kind(path: tuple[str | int, ...], item: ErrorDetails) -> FieldProblem:
    """Return the problem of a section without its kind, or with an unknown one."""
    context = item.get("ctx", {})
    field = (*path, str(context["discriminator"]).strip("'"))
    if item["type"] == "union_tag_not_found":
        return FieldProblem(field, _WORDS["missing"])
    kinds = " or ".join(str(context["expected_tags"]).split(", "))
    return FieldProblem(field, f"must be {kinds}, found {_shown(context['tag'])}")


def _unknown(path: tuple[str | int, ...], model: type[Any], data: Any) -> FieldProblem:
    problem = FieldProblem(path, "there is no such field")
    nearest = _nearest(problem, model, data)
    if nearest:
        return FieldProblem(path, "there is no such field", f"did you mean {nearest}?")
    known = ", ".join(sorted(_fields(model, path[:-1], data)))
    return FieldProblem(path, "there is no such field", f"the fields here are {known}" if known else "")


def _nearest(problem: FieldProblem, model: type[Any], data: Any) -> str:
    names = sorted(_fields(model, problem.path[:-1], data))
    name = str(problem.path[-1]) if problem.path else ""  # a null key has no path
    return next(iter(difflib.get_close_matches(name, names, n=1, cutoff=0.7)), "")


def _fields(model: type[Any], path: Iterable[str | int], data: Any) -> Mapping[str, Any]:
    """Return the permitted fields at a path: name as written in the file → type; empty where none are fixed."""
    here: Mapping[str, Any] = _fields_of(model)
    kinds: list[type[Any]] = []
    for part in path:
        data = data[part] if _is_in(data, part) else None
        if isinstance(part, str):
            kinds = list(_models(here.get(part)))
        here = next((_fields_of(kind) for kind in kinds if _may_be(kind, data)), {})
    return here


def _may_be(model: type[Any], data: Any) -> bool:
    """Return whether the required fields with a fixed value (`backend: maas`) allow it; no mapping: always."""
    if not isinstance(data, Mapping):
        return True
    kinds = {name: kind for name, kind in _fields_of(model).items() if typing.get_origin(kind) is typing.Literal}
    fixed = kinds.keys() & _required(model) & data.keys()
    return all(data[name] in typing.get_args(kinds[name]) for name in fixed)


def _required(model: type[Any]) -> set[str]:
    if issubclass(model, BaseModel):
        return {name for name, field in model.model_fields.items() if field.is_required()}
    missing = dataclasses.MISSING
    return {field.name for field in dataclasses.fields(model) if field.default is missing is field.default_factory}


def _fields_of(model: type[Any]) -> Mapping[str, Any]:
    """Return the type of each field by its name in the file, of a Pydantic model or a dataclass."""
    if issubclass(model, BaseModel):
        return {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    hints = typing.get_type_hints(model, include_extras=True)
    return {_alias(hints[field.name]) or field.name: hints[field.name] for field in dataclasses.fields(model)}


def _alias(annotation: Any) -> str:
    return next((part.alias for part in getattr(annotation, "__metadata__", ()) if getattr(part, "alias", "")), "")


def _models(annotation: Any) -> Iterable[type[Any]]:
    """Yield the models within a type: `tuple[ListedNode, ...]`, `SecretRef | None`."""
    if isinstance(annotation, type) and (issubclass(annotation, BaseModel) or dataclasses.is_dataclass(annotation)):
        yield annotation
    elif typing.get_origin(annotation) in (Union, UnionType, tuple, dict, typing.Annotated):
        for inner in typing.get_args(annotation):
            yield from _models(inner)


def _figure(value: object) -> object:
    return f"{value:g}" if isinstance(value, float) else value


def _shown(value: object) -> str:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _path(item: ErrorDetails, data: Any) -> tuple[str | int, ...]:
    """Return the place in the file, without Pydantic's level for the kind of a union, which no file has."""
    path: list[str | int] = []
    for part in item["loc"]:
        if _is_in(data, part):
            data = data[part]
        elif item["type"] != "missing" or part != item["loc"][-1]:
            continue
        path.append(part)
    return tuple(path)


def _is_in(data: Any, part: str | int) -> bool:
    if isinstance(data, Mapping):
        return part in data
    return isinstance(data, (list, tuple)) and isinstance(part, int) and part < len(data)
