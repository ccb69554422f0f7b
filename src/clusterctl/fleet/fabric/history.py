"""The history of a fabric's switches, adapters, links, transceivers and faults: the journal's stream `fabric`.

Only changes are written. Subjects: a device's GUID; a link's ends, `GUID/port-GUID/port`; a transceiver's serial; a
fault's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.fabric.telemetry import Telemetry, Transceiver
from clusterctl.fleet.fabric.topology import Fabric, Link, PortId
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.hardware import (
    FabricDeviceSeen,
    FabricFault,
    FabricFaultSeen,
    FabricLinkSeen,
    FabricSeen,
    FabricTransceiverSeen,
)
from clusterctl.fleet.plain_numbers import is_number

COUNTERS, LINKS = "counters", "links"
"""Subjects of the readings of counters, and of the judgements of links."""
Key = tuple[Kind, str]
"""Kind and subject."""
Known = Mapping[Key, FabricSeen]
"""What was last written of each subject."""


def known(events: Iterable[Event]) -> dict[Key, FabricSeen]:
    """Return the fold of the stream's events, in `seq` order (the last one of each subject is enough)."""
    return {(event.kind, event.subject): event.payload for event in events if isinstance(event.payload, FabricSeen)}


def known_modules(events: Iterable[Event]) -> dict[PortId, Transceiver]:
    """Return the cables and transceivers that the last reading of each saw, by port."""
    found: dict[PortId, Transceiver] = {}
    for event in events:
        match event.payload:
            case FabricTransceiverSeen(seen=True) as seen:
                module = Transceiver(seen.vendor, seen.part, event.subject, seen.firmware)
                found |= {port: module for port in map(port_named, seen.ports) if port is not None}
    return found


def port_named(text: str) -> PortId | None:
    """Return the port that `port_name` wrote; None for another text."""
    guid, _, number = text.partition("/")
    return PortId(Guid(guid), int(number)) if is_number(number) else None


def open_faults(events: Iterable[Event]) -> tuple[FabricFault, ...]:
    """Return the faults that the last reading saw, by rack. Of the events, the last of each subject is enough."""
    last = {event.subject: event.payload for event in events if isinstance(event.payload, FabricFaultSeen)}
    found = [payload.fault for payload in last.values() if payload.fault is not None]
    return tuple(sorted(found, key=lambda fault: (not fault.rack, fault.rack)))


@dataclass(frozen=True, slots=True)
class FabricReading:
    """One reading of the fabric. Nothing is concluded from a part that is None: transceivers and firmware need
    `telemetry`, faults need a comparison with a plan.
    """

    fabric: Fabric
    telemetry: Telemetry | None = None
    faults: tuple[FabricFault, ...] | None = None


def changes(before: Known, reading: FabricReading, evidence: tuple[Digest, ...] = ()) -> tuple[NewEvent, ...]:
    """Return the events for all that is new in this reading, has changed, or is gone."""
    now = _seen(reading, before)
    read = {kind for kind, _ in now}
    if reading.faults is not None:
        read.add(Kind.FABRIC_FAULT_SEEN)
    absent = [key for key in before if key[0] in read and key not in now]
    now |= {key: type(before[key])(seen=False) for key in absent if before[key].seen}
    return tuple(NewEvent(Stream.FABRIC, key[1], new, evidence) for key, new in now.items() if before.get(key) != new)


def _seen(reading: FabricReading, before: Known) -> dict[Key, FabricSeen]:
    """Return devices, links, transceivers and faults of a reading."""
    now: dict[Key, FabricSeen] = dict(_devices(reading.fabric, reading.telemetry, before))
    now |= {(Kind.FABRIC_LINK_SEEN, link_name(link)): _link(link) for link in reading.fabric.links}
    if reading.telemetry is not None:
        now |= _transceivers(reading.telemetry)
    now |= {(Kind.FABRIC_FAULT_SEEN, fault.subject): FabricFaultSeen(fault=fault) for fault in reading.faults or ()}
    return now


def link_name(link: Link) -> str:
    return f"{port_name(link.a)}-{port_name(link.b)}"


def port_name(port: PortId) -> str:
    return f"{port.guid}/{port.number}"


def _devices(fabric: Fabric, telemetry: Telemetry | None, before: Known) -> Iterator[tuple[Key, FabricDeviceSeen]]:
    """Yield the devices. Where this reading has no firmware of a device, the last one that was read stays."""
    for guid, device in fabric.devices.items():
        key = (Kind.FABRIC_DEVICE_SEEN, str(guid))
        firmware = telemetry.firmware.get(guid) if telemetry is not None else None
        if firmware is None:
            last = before.get(key)
            firmware = last.firmware if isinstance(last, FabricDeviceSeen) else ""
        yield (
            key,
            FabricDeviceSeen(device=device.kind.value, description=device.description, firmware=firmware),
        )


def _link(link: Link) -> FabricLinkSeen:
    return FabricLinkSeen(width=link.width, speed=link.speed)


def _transceivers(telemetry: Telemetry) -> dict[Key, FabricSeen]:
    """Return transceivers by serial, which both ends of a cable share; one without a serial has no history."""
    ports: dict[str, list[str]] = {}
    for port, found in sorted(telemetry.transceivers.items()):
        ports.setdefault(found.serial, []).append(port_name(port))
    return {
        (Kind.FABRIC_TRANSCEIVER_SEEN, found.serial): FabricTransceiverSeen(
            vendor=found.vendor, part=found.part, firmware=found.firmware, ports=tuple(ports[found.serial])
        )
        for found in telemetry.transceivers.values()
        if found.serial
    }
