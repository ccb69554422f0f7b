"""Bundles are one finding, repairs visit the fewest devices, and rates and cables are those of the plan."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clusterctl.cabling.difference import components
from clusterctl.cabling.explain.explanation import FaultKind
from clusterctl.cabling.explain.repair import repairs
from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.names import ObservedCable
from clusterctl.fleet.fabric.telemetry import Transceiver
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PlannedCable, PortName, WiringPlan
from clusterctl.fleet.node import Guid

QUANTUM_2, CONNECTX_6, CONNECTX_7 = 0xD2F2, 0x101B, 0x1021
_ANY = Link(PortId(Guid("1"), 1), PortId(Guid("2"), 1), 4, "NDR")


def port(device: str, name: int | str) -> PortName:
    return PortName(device, str(name))


class Pod:
    """Two leaves (one for each rail) with hosts, and two spines with 4 trunks to each leaf."""

    def __init__(self, hosts: int = 8) -> None:
        self.pairs = {
            port(f"leaf-{rail}", host): port(f"node{host:02d}", f"mlx5_{rail}")
            for rail in (0, 1)
            for host in range(1, hosts + 1)
        } | {
            port(f"leaf-{rail}", 33 + 4 * spine + trunk): port(f"spine-{spine}", 1 + 4 * rail + trunk)
            for rail in (0, 1)
            for spine in (0, 1)
            for trunk in range(4)
        }
        self.plugged = dict(self.pairs)
        self.gbps: dict[PortName, float] = {}
        self.models: dict[str, int] = {}
        self.speeds: dict[PortName, str] = {}
        self.serials: dict[PortName, str] = {}

    def plan(self) -> WiringPlan:
        cables = tuple(
            PlannedCable(a, b, line=n, gbps=self.gbps.get(a), serial=self.serials.get(a, ""))
            for n, (a, b) in enumerate(self.pairs.items(), start=2)
        )
        return WiringPlan(cables, frozenset(b.device for b in self.pairs.values() if b.device.startswith("node")))

    def fabric(self) -> Fabric:
        units = sorted({self._unit(end) for pair in self.plugged.items() for end in pair})
        self.guids = {unit: Guid(f"{n:016x}") for n, unit in enumerate(units, start=16)}
        devices = {guid: self._device(unit, guid) for unit, guid in self.guids.items()}
        links = [
            Link(*sorted((self._port(a), self._port(b))), 4, self.speeds.get(a, "NDR")) for a, b in self.plugged.items()
        ]
        return Fabric(devices, tuple(links))

    def _device(self, unit: str, guid: Guid) -> Device:
        host = unit.startswith("node")
        model = self.models.get(unit.split(maxsplit=1)[0], CONNECTX_7 if host else QUANTUM_2)
        return Device(guid, DeviceKind.CA if host else DeviceKind.SWITCH, unit, 1 if host else 65, device_id=model)

    def _unit(self, end: PortName) -> str:
        return end.device if end.on_switch else f"{end.device} {end.port}"

    def _port(self, end: PortName) -> PortId:
        return PortId(self.guids[self._unit(end)], end.number or 1)

    def exchange(self, *pairs: tuple[PortName, PortName]) -> None:
        for a, b in pairs:
            self.plugged[a], self.plugged[b] = self.plugged[b], self.plugged[a]


def test_a_bundle_shifted_along_is_one_finding():
    """Four uplinks two ports too high: one finding, four moves, one device."""
    pod = Pod()
    for number in (40, 39, 38, 37):
        pod.plugged[port("leaf-0", number + 2)] = pod.plugged.pop(port("leaf-0", number))
    found = verify(pod.plan(), pod.fabric())
    assert [one.kind for one in found.explanations] == [FaultKind.MOVED]
    assert (found.moves, found.chassis) == (4, 1)


def test_bundles_of_two_leaves_exchanged_are_one_finding():
    """Bundles of three hosts are exchanged between two leaves: two leaves are visited, not three hosts."""
    pod = Pod()
    pod.exchange(*((port("leaf-0", host), port("leaf-1", host)) for host in range(1, 4)))
    found = verify(pod.plan(), pod.fabric())
    assert [one.kind for one in found.explanations] == [FaultKind.WRONG_RAIL]
    assert (found.moves, found.chassis) == (6, 2)
    assert "leaf-0 ports 1–3" in found.explanations[0].action
    assert len(found.explanations[0].nodes) == 3


def test_one_host_with_exchanged_rails_is_repaired_at_the_host():
    """Where one visit at the host suffices, no leaf is visited."""
    pod = Pod()
    pod.exchange((port("leaf-0", 3), port("leaf-1", 3)))
    found = verify(pod.plan(), pod.fabric())
    assert (found.moves, found.chassis) == (2, 1)
    assert found.explanations[0].action.startswith("node03")


def test_two_swaps_apart_are_two_findings():
    """Swaps that are no neighbours are mistakes of their own."""
    pod = Pod()
    pod.exchange((port("leaf-0", 1), port("leaf-0", 2)), (port("leaf-0", 6), port("leaf-0", 7)))
    found = verify(pod.plan(), pod.fabric())
    assert len(found.explanations) == 2


PORTS = [PortName(f"sw-{n % 4}", str(n // 4 + 1)) for n in range(16)]


@settings(max_examples=150, deadline=None)
@given(st.permutations(PORTS), st.permutations(PORTS))
def test_repairs_visit_the_fewest_devices(first, second):
    """No other choice of ends needs fewer devices, in fabrics small enough to try every choice."""
    planned = {frozenset(first[2 * n : 2 * n + 2]) for n in range(8)}
    observed = {frozenset(second[2 * n : 2 * n + 2]) for n in range(8)}
    missing = [PlannedCable(*sorted(ends)) for ends in planned - observed]
    found = list(components(missing, [ObservedCable(ends, _ANY) for ends in observed - planned]))
    chosen = repairs(found)
    visited = frozenset().union(*(one.devices for one in chosen))
    sides = [[frozenset(p.device for p in part.ports[side::2]) for side in (0, 1)] for part in found if part.cycle]
    fewest = min((len(frozenset().union(*choice)) for choice in product(*sides)), default=0)
    assert all(part.cycle for part in found)
    assert len(visited) == fewest


@pytest.mark.parametrize(
    ("gbps", "model", "speed", "slow"),
    [
        (None, CONNECTX_7, "HDR", True),  # slower than its like
        (None, CONNECTX_6, "HDR", False),  # an older adapter does what it can
        (400, CONNECTX_6, "HDR", False),  # the plan wants more than the adapter can
        (400, CONNECTX_6, "EDR", True),
        (200, CONNECTX_7, "HDR", False),  # planned so
        (200, CONNECTX_7, "EDR", True),
    ],
)
def test_rates(gbps, model, speed, slow):
    """A link runs at its planned rate, or at that of its like, but never faster than both ends can."""
    pod, end = Pod(), port("leaf-0", 5)
    if gbps:
        pod.gbps[end] = gbps
    pod.models["node05"] = model
    pod.speeds[end] = speed
    if model == CONNECTX_6:
        pod.speeds[port("leaf-1", 5)] = "HDR"
    found = verify(pod.plan(), pod.fabric())
    assert [one.kind for one in found.explanations] == ([FaultKind.DOWN_SPEED] if slow else [])


def test_another_cable_than_planned():
    """Serials of two cables are exchanged: both are named, with where each belongs, and no host is held."""
    pod = Pod()
    first, second = port("leaf-0", 1), port("leaf-0", 2)
    pod.serials = {first: "MT-A", second: "MT-B"}
    fabric = pod.fabric()
    seen = {pod._port(first): Transceiver(serial="MT-B"), pod._port(second): Transceiver(serial="MT-A")}
    found = verify(pod.plan(), fabric, transceivers=seen)
    assert [one.kind for one in found.explanations] == [FaultKind.WRONG_CABLE] * 2
    assert "MT-B, not MT-A, which the plan has at leaf-0 port 2" in found.explanations[0].cause
    assert not any(one.nodes for one in found.explanations)
    silent = {port: Transceiver() for port in seen}
    assert verify(pod.plan(), fabric, transceivers=silent).explanations == ()
