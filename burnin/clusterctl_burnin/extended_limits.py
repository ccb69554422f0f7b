"""Limits files that say only how they differ from another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from clusterctl.formats.yaml_document import Document

WHOLE = ("limits", "versions")
"""Each entry is taken over or replaced as a whole: a figure never keeps another one's source."""
METHODS = "methods"
Find = Callable[[str, str], Document]
"""Returns the whole, valid document of the limits with a name; the second argument is where that name was given."""


def extended(document: Document, find: Find) -> Document:
    """Return the document, completed from the limits that it `extends`; unchanged where it extends none.

    Mistakes in its own entries are kept, to be found later. Raises `UsageError` where there are no such limits.
    """
    own = document.data
    if not isinstance(own, dict) or not isinstance(own.get("extends"), str):
        return document
    base = find(own["extends"], document.where("extends")).data
    merged = {**base, **own}
    for key in WHOLE:
        merged[key] = _over(base[key], own.get(key, {}))
    merged[METHODS] = _over_each(base[METHODS], own.get(METHODS, {}))
    return replace(document, data=merged)


def _over(base: Mapping[str, Any], own: Any) -> Any:
    return {**base, **own} if isinstance(own, dict) else own


def _over_each(base: Mapping[str, Any], own: Any) -> Any:
    if not isinstance(own, dict):
        return own
    return {**base, **{name: _over(base.get(name, {}), fields) for name, fields in own.items()}}
