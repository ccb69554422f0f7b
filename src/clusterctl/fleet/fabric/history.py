"""What is wrong with a fabric and no node's fault: cables between switches, whole switches. In the stream `fabric`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.fleet.event import Data, Event, Kind, NewEvent
from clusterctl.fleet.fabric.telemetry import Telemetry
from clusterctl.fleet.fabric.topology import Fabric, Link, PortId
from clusterctl.fleet.finding import Digest

_HEX_DIGITS = 16


@dataclass(frozen=True, slots=True)
class FabricFault:
    """As `cable verify` explains it: `subjects` are the devices or ports that it is about, `nodes` the hosts that it
    keeps back (none, where only switches are at its ends), `links` how many it explains, `rack` where the work is.
    """

    kind: str
    subjects: tuple[str, ...]
    cause: str
    action: str
    rack: str
    links: int
    nodes: tuple[str, ...] = ()

    @property
    def subject(self) -> str:
        """The same for the same thing in every reading, and short however much it is about."""
        return f"{self.kind}/{hashlib.sha256(self.fault.encode()).hexdigest()[:_HEX_DIGITS]}"

    @property
    def fault(self) -> str:
        """Return the identity that findings of nodes carry as `Finding.fault` for the same fault."""
        return "\n".join((self.kind, *self.subjects))

    @property
    def data(self) -> Data:
        return {
            "seen": True,
            "kind": self.kind,
            "subjects": list(self.subjects),
            "cause": self.cause,
            "action": self.action,
            "rack": self.rack,
            "links": self.links,
            "nodes": list(self.nodes),
        }


def standing_faults(events: Iterable[Event]) -> tuple[FabricFault, ...]:
    """The fold of the stream's events, in `seq` order (the last of each subject will do): those seen last, by rack."""
    last = {event.subject: event.data for event in events if event.kind is Kind.FABRIC_FAULT_SEEN}
    found = [_fault(data) for data in last.values() if data["seen"]]
    return tuple(sorted(found, key=lambda fault: (not fault.rack, fault.rack)))


def _fault(data: Data) -> FabricFault:
    return FabricFault(
        kind=data["kind"],
        subjects=tuple(data["subjects"]),
        cause=data["cause"],
        action=data["action"],
        rack=data["rack"],
        links=data["links"],
        nodes=tuple(data["nodes"]),
    )


STREAM = "fabric"
GONE: Data = {"seen": False}
_KINDS = (Kind.FABRIC_DEVICE_SEEN, Kind.FABRIC_LINK_SEEN, Kind.FABRIC_TRANSCEIVER_SEEN, Kind.FABRIC_FAULT_SEEN)
Known = Mapping[tuple[Kind, str], Data]
"""What was last written of each subject."""


def known(events: Iterable[Event]) -> dict[tuple[Kind, str], Data]:
    """The fold of the stream's events, in `seq` order (the last one of each subject will do)."""
    return {(event.kind, event.subject): event.data for event in events if event.kind in _KINDS}


@dataclass(frozen=True, slots=True)
class Look:
    """One reading of the fabric. What is None it does not tell, and nothing is said of that: transceivers and firmware
    without `telemetry`, faults where it was not held against a plan.
    """

    fabric: Fabric
    telemetry: Telemetry | None = None
    faults: tuple[FabricFault, ...] | None = None


def changes(before: Known, look: Look, evidence: tuple[Digest, ...] = ()) -> tuple[NewEvent, ...]:
    """What is new in this reading, or gone."""
    telemetry = look.telemetry
    now: dict[tuple[Kind, str], Data] = dict(_devices(look.fabric, telemetry, before))
    now |= {(Kind.FABRIC_LINK_SEEN, link_name(link)): _link(link) for link in look.fabric.links}
    if telemetry is not None and telemetry.transceivers:
        now |= _transceivers(telemetry)
    now |= {(Kind.FABRIC_FAULT_SEEN, fault.subject): fault.data for fault in look.faults or ()}
    told = {kind for kind, _ in now} | ({Kind.FABRIC_FAULT_SEEN} if look.faults is not None else set())
    gone = {key: GONE for key, data in before.items() if key[0] in told and key not in now and data != GONE}
    news = [(key, data) for key, data in (*now.items(), *gone.items()) if before.get(key) != data]
    return tuple(NewEvent(STREAM, subject, kind, data, evidence) for (kind, subject), data in news)


def link_name(link: Link) -> str:
    return f"{port_name(link.a)}-{port_name(link.b)}"


def port_name(port: PortId) -> str:
    return f"{port.guid}/{port.number}"


def _devices(
    fabric: Fabric, telemetry: Telemetry | None, before: Known
) -> Iterator[tuple[tuple[Kind, str], dict[str, object]]]:
    """A firmware that this reading does not tell is still the one that was told last."""
    for guid, device in fabric.devices.items():
        key = (Kind.FABRIC_DEVICE_SEEN, str(guid))
        firmware = telemetry.firmware.get(guid) if telemetry is not None else None
        if firmware is None:
            firmware = before.get(key, {}).get("firmware", "")
        data = {"seen": True, "kind": device.kind.value, "description": device.description, "firmware": firmware}
        yield key, data


def _link(link: Link) -> Data:
    return {"seen": True, "width": link.width, "speed": link.speed}


def _transceivers(telemetry: Telemetry) -> dict[tuple[Kind, str], Data]:
    """By serial, which both ends of a cable share; what has no serial has no history."""
    ports: dict[str, list[str]] = {}
    for port, found in sorted(telemetry.transceivers.items()):
        ports.setdefault(found.serial, []).append(port_name(port))
    return {
        (Kind.FABRIC_TRANSCEIVER_SEEN, found.serial): {
            "seen": True,
            "vendor": found.vendor,
            "part": found.part,
            "firmware": found.firmware,
            "ports": ports[found.serial],
        }
        for found in telemetry.transceivers.values()
        if found.serial
    }
