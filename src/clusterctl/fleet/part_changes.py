"""Parts that came and went between two inventories: events of the parts themselves, so that their history follows them.

A part is its serial. One without a serial has no history; a list that could not be read says nothing of what is gone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import Cpu, Dimm, Drive, Gpu, Hca, Inventory, NodeId, Psu, Serial
from clusterctl.fleet.state import NodeState

Fitted = Gpu | Hca | Drive | Psu | Dimm | Cpu


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a part sits, and what it is."""

    component: str
    slot: str
    model: str


def part_changes(node: NodeState, found: Inventory) -> tuple[NewEvent, ...]:
    """An event for each part that is new in this node, moved to another slot, or is gone.

    Each names the node, the slot, and the part that was there before or is there now. A node's own event for each slot
    whose part was replaced comes last. Nothing is replaced where nothing was known.
    """
    before = node.inventory
    old, new = _fitted(before) if before else {}, _fitted(found)
    blind = _unread(found)
    came = {serial: place for serial, place in new.items() if old.get(serial) != place}
    left = {serial: place for serial, place in old.items() if serial not in new and place.component not in blind}
    return (
        *(_event(node, Kind.PART_SEEN, serial, place, _at(left, place)) for serial, place in came.items()),
        *(_event(node, Kind.PART_GONE, serial, place, _at(came, place)) for serial, place in left.items()),
        *_replaced(node.id, left, came),
    )


def _replaced(node: NodeId, left: Mapping[Serial, _Place], came: Mapping[Serial, _Place]) -> Iterator[NewEvent]:
    for serial, place in left.items():
        data = {"component": place.component, "slot": place.slot, "old": serial, "new": _at(came, place)}
        yield NewEvent("node", node, Kind.PART_REPLACED, data)


def _event(node: NodeState, kind: Kind, serial: Serial, place: _Place, other: str) -> NewEvent:
    data = {"component": place.component, "slot": place.slot, "model": place.model, "node": node.name, "other": other}
    return NewEvent("part", serial, kind, data)


def _at(parts: Mapping[Serial, _Place], place: _Place) -> str:
    """The serial of the part in the same place; empty where none is known."""
    same = (serial for serial, there in parts.items() if (there.component, there.slot) == (place.component, place.slot))
    return next(same, "")


def _kinds(inventory: Inventory) -> Mapping[str, Sequence[Fitted] | None]:
    return {
        "gpu": inventory.gpus,
        "hca": inventory.hcas,
        "drive": inventory.drives,
        "psu": inventory.psus,
        "dimm": inventory.dimms,
        "cpu": inventory.cpus,
    }


def _unread(inventory: Inventory) -> frozenset[str]:
    """Kinds of which nothing is told: empty lists too, for a machine that is off may list none."""
    return frozenset(component for component, parts in _kinds(inventory).items() if not parts)


def _fitted(inventory: Inventory) -> dict[Serial, _Place]:
    """By serial; two ports of one adapter have one serial, and are one part, in the place of the first."""
    found: dict[Serial, _Place] = {}
    for component, parts in _kinds(inventory).items():
        for part in parts or ():
            if part.serial:
                model = "" if isinstance(part, Psu) else part.model
                found.setdefault(part.serial, _Place(component, part.slot, model))
    return found
