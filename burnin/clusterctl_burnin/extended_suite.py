"""Suites that say only how they differ from another one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.formats.site.yaml_document import Document, validate
from clusterctl_burnin.limit import EXPLAINED

OWN = frozenset({"version", "name"})
"""What each file says for itself, whatever it extends."""
Find = Callable[[str], Document]
"""The suite of a name, whole. Raises `UsageError` where there is none."""


class _Differences(pydantic.BaseModel):
    """What a suite says about another one; its other fields stand in the place of that one's."""

    model_config = pydantic.ConfigDict(extra="ignore")

    extends: Annotated[str, pydantic.Field(min_length=1)]
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


def extended(document: Document, find: Find, known: Collection[str]) -> Document:
    """The document with everything that it leaves out as the suite has it that it `extends`; as it is where it extends
    none. `find`: whole documents that are known to be right; `known`: all checks. Raises `UsageError` for what is no
    difference.
    """
    own = document.data
    if not isinstance(own, dict):
        return document
    if "extends" not in own:
        _require_none(document)
        return document
    said = validate(document, _Differences, EXPLAINED)
    _require_one_way(document)
    base = _found(document, said.extends, find)
    checks = own["checks"] if "checks" in own else _differing(document, said, base.data["checks"], known)
    inherited = {key: value for key, value in base.data.items() if key not in OWN}
    rest = {key: value for key, value in own.items() if key not in _Differences.model_fields}
    return replace(document, data={**inherited, **_seconds(inherited, rest), **rest, "checks": checks})


def _seconds(inherited: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """How long loads last is taken over for those that are still there."""
    loads = own.get("loads", inherited.get("loads"))
    seconds = inherited.get("node_seconds", {})
    return {"node_seconds": {name: value for name, value in seconds.items() if name in (loads or ())}}


def _found(document: Document, name: str, find: Find) -> Document:
    try:
        return find(name)
    except UsageError as error:
        if error.where:
            raise
        raise UsageError(error.message, where=document.where("extends"), remedy=error.remedy) from None


def _require_none(document: Document) -> None:
    for key in ("add", "drop"):
        if key in document.data:
            remedy = "add extends: bootstrap, or list all its checks under checks"
            raise UsageError("this suite extends none that could differ", where=document.where(key), remedy=remedy)


def _require_one_way(document: Document) -> None:
    for key in ("add", "drop"):
        if key in document.data and "checks" in document.data:
            remedy = f"take out {key}, or checks"
            raise UsageError("checks says already which there are", where=document.where(key), remedy=remedy)


def _differing(document: Document, said: _Differences, base: Sequence[str], known: Collection[str]) -> list[Any]:
    """`base` without what is dropped, and after it what is added."""
    for index, name in enumerate(said.drop):
        if name not in base:
            remedy = f"{said.extends} has {', '.join(base)}"
            words = f"{said.extends} has no check {name!r} to drop"
            raise UsageError(words, where=document.where("drop", index), remedy=remedy)
    for index, name in enumerate(said.add):
        if name not in known:
            remedy = f"the checks are {', '.join(sorted(known))}"
            raise UsageError(f"no check is called {name!r}", where=document.where("add", index), remedy=remedy)
        if name in base or name in said.add[:index]:
            raise UsageError(f"{name!r} is there already", where=document.where("add", index), remedy="take one out")
    return [*(name for name in base if name not in said.drop), *said.add]
