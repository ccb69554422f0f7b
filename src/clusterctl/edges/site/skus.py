"""SKU files: the site's own `skus/NAME.yml`, else a shipped one."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from clusterctl.edges.resources import resource
from clusterctl.edges.site.baselines import read_baseline
from clusterctl.edges.site.textfile import read_yaml, there
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.hardware.products import names_gpu
from clusterctl.fleet.hardware.sku import ANY_SIZE, BlueFieldMode, BlueFields, LinkLayer, RootDisk, Sku
from clusterctl.formats.site.yaml_document import Document, validate
from clusterctl.site.fields import Count, FileName, Positive, Words, section
from clusterctl_burnin.package_data import names_in

EXPLAINED = "docs/how-to/add-a-sku.md"
GIGABYTE = 1_000_000_000
MAX_GB = 100_000
"""Written where no largest size is asked for."""


@section
class RootDiskRule:
    """Which drive the OS goes on; what is left out is not asked for."""

    serial: str = ""
    wwn: str = ""
    model: str = ""
    min_gb: Count = 0
    max_gb: Count = MAX_GB
    bay: str = ""
    controller: str = ""
    protocol: str = ""
    one_of: Positive = 1
    chosen_by: Literal["bmc", "host", "installer"] = "bmc"

    def __post_init__(self) -> None:
        if self.min_gb > self.max_gb:
            raise ValueError("no drive can match: min_gb is above max_gb")
        drive = any((self.serial, self.wwn, self.model, self.min_gb, self.max_gb < MAX_GB))
        if self.chosen_by == "bmc" and not any((drive, self.bay, self.controller, self.protocol)):
            raise ValueError("name the drive: model, min_gb, max_gb, bay, controller, protocol, serial or wwn")
        if self.chosen_by == "installer" and (drive or self.one_of > 1):
            raise ValueError("with chosen_by: installer no rule applies; write chosen_by: host for a rule")
        if self.chosen_by != "bmc" and self.protocol:
            raise ValueError("the host does not report the protocol: leave it out, or write chosen_by: bmc")


@section
class BlueFieldRule:
    """The BlueField cards; what is left out is not judged, but for the PCIe link: that of the card by default."""

    count: Count
    mode: BlueFieldMode | None = None
    firmware: Annotated[str, Field(pattern=r"^(\d{1,9}(\.\d{1,9}){1,5})?$")] = ""
    link_gts: Annotated[float, Field(ge=0, le=256, allow_inf_nan=False)] = 0.0
    link_width: Annotated[int, Field(ge=0, le=32)] = 0


@section
class SkuFile:
    """`skus/NAME.yml`."""

    name: FileName
    manufacturer: Words
    model: Words
    gpu_count: Count
    gpu_model: str = ""
    hca_count: Count
    hca_model: str = ""
    hca_rate_gbps: Count = 0
    cpu_count: Positive
    memory_gib: Positive
    data_drive_count: Count
    root_disk: RootDiskRule
    limits: FileName
    baseline: FileName | None = None
    psus: Positive | Literal["none", "shelf"] | None = None
    unreported: tuple[Literal["health", "psus", "temperatures"], ...] = ()
    hca_link_layer: LinkLayer = "InfiniBand"
    bluefields: BlueFieldRule | None = None


def read_skus(folder: Path, names: tuple[str, ...], document: Document) -> tuple[Sku, ...]:
    """Return the SKUs that a site names, each valid in itself and distinguishable from the others."""
    skus = tuple(_read(folder, name, document.where("skus", at)) for at, name in enumerate(names))
    for at, sku in enumerate(skus):
        for other in skus[:at]:
            if sku.name == other.name:
                raise UsageError(f"{sku.name} stands twice", where=document.where("skus", at), remedy="take one out")
            if _alike(sku, other):
                raise UsageError(
                    f"{sku.name} cannot be distinguished from {other.name}: the same manufacturer, model and GPU model",
                    where=document.where("skus", at),
                    remedy="keep one of them, or add to both files what differs",
                )
    return skus


def _alike(sku: Sku, other: Sku) -> bool:
    """Compare as `matching.choose_sku` does: by make and GPU model; counts are not, parts may be missing."""
    gpus = sku.gpu_model == other.gpu_model or names_gpu(sku.gpu_model, other.gpu_model)
    return (
        sku.model.casefold() == other.model.casefold()
        and _overlap(sku.manufacturer, other.manufacturer)
        and (gpus or names_gpu(other.gpu_model, sku.gpu_model))
    )


def _overlap(one: str, other: str) -> bool:
    """Return True where both match the same text: a model matches as a substring."""
    one, other = one.casefold(), other.casefold()
    return one in other or other in one


def _read(folder: Path, name: str, named_by: str) -> Sku:
    own = folder / "skus" / f"{name}.yml"
    file = own if there(own) else resource("skus") / f"{name}.yml"
    if not file.is_symlink() and not file.exists():
        shipped = ", ".join(sorted(f.stem for f in resource("skus").glob("*.yml")))
        remedy = f"write skus/{name}.yml, or use a shipped one: {shipped}"
        raise UsageError(f"there is no SKU {name!r}", where=named_by, remedy=remedy)
    document = read_yaml(file, named_by)
    _require_decided(document)
    found = validate(document, SkuFile, EXPLAINED)
    for field, message, remedy in _contradictions(found, name):
        raise UsageError(message, where=document.where(field), remedy=remedy)
    _require_limits(folder, found.limits, document)
    baseline = read_baseline(folder, found.baseline, document.where("baseline")) if found.baseline else None
    plain = {field.name: getattr(found, field.name) for field in dataclasses.fields(found)}
    cards = BlueFields(**dataclasses.asdict(found.bluefields)) if found.bluefields else None
    rest = {
        "root_disk": _root_disk(found.root_disk),
        "baseline": baseline,
        "unreported": frozenset(found.unreported),
        "bluefields": cards,
    }
    return Sku(**(plain | rest))


OPTIONAL = ("baseline", "psus", "bluefields")
"""Fields that may be null."""


def _require_decided(document: Document) -> None:
    """Refuse a file with an open field: `UsageError` names all of them, at the line of the first."""
    data = document.data if isinstance(document.data, dict) else {}
    undecided = [name for name, value in data.items() if value is None and name not in OPTIONAL]
    if undecided:
        message = f"not decided yet: {', '.join(map(str, undecided))}"
        remedy = "copy the file into the site's skus/ if it is a shipped one, and write what you ordered"
        raise UsageError(message, where=document.where(undecided[0]), remedy=remedy)


def _require_limits(folder: Path, name: str, document: Document) -> None:
    own, shipped = folder / "limits" / f"{name}.yml", names_in("limits", suffix=".yml")
    if name not in shipped and not there(own):
        remedy = f"write limits/{name}.yml, or use shipped ones: {', '.join(shipped)}"
        raise UsageError(f"there are no limits {name!r}", where=document.where("limits"), remedy=remedy)


_TOGETHER = (
    ("gpu_count", "gpu_model", ""),
    ("hca_count", "hca_model", ""),
    ("hca_count", "hca_rate_gbps", ", such as 400"),
)
"""Fields that are given together: the number of parts, their description, and an example of it."""


def _contradictions(sku: SkuFile, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield each contradiction: the field, what is wrong with it, and the remedy."""
    if sku.name != name:
        yield "name", f"the file is {name}.yml, but the name in it is {sku.name!r}", "make them the same"
    for counted, described, example in _TOGETHER:
        count, description = getattr(sku, counted), getattr(sku, described)
        if count and not description:
            yield counted, f"is {count}, but {described} is not given", f"write {described}{example}"
        if description and not count:
            yield described, f"is {description!r}, but {counted} is 0", f"write {counted}, or take it out"


def _root_disk(disk: RootDiskRule) -> RootDisk:
    return RootDisk(
        disk.serial,
        disk.wwn,
        disk.model,
        disk.min_gb * GIGABYTE,
        disk.max_gb * GIGABYTE if disk.max_gb < MAX_GB else ANY_SIZE,
        bay=disk.bay,
        controller=disk.controller,
        protocol=disk.protocol,
        one_of=disk.one_of,
        chosen_by=disk.chosen_by,
    )
