"""Tiers, states and the drawing's limits, on generated fabrics."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from clusterctl.cabling.explain.verify import verify
from clusterctl.cabling.generate.fat_tree import PortNaming, generate
from clusterctl.cabling.generate.racks import RackLayout
from clusterctl.cabling.generate.shape import FabricSize, shape_of
from clusterctl.cabling.pictures.geometry import WIDTH, draw
from clusterctl.cabling.pictures.marks import MarkKind, marks
from clusterctl.cabling.pictures.matrix import MOST_SINGLE, Pair, PairTrial, matrix
from clusterctl.cabling.pictures.tiers import State, bands
from clusterctl.fleet.fabric.topology import Device, DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.node import Guid

SHAPE = shape_of(FabricSize(16, 2, 8, 3))
PLAN = generate(SHAPE, PortNaming(("mlx5_0", "mlx5_1"), False), RackLayout(4, 8, 16, 16, ""))


def built(plan: WiringPlan, without: str = "") -> Fabric:
    """The plan as a fabric, but for one device."""
    devices: dict[Guid, Device] = {}
    guids: dict[PortName, Guid] = {}

    def at(end: PortName) -> PortId:
        host = end.device in plan.hosts
        key = end if host else PortName(end.device, "")
        guid = guids.setdefault(key, Guid(f"{0xA000 + len(guids):016x}"))
        name = f"{end.device} {end.port}" if host else end.device
        kind = DeviceKind.CA if host else DeviceKind.SWITCH
        devices[guid] = Device(guid, kind, name, 8)
        return PortId(guid, 1 if host else int(end.port))

    cables = [c for c in plan.cables if without not in (c.source.device, c.destination.device)]
    links = [Link(*sorted((at(cable.source), at(cable.destination))), 4, "NDR") for cable in cables]
    return Fabric(devices, tuple(links))


def rows_of(fabric: Fabric):
    verification = verify(PLAN, fabric)
    found = marks(PLAN, fabric, verification, None)
    return bands(PLAN, fabric, verification, found), found


def test_every_device_once_in_its_tier():
    """Core on top, hosts below, as many of each as the shape has; racks from the plan."""
    rows, found = rows_of(built(PLAN))
    assert [(row.name, len(row.tiles)) for row in rows] == [
        ("core switches", SHAPE.cores),
        ("spine switches", SHAPE.spines),
        ("leaf switches", SHAPE.leaves),
        ("hosts", 16),
    ]
    assert found == ()
    assert {tile.state for row in rows for tile in row.tiles} == {State.FINE}
    assert all(group.name.startswith("rack ") for row in rows for group in row.groups)


def test_an_absent_switch_is_the_cause():
    """It is absent; devices that only miss their links to it are kept apart from those with faults of their own."""
    leaf = next(c.source.device for c in PLAN.cables if c.destination.device in PLAN.hosts)
    rows, found = rows_of(built(PLAN, without=leaf))
    states = {tile.device: tile.state for row in rows for tile in row.tiles}
    assert states.pop(leaf) is State.ABSENT
    assert set(states.values()) == {State.FINE, State.TOUCHED}
    assert {mark.kind for mark in found} == {MarkKind.MISSING}
    assert all(curve.echo for curve in draw(rows, found).curves)


def test_no_two_squares_overlap():
    """Each device has its own place inside the picture."""
    rows, found = rows_of(built(PLAN))
    chart = draw(rows, found)
    places = {(placed.x, placed.y) for placed in chart.tiles}
    assert len(places) == len(chart.tiles) == sum(len(row.tiles) for row in rows)
    assert all(placed.x < WIDTH and placed.y < chart.height for placed in chart.tiles)


def test_many_hosts_share_squares():
    """512 hosts make a matrix that still fits; the slowest measurement of a square is the one that counts."""
    hosts = [f"n{number}" for number in range(512)]
    pairs = [Pair(**{"from": a, "to": b, "value": 390}) for a, b in pairwise(hosts)]
    pairs.append(Pair(**{"from": "n5", "to": "n6", "value": 12}))
    drawn = matrix(PairTrial(at_least=360, pairs=tuple(pairs)))
    assert len(drawn.names) <= MOST_SINGLE
    (below,) = [cell for cell in drawn.cells if cell.below]
    assert (below.row, below.column, below.slowest) == (0, 0, 12)
    assert [pair.value for pair in drawn.worst] == [12]


def test_tiers_are_what_switches_are():
    """A management host on a spine makes it no leaf, and a leaf without hosts is a leaf by its name."""
    fabric = built(PLAN)
    spine = next(guid for guid, device in fabric.devices.items() if device.description.startswith("spine-"))
    host = Guid("00000000000000aa")
    devices = {**fabric.devices, host: Device(host, DeviceKind.CA, "ufm01 mlx5_0", 1)}
    leaf = next(c.source.device for c in PLAN.cables if c.destination.device in PLAN.hosts)
    there = [link for link in fabric.links if not {_name(devices, link.a), _name(devices, link.b)} >= {leaf, "a01u01"}]
    seen = Fabric(devices, (*there, Link(PortId(host, 1), PortId(spine, 8), 4, "NDR")))
    verification = verify(PLAN, seen)
    rows = bands(PLAN, seen, verification, marks(PLAN, seen, verification, None))
    sizes = {row.name: len(row.tiles) for row in rows}
    assert sizes["hosts"] == 17
    assert (sizes["leaf switches"], sizes["spine switches"], sizes["core switches"]) == (
        SHAPE.leaves,
        SHAPE.spines,
        SHAPE.cores,
    )


def test_a_leaf_without_its_hosts_is_no_core_switch():
    """Without a plan of its hosts it is as far from any host as the core: it is a leaf by its name and its neighbours."""
    leaf = next(c.source.device for c in PLAN.cables if c.destination.device in PLAN.hosts)
    of_hosts = [
        c for c in PLAN.cables if leaf in (c.source.device, c.destination.device) and c.destination.device in PLAN.hosts
    ]
    plan = replace(PLAN, cables=tuple(cable for cable in PLAN.cables if cable not in of_hosts))
    fabric = built(plan)
    rows = bands(plan, fabric, verify(plan, fabric), ())
    assert of_hosts
    assert [(row.name, len(row.tiles)) for row in rows if row.name != "hosts"] == [
        ("core switches", SHAPE.cores),
        ("spine switches", SHAPE.spines),
        ("leaf switches", SHAPE.leaves),
    ]


def _name(devices: dict[Guid, Device], port: PortId) -> str:
    return devices[port.guid].description.split()[0]
