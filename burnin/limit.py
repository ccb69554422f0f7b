"""Limits: what a node of a kind must reach, each with its unit and its source, and the method they hold for.

One YAML file per hardware model; operators change figures there, never in code. The reader is strict: a limit that is
unknown, missing, in another unit or without a source is an error that names file, line and field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from clusterctl.burnin.package_data import names_in, text_of
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Digest
from clusterctl.formats.yaml_document import parse_yaml, validate

UNITS: Mapping[str, str] = {
    "all_reduce_busbw_min": "GB/s",
    "clock_offset_max": "s",
    "disk_free_min": "GiB",
    "gpu_idle_memory_max": "MiB",
    "gpu_memory_temperature_max": "°C",
    "gpu_remapped_rows_max": "rows",
    "gpu_temperature_max": "°C",
    "gpu_uncorrectable_ecc_max": "errors",
    "ib_write_bw_min": "Gb/s",
    "memory_usable_min": "%",
    "nvlink_count": "links",
    "nvlink_rate_min": "GB/s",
    "pcie_speed_min": "GT/s",
    "pcie_width_min": "lanes",
}
"""All limits that there are, and the unit that each is in. A limits file has every one of them."""

Positive = Annotated[int, pydantic.Field(gt=0)]
Text = Annotated[str, pydantic.Field(min_length=1)]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Limit(_Strict):
    """A figure, its unit, and where it comes from."""

    value: float
    unit: Text
    source: Text

    def __str__(self) -> str:
        return f"{self.value:g}"


class PairMethod(_Strict):
    """How ib_write_bw is run for `ib_write_bw_min` to apply; time-out for one rail of one pair, in seconds."""

    message_bytes: Positive
    iterations: Positive
    timeout_seconds: Positive


class AllReduceMethod(_Strict):
    """How all_reduce_perf is run for `all_reduce_busbw_min` to apply.

    Groups have `group_nodes` nodes where there are as many, and never fewer than `min_nodes`. `mpi_interface` is the
    network interface for MPI's own messages; empty leaves the choice to MPI.
    """

    message_bytes: Positive
    iterations: Positive
    ranks_per_node: Positive
    group_nodes: Positive
    min_nodes: Positive
    timeout_seconds: Positive
    mpi_interface: str = ""


class _Methods(_Strict):
    ib_write_bw: PairMethod
    all_reduce: AllReduceMethod


class _File(_Strict):
    version: Literal[1]
    name: Text
    hardware: Text
    limits: dict[str, Limit]
    methods: _Methods


@dataclass(frozen=True, slots=True)
class Limits:
    """One limits file. `digest` covers every figure, so that a verdict tells by which limits it was reached."""

    name: str
    digest: Digest
    pair: PairMethod
    all_reduce: AllReduceMethod
    limits: Mapping[str, Limit]

    def __getitem__(self, name: str) -> Limit:
        return self.limits[name]


EXPLAINED = "docs/how-to-add-a-check.md"


def shipped_limits(name: str) -> Limits:
    """The limits file of that name that comes with this package."""
    known = list(names_in("limits", suffix=".yml"))
    if name not in known:
        raise UsageError(
            f"no limits are called {name!r}",
            where="limits",
            remedy=f"take one of {', '.join(known)}, or write limits/{name}.yml in the site directory",
        )
    return parse_limits(text_of(f"limits/{name}.yml"), where=f"limits/{name}.yml")


def parse_limits(text: str, *, where: str) -> Limits:
    """Read a limits file; `where` names it in errors."""
    document = parse_yaml(text, where)
    file = validate(document, _File, EXPLAINED)
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
    content = json.dumps(file.model_dump(mode="json"), sort_keys=True, ensure_ascii=False)
    digest = Digest(hashlib.sha256(content.encode()).hexdigest())
    return Limits(file.name, digest, file.methods.ib_write_bw, file.methods.all_reduce, file.limits)
