"""Findings about the health of links, in a technician's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from clusterctl.cabling.health.counters import throughput_gbps
from clusterctl.cabling.health.symptoms import HealthKind, Window, errors_added
from clusterctl.cabling.labels import Words, words_for
from clusterctl.cabling.names import name_ports
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid

_CLEAN = "clean and reseat both ends of the cable to {other} and measure again; if it stays, replace the cable"
ACTIONS: Mapping[HealthKind, str] = {
    HealthKind.LOST: "check the cable to {other}, then the power of both devices",
    HealthKind.OVERHEATED: "check fans, blanking panels and the transceiver's seat (far end: {other}); then replace it",
    HealthKind.FLAPPING: _CLEAN + ", then the transceivers, then the adapter",
    HealthKind.BIT_ERRORS: _CLEAN,
    HealthKind.PACKET_ERRORS: _CLEAN,
    HealthKind.WARMING: "check fans and blanking panels; under a steady load replace it (far end: {other})",
    HealthKind.WENT_DOWN: "ask whether {other} was restarted or unplugged; if not, reseat both ends and measure again",
    HealthKind.CONGESTED: "look behind {other} for what takes no packets (a slow host, a lost uplink), not for a cable",
}
"""By what is wrong; `{other}` is the far end."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """`cause` is one sentence, `action` one line; `ends` are the ports of the links that it is about, two by two (none
    where they are very many); `devices` what is the cause as a whole; `rack` where the work is, empty where nobody
    tells; `links` how many; `counters` what was added to error counters, by port.
    """

    kind: HealthKind
    verdict: Verdict
    cause: str
    action: str
    ends: tuple[PortName, ...] = ()
    devices: tuple[str, ...] = ()
    rack: str = ""
    links: int = 1
    counters: tuple[tuple[PortName, str, int], ...] = ()

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.devices or tuple(map(str, self.ends))


@dataclass(frozen=True, slots=True)
class Places:
    """Names, labels and racks of ports: from the plan where it knows them, else from what the devices say."""

    names: Mapping[PortId, PortName]
    first: Mapping[Guid, PortName]
    """One port of each device, for its name."""
    words: Words
    fabric: Fabric

    def name(self, port: PortId) -> PortName:
        known = self.names.get(port)
        if known is not None:
            return known
        return PortName(self.device(port.guid), str(port.number))

    def plain(self, port: PortId) -> str:
        return str(self.name(port))

    def port(self, port: PortId) -> str:
        """With the cage's label, where it has one."""
        return self.words.port(self.name(port))

    def at(self, port: PortId) -> str:
        return self.words.at(self.name(port).device)

    def device(self, guid: Guid) -> str:
        """A switch, or an adapter with its host."""
        known, found = self.first.get(guid), self.fabric.devices.get(guid)
        if known is not None:
            return known.device if self._is_switch(guid) else str(known)
        return found.description if found is not None and found.description else f"GUID {guid}"

    def box(self, guid: Guid) -> str:
        """What has a place of its own: a switch, or an adapter's host."""
        known = self.first.get(guid)
        return known.device if known is not None else self.device(guid)

    def ordered(self, link: Link) -> tuple[PortId, PortId]:
        """The host's end first, else by name: work begins at the first."""
        first, second = sorted((link.a, link.b), key=lambda end: (self._is_switch(end.guid), self.name(end)))
        return first, second

    def rack(self, *ports: PortId) -> str:
        return self.words.rack(*(self.name(port).device for port in ports))

    def _is_switch(self, guid: Guid) -> bool:
        found = self.fabric.devices.get(guid)
        return found is not None and found.kind is DeviceKind.SWITCH


def places_in(fabric: Fabric, plan: WiringPlan | None = None) -> Places:
    """`plan` gives racks, cages, and names where devices do not tell them well."""
    known = plan or WiringPlan((), frozenset())
    names = name_ports(fabric, known, {}).ports
    first = {port.guid: names[port] for port in sorted(names, reverse=True)}
    return Places(names, first, words_for(known, fabric, names), fabric)


@dataclass(frozen=True, slots=True)
class PortRate:
    """Mean rates over the interval, None where they were not read twice; `errors` per second, those that grew.

    `gbps` is what the link could carry in each direction.
    """

    port: PortName
    gbps: float
    sent_gbps: float | None
    received_gbps: float | None
    errors: Mapping[str, float]


def port_rates(fabric: Fabric, window: Window, places: Places) -> Iterator[PortRate]:
    """Of both ends of every cable."""
    for link in fabric.cables():
        for port in places.ordered(link):
            sent, received = throughput_gbps(window.growth(port), window.seconds)
            errors = {name: count / window.seconds for name, count in errors_added(window, port)}
            yield PortRate(places.name(port), link.gbps, sent, received, errors)
