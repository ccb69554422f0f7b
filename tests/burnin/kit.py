"""A node with two GPUs and two adapters, healthy by its data files, and ways to break it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from clusterctl.fleet.finding import Origin
from clusterctl.fleet.node import Gpu, Inventory, Serial
from clusterctl_burnin.check import Expected
from clusterctl_burnin.limits.firmware import AllowedVersions, FirmwareRequirements, PartRequirements
from clusterctl_burnin.limits.reading import shipped_limits
from clusterctl_burnin.probe import Probe, ProbeResult, Readings, Status
from clusterctl_burnin.registry import CHECKS
from tests.fleet.skus import H100_X8
from tests.formats.host_networks import BONDED

HEALTHY = Path(__file__).parent / "data" / "healthy"
START = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SKU = dataclasses.replace(
    H100_X8, name="two", gpu_count=2, hca_count=2, memory_gib=256, data_drive_count=0, limits="h100-sxm-ndr400"
)
INVENTORY = Inventory(
    manufacturer="Dell Inc.",
    model="PowerEdge XE9680",
    serial=Serial("LAB0001"),
    gpus=(
        Gpu("Video.Slot.21-1", "H100", Serial("165000010000")),
        Gpu("Video.Slot.22-1", "H100", Serial("165000010001")),
    ),
)
NETWORK = dataclasses.replace(BONDED, bonds=(dataclasses.replace(BONDED.bonds[0], mode="active-backup"),))
"""What `ip_addr` and its like were recorded of: Debian 12 in a virtual machine, its network laid by netplan."""
PROBES: Mapping[str, Probe] = {
    probe.name: probe
    for check in CHECKS.values()
    for probe in (*check.probes, *(check.watch.probes if check.watch else ()))
}

FIRMWARE = FirmwareRequirements(
    hca=PartRequirements(
        others="fail",
        wanted={"MT_0000000838": AllowedVersions(versions=("28.39.1002",), otherwise="fail", source="test")},
    ),
    gpu_vbios=PartRequirements(
        others="fail",
        wanted={
            "NVIDIA H100 80GB HBM3": AllowedVersions(versions=("96.00.74.00.0D",), otherwise="fail", source="test")
        },
    ),
)
LIMITS = dataclasses.replace(shipped_limits("h100-sxm-ndr400"), firmware=FIRMWARE)
"""With a list of firmware, which no shipped file for hardware has."""

Edit = Callable[[str], str]


def expected(**changes: object) -> Expected:
    base = Expected(
        name="node001",
        serial=Serial("LAB0001"),
        sku=SKU,
        limits=LIMITS,
        sent=START,
        received=START + timedelta(seconds=5),
        driver_version="550.127.08",
        inventory=INVENTORY,
        network=NETWORK,
    )
    return dataclasses.replace(base, **changes)


@functools.cache
def healthy_text(probe: str) -> str:
    return (HEALTHY / f"{probe}.txt").read_text()


def result(probe: str, stdout: str, *, rc: int | None = 0, status: Status = Status.OK, stderr: str = "") -> ProbeResult:
    return ProbeResult(probe, PROBES[probe].argv, status, rc, stdout, stderr, START, 0.1)


def readings(**broken: ProbeResult | Edit) -> Readings:
    """The healthy node's answers, those named replaced, or edited as text."""
    probes = {name: result(name, healthy_text(name)) for name in PROBES}
    for name, change in broken.items():
        probes[name] = change if isinstance(change, ProbeResult) else result(name, change(healthy_text(name)))
    start, end = START + timedelta(seconds=1), START + timedelta(seconds=4)
    return Readings("node001", "boot-1", Origin.REAL, start, end, probes)
