"""A node's part in the loads of many nodes, from its checks' probes: rails, the GPUs at them, interface."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.formats.host.network import parse_ip_addr
from clusterctl.formats.infiniband.roce import parse_roce_ports
from clusterctl.formats.nvidia.nvlink import GpuTopology, parse_gpu_topology
from clusterctl_burnin.checks.gpu_topology import TOPOLOGY
from clusterctl_burnin.checks.host_network import ADDRESSES
from clusterctl_burnin.checks.roce import PORTS
from clusterctl_burnin.loads.model import Participant
from clusterctl_burnin.probe import Readings, UnmeasuredError
from clusterctl_burnin.probes.ibstat import ETHERNET, compute_adapters

_NEAREST_FIRST = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""NVIDIA's words for what lies between two devices (`nvidia-smi topo -m` prints their legend)."""


@dataclass(frozen=True, slots=True)
class Seat:
    """As in `Participant`; all empty where nothing is known."""

    devices: tuple[str, ...] = ()
    gpus: tuple[int | None, ...] = ()
    interface: str = ""
    gids: tuple[int | None, ...] = ()

    def member(self, name: str, address: str) -> Participant:
        return Participant(name, address, self.devices, self.gpus, self.interface, self.gids)


def seat(readings: Readings, address: str, sku: Sku) -> Seat:
    """Return what is known. The checks report what is absent or not understood, and each load what it lacks."""
    devices = _devices(readings, sku)
    gids = _gids(readings, devices) if sku.hca_link_layer == ETHERNET else ()
    return Seat(devices, _nearest(readings, devices), _interface(readings, address), gids)


def _devices(readings: Readings, sku: Sku) -> tuple[str, ...]:
    try:
        return tuple(adapter.name for adapter in compute_adapters(readings, sku))
    except (UnmeasuredError, ParseError):
        return ()


def _gids(readings: Readings, devices: tuple[str, ...]) -> tuple[int | None, ...]:
    try:
        known = {port.name: port.gid_index for port in parse_roce_ports(readings.text(PORTS))}
    except (UnmeasuredError, ParseError):
        return ()
    return tuple(known.get(device) for device in devices)


def _nearest(readings: Readings, devices: tuple[str, ...]) -> tuple[int | None, ...]:
    try:
        return nearest_gpus(parse_gpu_topology(readings.text(TOPOLOGY)), devices)
    except (UnmeasuredError, ParseError):
        return (None,) * len(devices)


def nearest_gpus(table: GpuTopology, devices: tuple[str, ...]) -> tuple[int | None, ...]:
    """Return for each device its nearest GPU; of several as near, one that no device before it has, if there is any."""
    found: list[int | None] = []
    for device in devices:
        distances = {
            int(gpu.removeprefix("GPU")): _NEAREST_FIRST.index(word)
            for gpu in table.gpus
            if (word := table.links.get((gpu, device), "")) in _NEAREST_FIRST
        }
        least = min(distances.values(), default=None)
        near = [gpu for gpu, distance in sorted(distances.items()) if distance == least]
        found.append(next((gpu for gpu in near if gpu not in found), near[0] if near else None))
    return tuple(found)


def _interface(readings: Readings, address: str) -> str:
    try:
        interfaces = parse_ip_addr(readings.text(ADDRESSES))
    except (UnmeasuredError, ParseError):
        return ""
    return next((one.name for one in interfaces if address in {a.partition("/")[0] for a in one.addresses}), "")
