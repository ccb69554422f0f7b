"""The files that make a lab host's tools: the programs, alike on all hosts, and the facts of each machine."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping
from typing import Any

from clusterctl.lab.machine import Machine

Files = Mapping[str, tuple[bytes, int]]
"""Absolute path in the host → content and mode."""

LIBRARY = "/usr/lib/clusterctl-lab/python"
FACTS = "/etc/clusterctl-lab/machine.json"
_PACKAGE = "clusterctl.lab.faces.tools.host"
_PROGRAMS = {
    "all_reduce_perf": "/usr/local/bin/all_reduce_perf",
    "dmesg": "/usr/local/bin/dmesg",
    "dmidecode": "/usr/local/sbin/dmidecode",
    "ib_write_bw": "/usr/local/bin/ib_write_bw",
    "ibstat": "/usr/local/sbin/ibstat",
    "lspci": "/usr/local/bin/lspci",
    "nvidia_smi": "/usr/lib/clusterctl-lab/nvidia-smi",
    "swapon": "/usr/local/sbin/swapon",
}
"""nvidia-smi lies aside: `/usr/bin/nvidia-smi`, which calls it, comes with the driver's package."""


def lower_files() -> Files:
    """What all hosts share: the programs and the modules that they are made of."""
    files = {path: (_program(module), 0o755) for module, path in _PROGRAMS.items()}
    folder = importlib.resources.files(_PACKAGE)
    for entry in folder.iterdir():
        if entry.name.endswith(".py"):
            files[f"{LIBRARY}/{_PACKAGE.replace('.', '/')}/{entry.name}"] = (entry.read_bytes(), 0o644)
    return files


def machine_files(machine: Machine) -> Files:
    """What the programs tell of this machine. Nothing of the BMC, nothing secret."""
    return {FACTS: (json.dumps(_facts(machine), indent=1).encode() + b"\n", 0o644)}


def _program(module: str) -> bytes:
    return (
        "#!/usr/bin/python3 -I\n"
        "# The rehearsal lab's stand-in for a tool whose hardware is not there.\n"
        "import sys\n"
        f"sys.path.insert(0, {LIBRARY!r})\n"
        "sys.dont_write_bytecode = True\n"
        f"from {_PACKAGE}.{module} import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    ).encode()


def _facts(machine: Machine) -> dict[str, Any]:
    return {
        "name": machine.name,
        "serial": machine.serial,
        "manufacturer": machine.manufacturer,
        "model": machine.model,
        "memory_gib": machine.memory_gib,
        "gpus": [
            {
                "index": index,
                "serial": gpu.serial,
                "uuid": gpu.uuid,
                "pci": gpu.pci,
                "model": gpu.model,
                "memory_mib": gpu.memory_mib,
                "uncorrectable_ecc": gpu.uncorrectable_ecc,
                "pcie_width": gpu.pcie_width,
            }
            for index, gpu in enumerate(machine.gpus)
        ],
        "hcas": [
            {
                "name": hca.name,
                "guid": hca.guid,
                "pci": hca.pci,
                "firmware": hca.firmware,
                "rate_gbps": hca.rate_gbps,
                "plugged": hca.cable is not None,
                "interface": f"ib{hca.rail}",
                "lid": 8 * machine.index + hca.rail + 16,
            }
            for hca in machine.hcas
        ],
    }
