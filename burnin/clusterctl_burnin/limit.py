"""Limits: what a node of a kind must reach, each with its unit and its source, and the method they hold for.

One YAML file per hardware model; operators change figures there, never in code. One that `extends` another says only
how it differs. The reader is strict: a limit that is unknown, missing, in another unit or without a source is an error
that names file, line and field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.quantity import Bound, Quantity, at_least, at_most, exactly
from clusterctl.formats.yaml_document import Document, parse_yaml, validate
from clusterctl_burnin.extended_limits import extended
from clusterctl_burnin.firmware_wishes import NOTHING, FirmwareWishes
from clusterctl_burnin.package_data import shipped

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

Positive = Annotated[int, pydantic.Field(gt=0)]
Text = Annotated[str, pydantic.Field(min_length=1)]


class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)


class Limit(_Strict):
    """A figure, its unit, and where it comes from."""

    value: Annotated[float, pydantic.Field(ge=0, allow_inf_nan=False)]
    unit: Text
    source: Text

    def __str__(self) -> str:
        return f"{self.value:g}"

    def quantity(self, value: float) -> Quantity:
        """Return a measured value in the limit's unit."""
        return Quantity(value, self.unit)

    @property
    def at_least(self) -> Bound:
        return at_least(self.value, self.unit)

    @property
    def at_most(self) -> Bound:
        return at_most(self.value, self.unit)

    @property
    def exactly(self) -> Bound:
        return exactly(self.value, self.unit)


class Version(_Strict):
    """A version, numbers between dots (`28.39.1002`), and where it comes from."""

    value: Annotated[str, pydantic.Field(pattern=r"^\d+(\.\d+)+$")]
    source: Text


class PairMethod(_Strict):
    """How ib_write_bw is run for `ib_write_bw_min` to apply; time-out for one rail of one pair, in seconds.

    `gpu_memory`: the adapters read and write the host's memory (`none`), or that of the GPU nearest to each, which the
    module nvidia-peermem (`peermem`) or the kernel's dma-buf (`dmabuf`) gives them. perftest must be built with CUDA.
    """

    message_bytes: Positive
    iterations: Positive
    timeout_seconds: Positive
    gpu_memory: Literal["none", "peermem", "dmabuf"] = "none"


class GroupMethod(_Strict):
    """How a group of nodes sums a buffer. It has `group_nodes` nodes where there are as many, never fewer than
    `min_nodes`.
    """

    message_bytes: Positive
    iterations: Positive
    group_nodes: Positive
    min_nodes: Positive
    timeout_seconds: Positive


class AllReduceMethod(GroupMethod):
    """How the sum is run for `all_reduce_busbw_min` to apply. `mpi_interface` is the network interface for MPI's own
    messages; empty leaves the choice to MPI.

    `engine`: nccl-tests started by mpirun, or PyTorch in the Python of `gpu_load`, over NCCL or (`backend`) gloo.
    """

    ranks_per_node: Positive
    mpi_interface: str = ""
    engine: Literal["nccl_tests", "torch"] = "nccl_tests"
    backend: Literal["gloo", "nccl"] = "nccl"


class RailMethod(GroupMethod):
    """How it is run on each rail for `all_reduce_rail_busbw_min` to apply: one rank a node."""


class HangMethod(_Strict):
    """How a group sums for hours until it hangs. `stall_seconds` without a step are a hang; `seconds` is for a suite
    that says nothing else. It runs by PyTorch in the Python of `gpu_load`.
    """

    message_bytes: Positive
    ranks_per_node: Positive
    group_nodes: Positive
    min_nodes: Positive
    seconds: Positive
    stall_seconds: Positive
    backend: Literal["gloo", "nccl"] = "nccl"


class NodeMethod(_Strict):
    """How the GPUs of one node sum a buffer for `all_reduce_node_busbw_min` to apply: `ranks`, one each."""

    message_bytes: Positive
    iterations: Positive
    ranks: Annotated[int, pydantic.Field(ge=2)]
    timeout_seconds: Positive


class GpuLoadMethod(_Strict):
    """How GPUs are loaded for the limits of `gpu_load` to apply: the side of the square matrices, the buffers copied.

    `seconds` is for a suite that says nothing else. `python` is a Python on the node that has PyTorch for CUDA.
    """

    python: Annotated[str, pydantic.Field(pattern=r"^/")]
    seconds: Positive
    matrix_size: Positive
    buffer_mib: Annotated[int, pydantic.Field(ge=4)]


class NvmeReadMethod(_Strict):
    """How fio reads for `nvme_read_iops_min` to apply: `jobs` processes a drive, each with `depth` reads waiting."""

    seconds: Positive
    ramp_seconds: Annotated[int, pydantic.Field(ge=0)]
    jobs: Positive
    depth: Positive


class StressNgMethod(_Strict):
    """How long stress-ng works, and on how much of the memory that is available."""

    seconds: Positive
    memory_percent: Annotated[int, pydantic.Field(ge=1, le=90)]


class Methods(_Strict):
    """How each load is run."""

    ib_write_bw: PairMethod
    all_reduce: AllReduceMethod
    all_reduce_rail: RailMethod
    all_reduce_node: NodeMethod
    gpu_load: GpuLoadMethod
    nvme_read: NvmeReadMethod
    stress_ng: StressNgMethod
    hang_hunt: HangMethod


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


class _File(_Strict):
    version: Literal[1]
    name: Text
    hardware: Text
    extends: Text | None = None
    patience: Annotated[float, pydantic.Field(ge=1, le=100)] = 1.0
    limits: dict[str, Limit]
    versions: dict[str, Version]
    firmware: FirmwareWishes = NOTHING
    methods: Methods
    compared: Annotated[tuple[ComparedMetric, ...], pydantic.AfterValidator(_each_once)] = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """One limits file. `digest` covers every figure, so that a verdict tells by which limits it was reached.

    `patience`: the checks' probes get so many times their time-outs, for hosts that are slow by nature. It is no part
    of the digest: no verdict rests on it.
    `compared`: the metrics by which a node is held against its own fleet, beside the limits.
    `firmware`: the versions that are right, where the file names any.
    """

    name: str
    digest: Digest
    methods: Methods
    limits: Mapping[str, Limit]
    versions: Mapping[str, Version]
    patience: float = 1.0
    compared: frozenset[str] = frozenset()
    firmware: FirmwareWishes = NOTHING

    def __getitem__(self, name: str) -> Limit:
        return self.limits[name]

    @property
    def pair(self) -> PairMethod:
        return self.methods.ib_write_bw

    @property
    def all_reduce(self) -> AllReduceMethod:
        return self.methods.all_reduce


EXPLAINED = "docs/how-to-add-a-check.md"


def shipped_limits(name: str) -> Limits:
    """The limits file of that name that comes with this package."""
    text = shipped("limits", name, otherwise="no limits are called", where="limits")
    return parse_limits(text, where=f"limits/{name}.yml")


def parse_limits(text: str, *, where: str) -> Limits:
    """Read a limits file; `where` names it in errors."""
    document = extended(parse_yaml(text, where))
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
    _check_versions(file, document)
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


def _check_versions(file: _File, document: Document) -> None:
    for name in sorted(VERSIONS ^ file.versions.keys()):
        missing = name in VERSIONS
        raise UsageError(
            f"the version {name} is missing" if missing else "no such version",
            where=document.where("versions") if missing else document.where("versions", name),
            remedy=f"the versions are {', '.join(sorted(VERSIONS))}",
        )
