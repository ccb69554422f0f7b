"""JSON documents read into a pydantic model, with one wording for what does not fit it."""

from __future__ import annotations

from typing import Any, TypeVar

import pydantic

from clusterctl.fleet.errors import ParseError

M = TypeVar("M", bound=pydantic.BaseModel)


def read_document(model: type[M], text: str, where: str) -> M:
    """Return the JSON text as `model`. Raises `ParseError` that names `where` and the first wrong field."""
    try:
        return model.model_validate_json(text)
    except pydantic.ValidationError as error:
        raise not_understood(error, where) from None


def read_value(model: type[M], value: Any, where: str) -> M:
    """Return a decoded JSON value as `model`. Raises `ParseError` like `read_document`."""
    try:
        return model.model_validate(value)
    except pydantic.ValidationError as error:
        raise not_understood(error, where) from None


def not_understood(error: pydantic.ValidationError, where: str) -> ParseError:
    """Return the error for the first wrong field. It repeats no input: that may hold a secret."""
    first = error.errors(include_input=False, include_url=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    return ParseError(f"not understood: {first['msg']}", where=f"{where} {field}".strip())
