"""What this host's hardware is, from the file that the lab renders from its model of the machine."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FACTS = Path(os.environ.get("CLUSTERCTL_LAB_FACTS", "/etc/clusterctl-lab/machine.json"))
DRIVER_VERSION = Path(os.environ.get("CLUSTERCTL_LAB_DRIVER", "/usr/lib/clusterctl-lab/driver-version"))


@dataclass(frozen=True, slots=True)
class Gpu:
    """`pci` as nvidia-smi prints it."""

    index: int
    serial: str
    uuid: str
    pci: str
    model: str
    memory_mib: int
    uncorrectable_ecc: int
    pcie_width: int


@dataclass(frozen=True, slots=True)
class Hca:
    """`interface` is the network interface that carries its traffic in the lab."""

    name: str
    guid: str
    pci: str
    firmware: str
    rate_gbps: int
    plugged: bool
    interface: str
    lid: int


@dataclass(frozen=True, slots=True)
class Facts:
    """The machine, as far as its tools may tell of it."""

    name: str
    serial: str
    manufacturer: str
    model: str
    memory_gib: int
    gpus: tuple[Gpu, ...]
    hcas: tuple[Hca, ...]


def load() -> Facts:
    """Read the facts; raises `OSError` outside a lab host."""
    raw: dict[str, Any] = json.loads(FACTS.read_text())
    gpus = tuple(Gpu(**gpu) for gpu in raw.pop("gpus"))
    hcas = tuple(Hca(**hca) for hca in raw.pop("hcas"))
    return Facts(gpus=gpus, hcas=hcas, **raw)


def natural(name: str) -> tuple[str | int, ...]:
    """Sort key that puts `mlx5_2` before `mlx5_10`."""
    return tuple(int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name))
