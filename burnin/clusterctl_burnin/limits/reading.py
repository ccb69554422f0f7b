"""The reader of limits files, and the limits files that come with this package.

One YAML file per hardware model; operators change figures there, never in code. A file that `extends` another one lists
only the differences. The reader is strict: a limit that is unknown, missing, in another unit or without a source is an
error that names file, line and field.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Digest
from clusterctl.formats.documents import Text
from clusterctl.formats.site.yaml_document import Document, parse_yaml, validate
from clusterctl_burnin.fleet_metrics import METRICS
from clusterctl_burnin.limits.firmware import NOTHING, FirmwareRequirements
from clusterctl_burnin.limits.limit import VERSION, Limit, Limits, OpenLimit, OpenVersion, Version
from clusterctl_burnin.limits.methods import Methods
from clusterctl_burnin.package_data import names_in, shipped, text_of
from clusterctl_burnin.registry import keys_of, limit_keys


def _known_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if unknown := [name for name in names if name not in METRICS]:
        raise ValueError(f"no metric is called {unknown[0]!r}; they are {', '.join(sorted(METRICS))}")
    if len(set(names)) < len(names):
        raise ValueError("each metric once")
    return names


class _File(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    version: Literal[1]
    name: Text
    hardware: Text
    extends: Text | None = None
    patience: Annotated[float, pydantic.Field(ge=1, le=100)] = 1.0
    limits: dict[str, OpenLimit]
    versions: dict[str, OpenVersion]
    firmware: FirmwareRequirements = NOTHING
    methods: Methods
    compared: Annotated[tuple[str, ...], pydantic.AfterValidator(_known_once)] = tuple(METRICS)


EXPLAINED = "docs/how-to/set-limits.md"


@dataclass(frozen=True, slots=True)
class LimitsText:
    """A limits file as it was written; `where` names it in errors."""

    text: str
    where: str


NO_OTHERS: Mapping[str, LimitsText] = MappingProxyType({})


def shipped_limits(name: str) -> Limits:
    """Return the limits file of that name that comes with this package."""
    text = shipped("limits", name, otherwise="no limits are called", where="limits")
    return parse_limits(text, where=f"limits/{name}.yml")


def hardware_of_shipped() -> Mapping[str, str]:
    """Return the hardware, as text, that each shipped limits file is for."""
    found = {}
    for name in names_in("limits", suffix=".yml"):
        data = parse_yaml(text_of(f"limits/{name}.yml"), f"limits/{name}.yml").data
        found[name] = str(data["hardware"])
    return found


def parse_limits(text: str, *, where: str, others: Mapping[str, LimitsText] = NO_OTHERS) -> Limits:
    """Read a limits file; `where` names it in errors.

    `others` are the site's other limits by name: `extends` means them before it means shipped ones.
    """
    _, file = _read(LimitsText(text, where), others)
    file = file.model_copy(update={"limits": {**_defaults(), **file.limits}})
    left_out = {"extends", "patience"} if file.firmware else {"extends", "patience", "firmware"}
    content = json.dumps(file.model_dump(mode="json", exclude=left_out), sort_keys=True, ensure_ascii=False)
    versions = tuple(file.versions.items())
    digest = Digest(hashlib.sha256(content.encode()).hexdigest())
    return Limits(
        name=file.name,
        digest=digest,
        methods=file.methods,
        limits={name: _limit(name, entry) for name, entry in file.limits.items()},
        versions={name: Version(value=entry.value or ANY_VERSION, source=entry.source) for name, entry in versions},
        patience=file.patience,
        compared=frozenset(file.compared),
        firmware=file.firmware,
        open=frozenset(
            [name for name, limit in file.limits.items() if limit.value is None]
            + [name for name, version in versions if version.value is None]
        ),
    )


ANY_VERSION = "0.0"
"""Every version is at least this."""


def _limit(name: str, entry: OpenLimit) -> Limit:
    """Return the entry as a limit; an open one as a figure that every measurement meets."""
    value = entry.value if entry.value is not None else (sys.float_info.max if name.endswith(UPPER) else 0.0)
    return Limit(value=value, unit=entry.unit, source=entry.source)


def _read(given: LimitsText, others: Mapping[str, LimitsText]) -> tuple[Document, _File]:
    """Return the whole document and its content, both valid."""

    def find(name: str, named_by: str) -> Document:
        found = others.get(name)
        if found is None:
            text = shipped("limits", name, otherwise="no limits are called", where=named_by)
            found = LimitsText(text, f"limits/{name}.yml")
        rest = {other: written for other, written in others.items() if other != name}  # no circle
        return _read(found, rest)[0]

    document = extended(parse_yaml(given.text, given.where), find)
    file = validate(document, _File, EXPLAINED)
    _check_limits(file, document)
    return document, file


def _check_limits(file: _File, document: Document) -> None:
    keys = limit_keys()
    _check_names(document, "limits", file.limits, {name for name, key in keys.items() if key.unit != VERSION})
    _check_names(document, "versions", file.versions, {name for name, key in keys.items() if key.unit == VERSION})
    for name, limit in file.limits.items():
        if limit.value is None and not name.endswith((UPPER, LOWER)):
            place = document.where("limits", name, "value")
            raise UsageError("this limit cannot be left open", where=place, remedy="write the number of parts")
        if limit.unit != keys[name].unit:
            place = document.where("limits", name, "unit")
            raise UsageError(
                f"{limit.unit!r} is not its unit", where=place, remedy=f"write the figure in {keys[name].unit}"
            )


def _check_names(document: Document, section: str, found: Collection[str], known: Collection[str]) -> None:
    """Refuse an unknown name, and the lack of one that has no default."""
    kind, keys = section.removesuffix("s"), limit_keys()
    for name in sorted(known):
        if name not in found and keys[name].default is None:
            remedy = f"add it in {keys[name].unit}" if section == "limits" else f"add {name} with value and source"
            raise UsageError(f"the {kind} {name} is missing", where=document.where(section), remedy=remedy)
    for name in found:
        if name not in known:
            remedy = f"the {section} are {', '.join(sorted(known))}"
            raise UsageError(f"no such {kind}", where=document.where(section, name), remedy=remedy)


def _defaults() -> Mapping[str, OpenLimit]:
    return {
        name: OpenLimit(value=key.default, unit=key.unit, source=key.source)
        for name, key in limit_keys().items()
        if key.default is not None
    }


UPPER, LOWER = "_max", "_min"
"""How the names of limits end that nothing may exceed, and that everything must reach."""

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


@dataclass(frozen=True, slots=True)
class Behind:
    """A figure of a limits file as its operators read it; `unit` is empty for a version."""

    name: str
    value: str
    unit: str
    source: str


OPEN = "open"
"""What stands for the figure of a limit that has none."""


def limits_behind(check: str, limits: Limits) -> tuple[Behind, ...]:
    """Return the figures that a check or load judges by; none for one that is unknown or judges by no figure."""
    return tuple(_behind(key.name, limits) for key in keys_of(check))


def _behind(name: str, limits: Limits) -> Behind:
    if name in limits.open:
        entry = limits.versions[name] if name in limits.versions else limits[name]
        return Behind(name, OPEN, entry.unit if isinstance(entry, Limit) else "", entry.source)
    if name in limits.versions:
        version = limits.versions[name]
        return Behind(name, version.value, "", version.source)
    limit = limits[name]
    return Behind(name, str(limit), limit.unit, limit.source)
