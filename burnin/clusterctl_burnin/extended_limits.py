"""Limits files that say only how they differ from another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from clusterctl.formats.site.yaml_document import Document, parse_yaml
from clusterctl_burnin.package_data import shipped

WHOLE = ("limits", "versions")
"""Each entry is taken over or replaced as a whole: a figure never keeps another one's source."""
METHODS = "methods"


def extended(document: Document) -> Document:
    """The document, with what it leaves out as the shipped limits file has it that `extends` names; as it is where it
    names none. Raises `UsageError` where there is no such file. What is wrong about its own entries stays to be found.
    """
    own = document.data
    if not isinstance(own, dict) or not isinstance(own.get("extends"), str):
        return document
    text = shipped("limits", own["extends"], otherwise="no limits are called", where=document.where("extends"))
    base = parse_yaml(text, f"limits/{own['extends']}.yml").data
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
