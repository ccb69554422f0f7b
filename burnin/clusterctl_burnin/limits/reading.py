"""The reader of limits files, and the limits files that come with this package.

One YAML file per hardware model; operators change figures there, never in code. A file that `extends` another one lists
only the differences. The reader is strict: a limit that is unknown, missing, in another unit or without a source is an
error that names file, line and field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Annotated, Any, Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.finding import Digest
from clusterctl.formats.site.fabric_limits import parse_fabric_limits
from clusterctl.formats.site.yaml_document import Document, parse_yaml, validate
from clusterctl_burnin.limits.firmware import NOTHING, FirmwareRequirements
from clusterctl_burnin.limits.limit import Limit, Limits, Version
from clusterctl_burnin.limits.methods import Methods, Strict, Text
from clusterctl_burnin.package_data import names_in, shipped, text_of

UNITS: Mapping[str, str] = {
    "all_reduce_busbw_min": "GB/s",
    "all_reduce_node_busbw_min": "GB/s",
    "all_reduce_rail_busbw_min": "GB/s",
    "clock_offset_max": "s",
    "cpu_busy_clock_min": "MHz",
    "cpu_share_min": "%",
    "disk_free_min": "GiB",
    "gpu_below_best_max": "%",
    "gpu_device_to_host_min": "GB/s",
    "gpu_gemm_bf16_min": "TFLOP/s",
    "gpu_gemm_fp8_min": "TFLOP/s",
    "gpu_host_to_device_min": "GB/s",
    "gpu_idle_memory_max": "MiB",
    "gpu_memory_rate_min": "GB/s",
    "gpu_memory_temperature_max": "°C",
    "gpu_peer_min": "GB/s",
    "gpu_remapped_rows_max": "rows",
    "gpu_temperature_above_others_max": "°C",
    "gpu_temperature_max": "°C",
    "gpu_uncorrectable_ecc_max": "errors",
    "hca_link_downs_max": "per 12 hours",
    "hca_link_recoveries_max": "per minute",
    "hca_receive_errors_max": "per second",
    "hca_symbol_errors_max": "per hour",
    "ib_write_bw_min": "Gb/s",
    "memory_corrected_max": "per 24 hours",
    "memory_usable_min": "%",
    "nvlink_count": "links",
    "nvlink_rate_min": "GB/s",
    "nvme_read_iops_min": "IOPS",
    "nvme_used_max": "%",
    "pcie_speed_min": "GT/s",
    "pcie_width_min": "lanes",
    "zpool_write_max": "s",
}
"""All limits that there are, and the unit that each is in. A limits file has every one of them."""

VERSIONS = frozenset({"hca_firmware_min"})
"""All versions that a limits file names, each of them."""

ComparedMetric = Literal[
    "cpu_busy_clock",
    "cpu_share",
    "gpu_gemm_bf16",
    "gpu_load_temperature",
    "gpu_memory_rate",
    "gpu_memory_temperature",
    "gpu_temperature",
    "nvme_read_iops",
    "stress_ng_cpu",
]
"""The metrics of `fleet_metrics` by their names, which a test holds equal."""


def _each_once(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("each metric once")
    return names


class _File(Strict):
    version: Literal[1]
    name: Text
    hardware: Text
    extends: Text | None = None
    patience: Annotated[float, pydantic.Field(ge=1, le=100)] = 1.0
    limits: dict[str, Limit]
    versions: dict[str, Version]
    firmware: FirmwareRequirements = NOTHING
    methods: Methods
    compared: Annotated[tuple[ComparedMetric, ...], pydantic.AfterValidator(_each_once)] = ()


EXPLAINED = "docs/how-to-add-a-check.md"


@dataclass(frozen=True, slots=True)
class LimitsText:
    """A limits file as it was written; `where` names it in errors."""

    text: str
    where: str


NO_OTHERS: Mapping[str, LimitsText] = MappingProxyType({})


def shipped_limits(name: str) -> Limits:
    """The limits file of that name that comes with this package."""
    text = shipped("limits", name, otherwise="no limits are called", where="limits")
    return parse_limits(text, where=f"limits/{name}.yml")


def parse_limits(text: str, *, where: str, others: Mapping[str, LimitsText] = NO_OTHERS) -> Limits:
    """Read a limits file; `where` names it in errors.

    `others` are the site's other limits by name: `extends` means them before it means shipped ones.
    """
    _, file = _read(LimitsText(text, where), others)
    left_out = {"extends", "patience"} if file.firmware else {"extends", "patience", "firmware"}
    content = json.dumps(file.model_dump(mode="json", exclude=left_out), sort_keys=True, ensure_ascii=False)
    digest = Digest(hashlib.sha256(content.encode()).hexdigest())
    return Limits(
        name=file.name,
        digest=digest,
        methods=file.methods,
        limits=file.limits,
        versions=file.versions,
        patience=file.patience,
        compared=frozenset(file.compared),
        firmware=file.firmware,
    )


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
    _check_versions(file, document)
    return document, file


def _check_limits(file: _File, document: Document) -> None:
    for name in sorted(UNITS.keys() - file.limits.keys()):
        raise UsageError(
            f"the limit {name} is missing", where=document.where("limits"), remedy=f"add it in {UNITS[name]}"
        )
    for name, limit in file.limits.items():
        if name not in UNITS:
            remedy = f"the limits are {', '.join(sorted(UNITS))}"
            raise UsageError("no such limit", where=document.where("limits", name), remedy=remedy)
        if limit.unit != UNITS[name]:
            remedy = f"write the figure in {UNITS[name]}"
            raise UsageError(
                f"{limit.unit!r} is not its unit", where=document.where("limits", name, "unit"), remedy=remedy
            )


def _check_versions(file: _File, document: Document) -> None:
    for name in sorted(VERSIONS ^ file.versions.keys()):
        missing = name in VERSIONS
        raise UsageError(
            f"the version {name} is missing" if missing else "no such version",
            where=document.where("versions") if missing else document.where("versions", name),
            remedy=f"the versions are {', '.join(sorted(VERSIONS))}",
        )


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


_FOLDER = "limits/fabric"


def shipped_fabric_limits(name: str) -> FabricLimits:
    """By the file's name, without suffix."""
    known = list(names_in(_FOLDER, suffix=".yml"))
    if name not in known:
        remedy = f"take one of {', '.join(known)}, or give the path of a file of your own"
        raise UsageError(f"no fabric limits are called {name!r}", where="--limits", remedy=remedy)
    return parse_fabric_limits(text_of(f"{_FOLDER}/{name}.yml"), where=f"{_FOLDER}/{name}.yml")


BY_CHECK: Mapping[str, tuple[str, ...]] = {
    "all_at_once": ("gpu_memory_temperature_max", "memory_corrected_max"),
    "all_reduce": ("all_reduce_busbw_min",),
    "all_reduce_node": ("all_reduce_node_busbw_min",),
    "all_reduce_rail": ("all_reduce_rail_busbw_min",),
    "clock_offset": ("clock_offset_max",),
    "cpu_frequency": ("cpu_busy_clock_min",),
    "cpu_share": ("cpu_share_min",),
    "disk_space": ("disk_free_min",),
    "fabric_manager": ("nvlink_count",),
    "gpu_ecc": ("gpu_uncorrectable_ecc_max",),
    "gpu_load": (
        "gpu_gemm_bf16_min",
        "gpu_gemm_fp8_min",
        "gpu_memory_rate_min",
        "gpu_host_to_device_min",
        "gpu_device_to_host_min",
        "gpu_peer_min",
        "gpu_below_best_max",
        "gpu_memory_temperature_max",
    ),
    "gpu_idle": ("gpu_idle_memory_max", "gpu_temperature_max", "gpu_memory_temperature_max"),
    "gpu_row_remap": ("gpu_remapped_rows_max",),
    "gpu_temperature": ("gpu_temperature_above_others_max",),
    "gpu_topology": ("nvlink_count",),
    "hca_errors": (
        "hca_link_downs_max",
        "hca_link_recoveries_max",
        "hca_receive_errors_max",
        "hca_symbol_errors_max",
    ),
    "hca_firmware": ("hca_firmware_min",),
    "ib_write_bw": ("ib_write_bw_min",),
    "memory_errors": ("memory_corrected_max",),
    "memory_size": ("memory_usable_min",),
    "nvlink": ("nvlink_count", "nvlink_rate_min"),
    "nvme_health": ("nvme_used_max",),
    "nvme_read": ("nvme_read_iops_min",),
    "pcie_chain": ("pcie_width_min", "pcie_speed_min"),
    "pcie_width": ("pcie_width_min", "pcie_speed_min"),
    "stress_ng": ("memory_corrected_max",),
    "zpool": ("zpool_write_max",),
}
"""Check or load → names in the limits file; who is not there judges by no figure of it."""


@dataclass(frozen=True, slots=True)
class Behind:
    """A figure of a limits file as its operators read it; `unit` is empty for a version."""

    name: str
    value: str
    unit: str
    source: str


def limits_behind(check: str, limits: Limits) -> tuple[Behind, ...]:
    return tuple(_behind(name, limits) for name in BY_CHECK.get(check, ()))


def _behind(name: str, limits: Limits) -> Behind:
    if name in limits.versions:
        version = limits.versions[name]
        return Behind(name, version.value, "", version.source)
    limit = limits[name]
    return Behind(name, str(limit), limit.unit, limit.source)
