"""Baselines: what a SKU's BIOS must be set to and what firmware it must run; the site's `baselines/NAME.yml`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from clusterctl.edges.site.textfile import read_yaml
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.settings.baseline import Baseline, BiosWish, FirmwareWish, Image, Restarts, Value, comparable
from clusterctl.formats.site.yaml_document import Document, validate
from clusterctl.site.fields import FileName, Flag, Words, section
from clusterctl.site.urls import web_url

EXPLAINED = "docs/how-to/settings.md"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PATH = re.compile(r"/redfish/v1/[^\s#?\\]+")
_SECRET = re.compile(r"passw|pwd|secret|passphrase", re.IGNORECASE)


def _digest(value: str) -> str:
    if not _SHA256.fullmatch(value.strip().lower()):
        raise ValueError("must be a SHA-256: 64 hexadecimal digits, as sha256sum prints it")
    return value.strip().lower()


def _version(value: Any) -> Any:
    """Require text: YAML reads `2.10` as the number 2.1."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError("must be in quotes: YAML reads a version without them as a number")  # noqa: TRY004 — Pydantic's
    return value


def _resource(value: str) -> str:
    if not _PATH.fullmatch(value) or ".." in value:
        raise ValueError("must be a path of the BMC, such as /redfish/v1/UpdateService/FirmwareInventory/BIOS")
    return value


def _minimum(value: str) -> str:
    if not comparable(value):
        raise ValueError("must be numbers with dots, such as 2.10.1: of others none is later; give version instead")
    return value


def _setting(value: Any) -> Value:
    if not isinstance(value, str | int | bool):
        raise ValueError("must be text, a whole number, true or false")  # noqa: TRY004 — Pydantic's
    return value


Setting = Annotated[Value, PlainValidator(_setting)]
Version = Annotated[Words, BeforeValidator(_version)]


@section
class BiosGroup:
    """Attributes of the machines with this attribute registry."""

    registry: Words = "*"
    attributes: Annotated[dict[Words, Setting], Field(min_length=1)]
    source: Words

    def __post_init__(self) -> None:
        for name in self.attributes:
            if _SECRET.search(name):
                raise ValueError(f"a plain file is no place for {name}: set it by hand")


@section
class FirmwareRule:
    """One kind of component."""

    component: Words
    version: Version | None = None
    min: Annotated[Version, AfterValidator(_minimum)] | None = None
    image: Words | None = None
    sha256: Annotated[str, AfterValidator(_digest)] | None = None
    url: Annotated[str, AfterValidator(web_url)] | None = None
    restarts: Literal["bmc", "host"] = "host"
    targets: tuple[Annotated[str, AfterValidator(_resource)], ...] = ()
    downgrade: Flag = False
    source: Words

    def __post_init__(self) -> None:
        if (self.version is None) == (self.min is None):
            raise ValueError("give the version that it must run: version, or min, and not both")
        if (self.image is None) != (self.sha256 is None):
            raise ValueError("image and sha256 go together: nothing is flashed that was not compared")
        if self.url is not None and self.image is None:
            raise ValueError("url names where BMCs fetch the image: give image and sha256 too")


@section
class BaselineFile:
    """`baselines/NAME.yml`."""

    name: FileName
    bios: tuple[BiosGroup, ...] = ()
    firmware: tuple[FirmwareRule, ...] = ()

    def __post_init__(self) -> None:
        if not (self.bios or self.firmware):
            raise ValueError("it asks for nothing: write bios or firmware")


def read_baseline(folder: Path, name: str, named_by: str) -> Baseline:
    """Return the site's baseline of that name. Raises `UsageError`."""
    file = folder / "baselines" / f"{name}.yml"
    if not file.is_symlink() and not file.exists():
        raise UsageError(f"there is no baseline {name!r}", where=named_by, remedy=f"write baselines/{name}.yml")
    document = read_yaml(file, named_by)
    found = validate(document, BaselineFile, EXPLAINED)
    for field, message, remedy in _contradictions(found, name):
        raise UsageError(message, where=document.where(*field), remedy=remedy)
    bios = tuple(BiosWish(group.attributes, group.registry, group.source) for group in found.bios)
    firmware = tuple(_wish(folder, rule, document, at) for at, rule in enumerate(found.firmware))
    return Baseline(found.name, bios, firmware)


def _wish(folder: Path, rule: FirmwareRule, document: Document, at: int) -> FirmwareWish:
    image = None
    if rule.image is not None and rule.sha256 is not None:
        where = document.where("firmware", at, "image")
        image = Image(str((folder / rule.image).resolve()), rule.sha256, rule.url or "", where)
    return FirmwareWish(
        rule.component,
        rule.version or "",
        rule.min or "",
        image,
        Restarts(rule.restarts),
        rule.targets,
        rule.downgrade,
        rule.source,
    )


def _contradictions(found: BaselineFile, name: str) -> Iterator[tuple[tuple[str | int, ...], str, str]]:
    """Yield (field, what contradicts what, remedy)."""
    if found.name != name:
        yield ("name",), f"the file is {name}.yml, but the name in it is {found.name!r}", "make them the same"
    seen: set[str] = set()
    for at, rule in enumerate(found.firmware):
        if rule.component.casefold() in seen:
            yield ("firmware", at, "component"), f"{rule.component!r} stands twice", "keep one of them"
        seen.add(rule.component.casefold())
    known: set[tuple[str, str]] = set()
    for at, group in enumerate(found.bios):
        for attribute in group.attributes:
            if (group.registry.casefold(), attribute) in known:
                where = ("bios", at, "attributes", attribute)
                yield where, f"{attribute} stands in two groups for the same registry", "keep one of them"
            known.add((group.registry.casefold(), attribute))
