"""What is wrong with a fabric and no node's fault: cables between switches, whole switches. In the stream `fabric`."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.event import Data, Event, Kind

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
        """The same as in the findings of the nodes that it keeps back (`Finding.fault`)."""
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
