"""The JSON document of the node's built-in `gpu-load`: results of each GPU under load."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from clusterctl.fleet.errors import ParseError
from clusterctl.formats.documents import Count, Figure, read_document
from clusterctl.formats.host.pci import normal_address

_WHERE = "gpu-load"


class GpuLoadEnd(enum.Enum):
    """Outcome of a GPU's process. HUNG: it did not end in time and was killed."""

    OK = "ok"
    FAILED = "failed"
    HUNG = "hung"


@dataclass(frozen=True, slots=True)
class LoadedGpu:
    """One GPU. `pci` as `0000:1b:00.0`; strings are empty where the driver does not report them.

    began, phase    whether its process was ready for work, and its last phase; `error` is its message,
                    `out_of_memory` whether it ended for lack of memory
    figures         by name: gemm_bf16_tflops, gemm_fp8_tflops (TFLOP/s), memory_gb_per_s, host_to_device_gb_per_s,
                    device_to_host_gb_per_s, peer_gb_per_s (GB/s); from nvidia-smi under load temperature_max_c,
                    memory_temperature_max_c (°C), power_max_w (W), sm_clock_min_mhz (MHz)
    not_measured    phase → reason
    repeats, mismatches, digest   repetitions of one product, results different from the first, SHA-256 of the first
    others          processes of others that used the GPU under load, by name and number
    samples, reasons   readings of nvidia-smi under load, and their number by mask of clock event reasons
    """

    index: int
    uuid: str
    serial: str
    pci: str
    model: str
    peer: str
    ended: GpuLoadEnd
    began: bool
    exit_code: int | None
    phase: str
    error: str
    out_of_memory: bool
    figures: Mapping[str, float]
    not_measured: Mapping[str, str]
    repeats: int
    mismatches: int
    digest: str
    samples: int
    reasons: Mapping[int, int]
    others: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        return f"gpu {self.index}"


@dataclass(frozen=True, slots=True)
class GpuLoad:
    """`trouble`: why no GPU could be loaded; `smi_output`: last error output of nvidia-smi. Empty for none.

    `python_absent` is one such trouble.
    """

    trouble: str
    python_absent: bool
    smi_output: str
    gpus: tuple[LoadedGpu, ...]


FIGURES = (
    "gemm_bf16_tflops",
    "gemm_fp8_tflops",
    "memory_gb_per_s",
    "host_to_device_gb_per_s",
    "device_to_host_gb_per_s",
    "peer_gb_per_s",
    "temperature_max_c",
    "memory_temperature_max_c",
    "power_max_w",
    "sm_clock_min_mhz",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Gpu:
    index: Count
    uuid: str
    serial: str
    pci: str
    name: str
    peer: str
    ended: Literal["ok", "failed", "hung"]
    began: bool
    exit_code: int | None
    phase: str
    error: str
    out_of_memory: bool = False
    not_measured: dict[str, str]
    repeats: Count = 0
    mismatches: Count = 0
    digest: str = ""
    samples: Count
    reasons: dict[str, Count]
    others: tuple[str, ...] = ()
    gemm_bf16_tflops: Figure | None = None
    gemm_fp8_tflops: Figure | None = None
    memory_gb_per_s: Figure | None = None
    host_to_device_gb_per_s: Figure | None = None
    device_to_host_gb_per_s: Figure | None = None
    peer_gb_per_s: Figure | None = None
    temperature_max_c: Figure | None = None
    memory_temperature_max_c: Figure | None = None
    power_max_w: Figure | None = None
    sm_clock_min_mhz: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Document:
    version: Literal[1]
    trouble: str
    python_absent: bool = False
    smi_output: str
    gpus: tuple[_Gpu, ...]


def parse_gpu_load(text: str) -> GpuLoad:
    """Return the result. Raises `ParseError` that names the field of an unknown document."""
    document = read_document(_Document, text, _WHERE)
    gpus = tuple(map(_gpu, document.gpus))
    return GpuLoad(document.trouble, document.python_absent, document.smi_output, gpus)


def _gpu(gpu: _Gpu) -> LoadedGpu:
    figures = {name: getattr(gpu, name) for name in FIGURES}
    return LoadedGpu(
        index=gpu.index,
        uuid=gpu.uuid,
        serial="" if gpu.serial.startswith("[") else gpu.serial,
        pci=normal_address(gpu.pci) if gpu.pci else "",
        model=gpu.name,
        peer=gpu.peer,
        ended=GpuLoadEnd(gpu.ended),
        began=gpu.began,
        exit_code=gpu.exit_code,
        phase=gpu.phase,
        error=gpu.error,
        out_of_memory=gpu.out_of_memory,
        figures=MappingProxyType({name: value for name, value in figures.items() if value is not None}),
        not_measured=MappingProxyType(gpu.not_measured),
        repeats=gpu.repeats,
        mismatches=gpu.mismatches,
        digest=gpu.digest,
        samples=gpu.samples,
        reasons=MappingProxyType({_mask(mask, gpu.index): count for mask, count in gpu.reasons.items()}),
        others=gpu.others,
    )


def _mask(text: str, index: int) -> int:
    try:
        return int(text, 16)
    except ValueError:
        where = f"{_WHERE} gpu {index}"
        raise ParseError(f"{text!r} is not a mask of clock event reasons", where=where) from None
