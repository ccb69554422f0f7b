"""A node's GPUs under load, as the program reports them: healthy, and ways to break one."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from clusterctl.fleet.finding import Finding, Origin
from clusterctl_burnin.loads.single_node.gpu_load import LOAD
from clusterctl_burnin.probe import ProbeResult, Readings, Status
from tests.burnin.kit import LIMITS, SKU, START, expected

SERIALS = ("165000010000", "165000010001", "165000010002", "165000010003")
DIGEST = "ab" * 32


def gpu(index: int, **changes: Any) -> dict[str, Any]:
    """A healthy H100 at its power limit, in the figures of the limits file's sources; no recording."""
    healthy = {
        "index": index,
        "uuid": f"GPU-{index}",
        "serial": SERIALS[index],
        "pci": f"00000000:{0x1B + index:02X}:00.0",
        "name": "NVIDIA H100 80GB HBM3",
        "peer": f"GPU-{(index + 1) % 4}",
        "phase": "peer",
        "error": "",
        "ended": "ok",
        "began": True,
        "exit_code": 0,
        "not_measured": {},
        "torch": "2.13.0",
        "gemm_bf16_tflops": 760.0 + index,
        "gemm_fp8_tflops": 1350.0,
        "memory_gb_per_s": 2900.0,
        "host_to_device_gb_per_s": 54.8,
        "device_to_host_gb_per_s": 46.8,
        "peer_gb_per_s": 378.0,
        "repeats": 3000,
        "mismatches": 0,
        "digest": DIGEST,
        "samples": 12,
        "reasons": {"0x0000000000000004": 11, "0x0000000000000001": 1},
        "temperature_max_c": 66.0,
        "memory_temperature_max_c": 82.0,
        "power_max_w": 699.5,
        "sm_clock_min_mhz": 1395.0,
    }
    return {name: value for name, value in {**healthy, **changes}.items() if value is not None}


def document(gpus: Iterable[dict[str, Any]], **changes: Any) -> str:
    return json.dumps({"version": 1, "trouble": "", "smi_output": "", "gpus": list(gpus), **changes})


def answer(text: str, rc: int = 0, status: Status = Status.OK) -> Readings:
    (probe,) = LOAD.probes(LIMITS, None)
    result = ProbeResult(probe.name, probe.argv, status, rc, text, "", START, 60.0)
    return Readings("node001", "boot-1", Origin.REAL, START, START + timedelta(seconds=60), {probe.name: result})


def judged(text: str, gpu_count: int = 4) -> tuple[Finding, ...]:
    """Return what the load reports of a node that should have so many GPUs."""
    check = LOAD.check(LIMITS)
    return check.findings(answer(text), expected(sku=dataclasses.replace(SKU, gpu_count=gpu_count)))
