"""The ports of each switch: what is in each, and what is wrong with it; and racks as elevations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.explain.verify import CablingVerification
from clusterctl.cabling.labels import PlanLabels
from clusterctl.cabling.pictures.marks import Mark, MarkKind
from clusterctl.cabling.pictures.tiers import Band, SwitchTile
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.plain_numbers import is_number

RACK_UNITS = 48


@dataclass(frozen=True, slots=True)
class PortCell:
    """One port: `label` on the switch, with its cage where known; `far` is the port at the other end, planned or seen.

    `code` is the worst mark of the link, `fine` without any.
    """

    label: str
    far: str
    far_device: str
    code: str


@dataclass(frozen=True, slots=True)
class PortMap:
    """The cabled and planned ports of a switch; of a modular one by board."""

    tile: SwitchTile
    boards: tuple[tuple[str, tuple[PortCell, ...]], ...]

    @property
    def ports(self) -> int:
        """Number of ports that are cabled or planned."""
        return sum(len(cells) for _, cells in self.boards)


def device_ports(
    rows: Iterable[Band], plan: WiringPlan, verification: CablingVerification, found: Iterable[Mark], labels: PlanLabels
) -> dict[str, PortMap]:
    """Return the map of each device with ports that are planned or cabled, hosts as well, by name."""
    far = _far_ends(plan, verification)
    codes = _codes(found)
    tiles = [tile for row in rows for tile in row.tiles if tile.device in far]
    return {tile.device: PortMap(tile, _boards(far[tile.device], codes, labels)) for tile in tiles}


def port_maps(
    rows: Iterable[Band], plan: WiringPlan, verification: CablingVerification, found: Iterable[Mark], labels: PlanLabels
) -> tuple[PortMap, ...]:
    """Return one map for each switch, those with something wrong first."""
    far = _far_ends(plan, verification)
    codes = _codes(found)
    tiles = [tile for row in rows for tile in row.tiles if any(port.on_switch for port in far.get(tile.device, ()))]
    maps = [PortMap(tile, _boards(far[tile.device], codes, labels)) for tile in tiles]
    return tuple(sorted(maps, key=lambda one: not one.tile.links))


def _far_ends(plan: WiringPlan, verification: CablingVerification) -> dict[str, dict[PortName, PortName]]:
    """Return the other end of each planned or cabled port, by device; the cabled one where they differ."""
    far: dict[str, dict[PortName, PortName]] = defaultdict(dict)
    for ends in (*(tuple(cable.ends) for cable in plan.cables), *map(tuple, verification.cables)):
        if len(ends) == 2:
            for near, other in (ends, ends[::-1]):
                far[near.device][near] = other
    return far


def _codes(found: Iterable[Mark]) -> dict[PortName, MarkKind]:
    """Return the worst mark of each port."""
    order = list(MarkKind)
    worst_last = sorted(found, key=lambda mark: order.index(mark.kind), reverse=True)
    return {port: mark.kind for mark in worst_last for port in (mark.a, mark.b)}


def _boards(
    far: Mapping[PortName, PortName], codes: Mapping[PortName, MarkKind], labels: PlanLabels
) -> tuple[tuple[str, tuple[PortCell, ...]], ...]:
    boards: dict[str, list[PortName]] = defaultdict(list)
    for port in far:
        boards[port.board].append(port)
    return tuple(
        (board, tuple(_cell(port, far[port], codes, labels) for port in sorted(ports, key=lambda p: p.number)))
        for board, ports in sorted(boards.items())
    )


def _cell(port: PortName, far: PortName, codes: Mapping[PortName, MarkKind], labels: PlanLabels) -> PortCell:
    cage = labels.cage(port)
    label = f"{port.number} ({cage})" if cage else str(port.number)
    name = f"{far.device} {f'port {far.port}' if is_number(far.port) else far.port}"
    return PortCell(label, name, far.device, codes[port].code if port in codes else "fine")


@dataclass(frozen=True, slots=True)
class PortSlot:
    """A device at its lowest unit; units of a device count from the bottom of the rack."""

    tile: SwitchTile
    unit: int


@dataclass(frozen=True, slots=True)
class Elevation:
    """A rack with its devices from top to bottom, and the devices without a unit in the plan."""

    rack: str
    slots: tuple[PortSlot, ...]
    unplaced: tuple[SwitchTile, ...]

    @property
    def wrong(self) -> int:
        """Number of devices with something wrong."""
        return sum(tile.state.code != "fine" for tile in (*(slot.tile for slot in self.slots), *self.unplaced))


def elevations(rows: Iterable[Band], plan: WiringPlan) -> tuple[Elevation, ...]:
    """Return the racks of the plan; none where it has no places."""
    racks: dict[str, list[tuple[int | None, SwitchTile]]] = defaultdict(list)
    for row in rows:
        for tile in row.tiles:
            location = plan.locations.get(tile.device)
            if location is not None and location.rack:
                racks[location.rack].append((location.unit, tile))
    return tuple(_elevation(rack, racks[rack]) for rack in sorted(racks, key=natural_key))


def _elevation(rack: str, devices: Sequence[tuple[int | None, SwitchTile]]) -> Elevation:
    slots = [PortSlot(tile, unit) for unit, tile in devices if unit is not None]
    unplaced = tuple(tile for unit, tile in devices if unit is None)
    return Elevation(rack, tuple(sorted(slots, key=lambda slot: -slot.unit)), unplaced)
