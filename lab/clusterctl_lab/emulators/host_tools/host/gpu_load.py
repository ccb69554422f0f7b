"""gpu-load: the burn-in's own load of all GPUs, with figures for GPUs that the lab does not have.

Stands in for a burn-in program that would need PyTorch and GPUs; it loads nothing and answers immediately. The figures
are those of an H100 SXM times the machine's own factor. The throttle reasons are NVML's clock event reasons: a healthy
GPU at its power limit (0x4), a hot one halved by its hardware (0x48), all GPUs of a server with too weak power supplies
(0x88).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.facts import Facts, Gpu, driver_version, load
from clusterctl_lab.emulators.host_tools.host.loaded import GPUS, mark
from clusterctl_lab.emulators.host_tools.host.power import brakes_gpus

TOO_HOT_C = 87
BF16, FP8 = 770.0, 1350.0
LOOKS = 12
SEED = b"the same two matrices"


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("gpu-load")
    for option in ("--python", "--seconds", "--matrix-size", "--buffer-mib", "--limit"):
        parser.add_argument(option, required=True)
    parser.parse_args(argv)
    mark(GPUS)
    facts = load()
    document = {"version": 1, "trouble": "", "smi_output": "", "gpus": []}
    if not driver_version():
        document["trouble"] = "nvidia-smi ended with 9: NVIDIA-SMI has failed"
    else:
        braked = brakes_gpus(facts)
        document["gpus"] = [_gpu(gpu, facts, braked=braked) for gpu in facts.gpus]
    json.dump(document, sys.stdout)
    return 0


def _gpu(gpu: Gpu, facts: Facts, *, braked: bool) -> dict[str, object]:
    hot = gpu.load_c >= TOO_HOT_C
    halved = hot or braked
    speed = gpu.speed_percent / (200 if halved else 100)
    result = SEED + (gpu.serial.encode() if gpu.computes_wrong else b"")
    return {
        "index": gpu.index,
        "uuid": gpu.uuid,
        "serial": gpu.serial,
        "pci": gpu.pci,
        "name": gpu.model,
        "peer": facts.gpus[(gpu.index + 1) % len(facts.gpus)].uuid,
        "phase": "peer",
        "error": "",
        "ended": "ok",
        "began": True,
        "exit_code": 0,
        "not_measured": {},
        "gemm_bf16_tflops": round(BF16 * speed, 1),
        "gemm_fp8_tflops": round(FP8 * speed, 1),
        "memory_gb_per_s": 2903.0,
        "host_to_device_gb_per_s": 54.8,
        "device_to_host_gb_per_s": 46.8,
        "peer_gb_per_s": 378.0,
        "repeats": 1000,
        "mismatches": 2 if gpu.computes_wrong else 0,
        "digest": hashlib.sha256(result).hexdigest(),
        "samples": LOOKS,
        "reasons": {_reasons(hot=hot, braked=braked): LOOKS},
        "temperature_max_c": float(gpu.load_c),
        "memory_temperature_max_c": float(gpu.load_c + gpu.memory_temperature_c - gpu.temperature_c),
        "power_max_w": 350.0 if halved else 699.0,
        "sm_clock_min_mhz": 990.0 if halved else 1410.0,
    }


def _reasons(*, hot: bool, braked: bool) -> str:
    return f"{0x48 * hot | 0x88 * braked or 0x4:#018x}"
