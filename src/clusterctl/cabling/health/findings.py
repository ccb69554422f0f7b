"""Findings about link health, the labels of ports and devices in them, and the rates of ports.

A counter at its maximum grows no more, and proves no link healthy: links that were bad before stay bad with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.cabling.health.counters import Doubt, throughput_gbps
from clusterctl.cabling.health.symptoms import JUDGED, HealthKind, HealthWindow, Symptom, errors_added
from clusterctl.cabling.labels import PlanLabels, plan_labels
from clusterctl.cabling.names import name_ports
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, Link, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.hardware import BadLinks

_CLEAN = "clean and reseat both ends of the cable to {other} and measure again; if it stays, replace the cable"
ACTIONS: Mapping[HealthKind, str] = {
    HealthKind.LOST: "check the cable to {other}, then the power of both devices",
    HealthKind.OVERHEATED: "check fans, blanking panels and the transceiver's seat (far end: {other}); then replace it",
    HealthKind.FLAPPING: _CLEAN + ", then the transceivers, then the adapter",
    HealthKind.BIT_ERRORS: _CLEAN,
    HealthKind.PACKET_ERRORS: _CLEAN,
    HealthKind.SLOW: _CLEAN + ", then the transceivers; if many links of one host are slow, check its adapters",
    HealthKind.WARMING: "check fans and blanking panels; under a steady load replace it (far end: {other})",
    HealthKind.WENT_DOWN: "check if {other} was restarted or unplugged; if not, reseat both ends and measure again",
    HealthKind.CONGESTED: "find what accepts no packets behind {other} (a slow host, a lost uplink); it is no cable",
}
"""The action for each kind; `{other}` is the far end."""


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """One finding: `cause` is one sentence, `action` one line.

    ends      ports of the links concerned, in pairs; none where there are very many
    devices   devices that are the cause as a whole
    rack      place of the work; empty where unknown
    links     number of links
    counters  growth of error counters, by port
    modules   part number and serial of the cable end or transceiver, by port, where known
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
    modules: tuple[tuple[PortName, str, str], ...] = ()

    @property
    def subjects(self) -> tuple[str, ...]:
        """The names of the devices, else of the ports."""
        return self.devices or tuple(map(str, self.ends))


@dataclass(frozen=True, slots=True)
class FabricLabels:
    """Names, labels and racks of ports: from the plan where it has them, else from node descriptions."""

    names: Mapping[PortId, PortName]
    first: Mapping[Guid, PortName]
    """One port of each device, which gives its name."""
    labels: PlanLabels
    fabric: Fabric

    def name(self, port: PortId) -> PortName:
        """Return a port's name."""
        known = self.names.get(port)
        if known is not None:
            return known
        return PortName(self.device(port.guid), str(port.number))

    def plain(self, port: PortId) -> str:
        """Return a port's name as text, without its cage."""
        return str(self.name(port))

    def port(self, port: PortId) -> str:
        """Return a port's name with the label of its cage, where it has one."""
        return self.labels.port(self.name(port))

    def at(self, port: PortId) -> str:
        """Return the place of a port's device as a prefix."""
        return self.labels.at(self.name(port).device)

    def device(self, guid: Guid) -> str:
        """Return the name of a switch, or of an adapter with its host."""
        known, found = self.first.get(guid), self.fabric.devices.get(guid)
        if known is not None:
            return known.device if self._is_switch(guid) else str(known)
        return found.description if found is not None and found.description else f"GUID {guid}"

    def box(self, guid: Guid) -> str:
        """Return the name of the switch, or of the adapter's host."""
        known = self.first.get(guid)
        return known.device if known is not None else self.device(guid)

    def ordered(self, link: Link) -> tuple[PortId, PortId]:
        """Return both ends, the host's first, else by name: work begins at the first."""
        first, second = sorted((link.a, link.b), key=lambda end: (self._is_switch(end.guid), self.name(end)))
        return first, second

    def rack(self, *ports: PortId) -> str:
        """Return the rack of the first port with a known rack."""
        return self.labels.rack(*(self.name(port).device for port in ports))

    def _is_switch(self, guid: Guid) -> bool:
        found = self.fabric.devices.get(guid)
        return found is not None and found.kind is DeviceKind.SWITCH


def fabric_labels(fabric: Fabric, plan: WiringPlan | None = None) -> FabricLabels:
    """Return the labels. `plan` adds racks, cages, and names for devices with poor node descriptions."""
    known = plan or WiringPlan((), frozenset())
    names = name_ports(fabric, known, {}).ports
    first = {port.guid: names[port] for port in sorted(names, reverse=True)}
    return FabricLabels(names, first, plan_labels(known, fabric, names), fabric)


_BY_COUNTERS = {kind.value: kind for kind in (HealthKind.FLAPPING, HealthKind.BIT_ERRORS, HealthKind.PACKET_ERRORS)}


def still_bad(
    before: Iterable[BadLinks], window: HealthWindow, links: Iterable[Link], places: FabricLabels
) -> Mapping[frozenset[PortId], tuple[Symptom, ...]]:
    """Return further symptoms of links that were bad before and have a full error counter now, by both ends.

    before  the last judgement. A full counter alone proves nothing: it may be years old.
    """
    bad = [(_BY_COUNTERS[one.kind], set(one.ends)) for one in before if _failed(one)]
    found: dict[frozenset[PortId], tuple[Symptom, ...]] = {}
    for link in links if bad else ():
        names = {places.plain(link.a), places.plain(link.b)}
        kind = next((kind for kind, ends in bad if names <= ends), None)
        if kind is not None and (symptoms := tuple(_full(kind, window, link, places))):
            found[frozenset((link.a, link.b))] = symptoms
    return found


def _failed(one: BadLinks) -> bool:
    return one.verdict == Verdict.FAIL.value and one.kind in _BY_COUNTERS


def _full(kind: HealthKind, window: HealthWindow, link: Link, places: FabricLabels) -> Iterator[Symptom]:
    for port in (link.a, link.b):
        doubts = window.growth(port).doubts
        for counter in JUDGED:
            if doubts.get(counter) is Doubt.STOPPED:
                where = f"{counter} at {places.plain(port)}"
                text = f"{where} is full since the link was found bad: clear it after the repair"
                yield Symptom(kind, Verdict.FAIL, text, frozenset({counter}))


@dataclass(frozen=True, slots=True)
class PortRate:
    """Mean rates of a port over the interval, None where it was not read twice; `errors` per second by counter.

    `gbps` is the nominal rate of the link in each direction.
    """

    port: PortName
    gbps: float
    sent_gbps: float | None
    received_gbps: float | None
    errors: Mapping[str, float]


def port_rates(fabric: Fabric, window: HealthWindow, places: FabricLabels) -> Iterator[PortRate]:
    """Yield the rates of both ends of every cable."""
    for link in fabric.cables():
        for port in places.ordered(link):
            sent, received = throughput_gbps(window.growth(port), window.seconds)
            errors = {name: count / window.seconds for name, count in errors_added(window, port)}
            yield PortRate(places.name(port), link.gbps, sent, received, errors)
