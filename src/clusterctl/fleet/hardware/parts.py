"""A node's parts by the names that operators use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.fleet.decisions.waiver import same_part
from clusterctl.fleet.event import NewEvent, Stream, node_event
from clusterctl.fleet.finding import Finding
from clusterctl.fleet.node import Cpu, Dimm, Drive, Gpu, Hca, Inventory, NodeId, Psu, Serial
from clusterctl.fleet.payloads.hardware import PartGone, PartReplaced, PartSeen
from clusterctl.fleet.state import NodeState

MACHINE = "machine"


@dataclass(frozen=True, slots=True)
class Part:
    """`slot` is what its BMC calls it; that and `serial` are empty where unknown."""

    subject: str
    serial: str
    slot: str = ""

    def __str__(self) -> str:
        return f"{self.subject}, serial {self.serial}" if self.serial else f"{self.subject}, serial unknown"


def part_named(node: NodeState, name: str) -> Part:
    """Return the part that a name means: a slot or serial that its BMC reports, or a name that findings use.

    An unknown name is a part of that name, without a serial.
    """
    known = (part for part in _known(node) if same_part(part.subject, name) or part.serial == name.strip())
    return next(known, Part(" ".join(name.split()), ""))


def words_of(node: NodeState) -> str:
    """Return slots, models and serials of the node's parts as one text in lower case, each word once, to search in."""
    found: dict[str, None] = {}
    for part in _known(node):
        found |= dict.fromkeys((part.subject, part.slot, part.serial))
    if node.inventory is not None:
        found |= dict.fromkeys(place.model for place in _by_serial(node.inventory).values())
    return " ".join(filter(None, found)).lower()


def serials_in(node: NodeState) -> frozenset[str]:
    """Return the serials of the parts that its BMC and its findings name."""
    return frozenset(part.serial for part in _known(node) if part.serial)


def part_of(node: NodeState, finding: Finding) -> Part:
    """Return the part that a finding is about: the machine itself where it names none."""
    if finding.subject == "node":
        return Part(MACHINE, node.serial or "")
    for part in fitted(node):
        if (finding.serial and part.serial == finding.serial) or same_part(part.slot, finding.subject):
            return Part(finding.subject, finding.serial or part.serial, part.slot)
    return Part(finding.subject, finding.serial)


def _known(node: NodeState) -> Iterator[Part]:
    yield from fitted(node)
    for report in node.reports.values():
        yield from (Part(finding.subject, finding.serial) for finding in report.findings if finding.serial)


def fitted(node: NodeState) -> Iterator[Part]:
    """Yield the parts that the node's BMC reports."""
    found = node.inventory
    if found is None:
        return
    kinds: tuple[Sequence[Fitted] | None, ...] = (
        *(found.gpus, found.hcas, found.drives),
        *(found.psus, found.dimms, found.cpus),
    )
    for parts in kinds:
        yield from (Part(part.slot, part.serial or "", part.slot) for part in parts or ())
    yield from (Part(fan.slot, "", fan.slot) for fan in found.fans or ())


Fitted = Gpu | Hca | Drive | Psu | Dimm | Cpu


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a part sits, and what it is."""

    component: str
    slot: str
    model: str


def part_changes(node: NodeState, found: Inventory) -> tuple[NewEvent, ...]:
    """Return an event for each part that is new in this node, moved to another slot, or is absent.

    Each names the node, the slot, and the part that was there before or is there now. A node's own event for each slot
    with a replaced part comes last. Nothing is replaced where nothing was known.
    """
    before = node.inventory
    old, new = _by_serial(before) if before else {}, _by_serial(found)
    blind = _unread(found)
    came = {serial: place for serial, place in new.items() if old.get(serial) != place}
    left = {serial: place for serial, place in old.items() if serial not in new and place.component not in blind}
    return (
        *(_event(PartSeen, node, serial, place, _at(left, place)) for serial, place in came.items()),
        *(_event(PartGone, node, serial, place, _at(came, place)) for serial, place in left.items()),
        *_replaced(node.id, left, came),
    )


def _replaced(node: NodeId, left: Mapping[Serial, _Place], came: Mapping[Serial, _Place]) -> Iterator[NewEvent]:
    for serial, place in left.items():
        payload = PartReplaced(component=place.component, slot=place.slot, old=serial, new=_at(came, place))
        yield node_event(node, payload)


def _event(payload: type[PartSeen | PartGone], node: NodeState, serial: Serial, place: _Place, other: str) -> NewEvent:
    where = payload(component=place.component, slot=place.slot, model=place.model, node=node.name, other=other)
    return NewEvent(Stream.PART, serial, where)


def _at(parts: Mapping[Serial, _Place], place: _Place) -> str:
    """Return the serial of the part in the same place; empty where none is known."""
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
    """Return the kinds of parts that are unknown or incomplete; empty lists too: a machine that is off lists none."""
    kinds = _kinds(inventory).items()
    return frozenset(name for name, parts in kinds if not parts or not inventory.complete(f"{name}s"))


def _by_serial(inventory: Inventory) -> dict[Serial, _Place]:
    """Return the parts by serial; two ports of one adapter are one part, in the place of the first."""
    found: dict[Serial, _Place] = {}
    for component, parts in _kinds(inventory).items():
        for part in parts or ():
            if part.serial:
                model = "" if isinstance(part, Psu) else part.model
                found.setdefault(part.serial, _Place(component, part.slot, model))
    return found
