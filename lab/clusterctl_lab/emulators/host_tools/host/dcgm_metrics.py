"""dcgm-metrics: what dcgm-exporter reports of this host's GPUs.

Stands in for a burn-in program that would ask the exporter: the lab has no DCGM. The lines have the form of the
exporter's (github.com/NVIDIA/dcgm-exporter, issue 250).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence

from clusterctl_lab.emulators.host_tools.host.boot import uptime
from clusterctl_lab.emulators.host_tools.host.facts import Facts, Gpu, load

LOST = 3
"""Number of the GPU that an exporter does not report that has lost one."""


def main(argv: Sequence[str]) -> int:
    if len(argv) != 1:
        sys.stderr.write("the lab's dcgm-metrics takes SECONDS\n")
        return 2
    url = json.loads(os.environ.get("CLUSTERCTL_REQUIREMENTS", "{}")).get("dcgm_exporter") or ""
    facts = load()
    gpus = [gpu for gpu in facts.gpus if gpu.on_bus and not (facts.exporter_blind and gpu.index == LOST)]
    lines = [line for gpu in gpus for line in _lines(facts, gpu)] if url else []
    json.dump({"url": url, "complaint": "", "metrics": lines}, sys.stdout)
    return 0


def _lines(facts: Facts, gpu: Gpu) -> list[str]:
    names = {"gpu": gpu.index, "UUID": gpu.uuid, "device": f"nvidia{gpu.index}", "modelName": gpu.model}
    labels = ",".join(f'{name}="{value}"' for name, value in {**names, "Hostname": facts.name}.items())
    power = 70 + uptime() % 5
    counted = {
        "XID_ERRORS": 119 * gpu.shows("xid"),
        "ECC_DBE_VOL_TOTAL": gpu.uncorrectable_ecc + gpu.shows("ecc"),
        "NVLINK_REPLAY_ERROR_COUNT_TOTAL": int(gpu.nvlink_replays_per_hour * uptime() / 3600) + gpu.shows("nvlink"),
        "NVLINK_CRC_DATA_ERROR_COUNT_TOTAL": 100_000 * gpu.shows("nvlink-crc"),
        "PCIE_REPLAY_COUNTER": gpu.pcie_replays + 900 * gpu.shows("pcie"),
    }
    return [
        f"DCGM_FI_DEV_SM_CLOCK{{{labels}}} 345",
        f"DCGM_FI_DEV_POWER_USAGE{{{labels}}} {power:.3f}",
        *(f"DCGM_FI_DEV_{name}{{{labels}}} {value}" for name, value in counted.items()),
    ]
