"""What bad links have in common: a rack, a switch, a batch of cables, a firmware. One cause has one finding.

A group has at least `FEWEST` bad members, which are at least half of all that share the value, and are bad at least
`TIMES` as often as the rest of the fabric: a property that healthy links have as well explains nothing.
"""

from __future__ import annotations

import enum
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from clusterctl.cabling.health.counters import throughput_gbps
from clusterctl.cabling.health.findings import FabricLabels, HealthFinding
from clusterctl.cabling.health.symptoms import HealthKind, HealthWindow, is_hot, span, temperature
from clusterctl.cabling.labels import listed
from clusterctl.fleet.fabric.telemetry import Transceiver
from clusterctl.fleet.fabric.topology import DeviceKind, Link, PortId
from clusterctl.fleet.fabric.wiring import PortName
from clusterctl.fleet.finding import Verdict, worst

FEWEST = 3
TIMES = 4.0
_HALF = 0.5
_IDLE = 0.01
"""Share of a link's rate below which it carries no traffic worth naming."""


class Shared(enum.Enum):
    """What the members of a group share."""

    RACK = "rack"
    SWITCH = "switch"
    BATCH = "cable batch"
    FIRMWARE = "firmware"


Trait = tuple[Shared, str]
_HEAT = frozenset({HealthKind.OVERHEATED, HealthKind.WARMING})
_BY_PLACE = (Shared.RACK, Shared.SWITCH, Shared.BATCH, Shared.FIRMWARE)
_BY_PART = (Shared.BATCH, Shared.FIRMWARE, Shared.SWITCH, Shared.RACK)
"""Which of two properties with the same members is the likelier cause, for heat and for everything else."""
_GROUPED = frozenset(HealthKind) - {HealthKind.SWITCH_LOST, HealthKind.MIXED_FIRMWARE, HealthKind.UNMEASURED}
_WHAT: Mapping[HealthKind, str] = {
    HealthKind.LOST: "were up and are not any more",
    HealthKind.FLAPPING: "went down again and again",
    HealthKind.BIT_ERRORS: "have too many bit errors",
    HealthKind.PACKET_ERRORS: "damage packets",
    HealthKind.SLOW: "do not reach their rate",
    HealthKind.WENT_DOWN: "went down as one end counted",
    HealthKind.CONGESTED: "discard packets",
}
_ACTIONS: Mapping[tuple[bool, Shared], str] = {
    (
        True,
        Shared.RACK,
    ): "check airflow, blanking panels and intake temperature of rack {value} before any module",
    (True, Shared.SWITCH): "check the fans and the airflow of {value} before any module",
    (True, Shared.BATCH): "have the supplier check the batch {value}; put one of its modules into a cool cage first",
    (True, Shared.FIRMWARE): "update the modules with firmware {value}, one first, and measure again",
    (False, Shared.RACK): "check what these links share in rack {value}: power, patch panel, cable routing",
    (False, Shared.SWITCH): "check {value} (log, power, firmware) before its cables; then clean and reseat one of them",
    (False, Shared.BATCH): "replace one cable of the batch {value} by another batch; if that helps, return the batch",
    (False, Shared.FIRMWARE): "update the modules with firmware {value}, one first, and measure again",
}
_DATED_SERIAL = re.compile(r"(?P<batch>[A-Z]{2}\d{4})[A-Z]{2}\d+")
"""Serial with year and week in its head, as `MT2243VS01234` of NVIDIA."""


@dataclass(frozen=True, slots=True)
class HealthGroup:
    """Members of one kind that share `value`; `population`: how many share it in all.

    modules  the members are counted by module (heat), else by link
    """

    kind: HealthKind
    verdict: Verdict
    shared: Shared
    value: str
    count: int
    population: int
    modules: bool
    cause: str
    action: str
    rack: str
    members: tuple[HealthFinding, ...]


@dataclass(frozen=True, slots=True)
class _Item:
    """A module (heat) or a link, its traits, and the place of its finding; None where it has no such finding."""

    ends: tuple[PortId, ...]
    gbps: float
    traits: frozenset[Trait]
    finding: int | None


def group(
    findings: Sequence[HealthFinding], links: Sequence[Link], window: HealthWindow, places: FabricLabels
) -> tuple[HealthGroup, ...]:
    """Return the groups, the largest of each kind first. A finding is in one group at most.

    links  all links that were judged, lost ones too
    """
    traits = _Traits(window, places)
    found: list[HealthGroup] = []
    for kind in HealthKind:
        if kind in _GROUPED and sum(one.kind is kind for one in findings) >= FEWEST:
            found += _of_kind(kind, findings, links, traits)
    return tuple(found)


def ungrouped(findings: Sequence[HealthFinding], groups: Sequence[HealthGroup]) -> Iterator[HealthFinding]:
    """Yield the findings that are in no group."""
    grouped = {id(member) for one in groups for member in one.members}
    yield from (finding for finding in findings if id(finding) not in grouped)


def batch_of(part: Transceiver) -> str:
    """Return part number and dated head of the serial; empty where the serial has no date."""
    dated = _DATED_SERIAL.fullmatch(part.serial)
    return f"{part.part} {dated['batch']}".strip() if dated else ""


@dataclass(frozen=True, slots=True)
class _Traits:
    window: HealthWindow
    places: FabricLabels

    def of(self, *ends: PortId) -> frozenset[Trait]:
        """Return what these ports belong to."""
        return frozenset(trait for end in ends for trait in self._of_port(end))

    def _of_port(self, end: PortId) -> Iterator[Trait]:
        if rack := self.places.rack(end):
            yield Shared.RACK, rack
        device = self.places.fabric.devices.get(end.guid)
        if device is not None and device.kind is DeviceKind.SWITCH:
            yield Shared.SWITCH, self.places.device(end.guid)
        part = self.window.module(end)
        if part is None:
            return
        if batch := batch_of(part):
            yield Shared.BATCH, batch
        if part.firmware:
            yield Shared.FIRMWARE, f"{part.firmware} ({part.part})" if part.part else part.firmware

    def is_idle(self, item: _Item) -> bool | None:
        """Return whether the ports carried no traffic worth naming; None where that was not read."""
        rates = [throughput_gbps(self.window.growth(end), self.window.seconds) for end in item.ends]
        known = [rate for both in rates for rate in both if rate is not None]
        return None if len(known) < 2 * len(item.ends) else max(known) < _IDLE * item.gbps


@dataclass(frozen=True, slots=True)
class _Judged:
    """What the text of a group is made from; `also`: other properties that all members share."""

    findings: Sequence[HealthFinding]
    traits: _Traits
    also: Sequence[str]

    def what(self, kind: HealthKind, members: Sequence[_Item]) -> str:
        """Return what is wrong with the members, as the end of a sentence."""
        window = self.traits.window
        if kind not in _HEAT:
            return f"{_WHAT[kind]} in {span(window.seconds)}"
        limit = window.limits["temperature_max" if kind is HealthKind.OVERHEATED else "temperature_rise_max"]
        heat = f"are above {limit}" if kind is HealthKind.OVERHEATED else f"became more than {limit} hotter"
        idle = {self.traits.is_idle(item) for item in members}
        if len(idle) > 1 or None in idle:
            return heat
        return f"{heat} without traffic" if True in idle else f"{heat} under load"


def _of_kind(
    kind: HealthKind, findings: Sequence[HealthFinding], links: Sequence[Link], traits: _Traits
) -> Iterator[HealthGroup]:
    """Yield the groups of one kind: the property with the most members, then that of the members that are left."""
    heat = kind in _HEAT
    items = list((_modules if heat else _whole_links)(kind, findings, links, traits))
    order = _BY_PLACE if heat else _BY_PART
    population = Counter(trait for item in items for trait in item.traits)
    left = [item for item in items if item.finding is not None]
    likely = _likely(left, population, len(items))
    while enough := _enough(left, likely):
        best = min(enough, key=lambda trait: (-enough[trait], population[trait], order.index(trait[0]), trait[1]))
        members = [item for item in left if best in item.traits]
        also = _common(members, likely - {best})
        yield _group(kind, best, members, population[best], _Judged(findings, traits, also))
        taken = {item.finding for item in members}
        left = [item for item in left if item.finding not in taken]


def _common(members: Sequence[_Item], likely: Collection[Trait]) -> list[str]:
    """Return the likely properties that all members have, as text."""
    common = frozenset.intersection(*(item.traits for item in members))
    return sorted(f"{shared.value} {value}" for shared, value in common.intersection(likely))


def _likely(bad: Sequence[_Item], population: Mapping[Trait, int], items: int) -> set[Trait]:
    """Return the properties that explain more bad members than chance does."""
    counts = Counter(trait for item in bad for trait in item.traits)
    return {trait for trait, count in counts.items() if _explains(count, population[trait], len(bad), items)}


def _enough(items: Iterable[_Item], likely: Collection[Trait]) -> dict[Trait, int]:
    """Return how many of the items have each likely property, where they are enough for a group."""
    counts = Counter(trait for item in items for trait in item.traits if trait in likely)
    return {trait: count for trait, count in counts.items() if count >= FEWEST}


def _explains(bad: int, population: int, all_bad: int, everything: int) -> bool:
    """Return whether those that share a property are bad often, and much oftener than the others."""
    share, others = bad / population, everything - population
    if bad < FEWEST or share < _HALF or others == 0:
        return False
    return share >= TIMES * (all_bad - bad) / others


def _group(kind: HealthKind, best: Trait, members: Sequence[_Item], population: int, context: _Judged) -> HealthGroup:
    shared, value = best
    places = dict.fromkeys(item.finding for item in members if item.finding is not None)
    found = tuple(context.findings[place] for place in places)
    where = {Shared.RACK: f"in rack {value}", Shared.SWITCH: f"at {value}"}.get(shared) or f"of {shared.value} {value}"
    heat = kind in _HEAT
    cause = f"{len(members)} of {population} {'modules' if heat else 'links'} {where} {context.what(kind, members)}"
    if context.also:
        cause += f" (all of them share {listed(context.also)}, too)"
    return HealthGroup(
        kind=kind,
        verdict=worst(one.verdict for one in found),
        shared=shared,
        value=value,
        count=len(members),
        population=population,
        modules=heat,
        cause=cause,
        action=_ACTIONS[heat, shared].format(value=value),
        rack=value if shared is Shared.RACK else "",
        members=found,
    )


def _modules(
    kind: HealthKind, findings: Sequence[HealthFinding], links: Sequence[Link], traits: _Traits
) -> Iterator[_Item]:
    """Yield the modules with a temperature."""
    place = _by_ends(kind, findings)
    for link in links:
        finding = place.get(_names(link, traits.places))
        for end in (link.a, link.b):
            if temperature(traits.window.after, end) is not None:
                hot = finding is not None and is_hot(traits.window, end)
                yield _Item((end,), link.gbps, traits.of(end), finding if hot else None)


def _whole_links(
    kind: HealthKind, findings: Sequence[HealthFinding], links: Sequence[Link], traits: _Traits
) -> Iterator[_Item]:
    place = _by_ends(kind, findings)
    for link in links:
        finding = place.get(_names(link, traits.places))
        yield _Item((link.a, link.b), link.gbps, traits.of(link.a, link.b), finding)


def _by_ends(kind: HealthKind, findings: Sequence[HealthFinding]) -> dict[frozenset[PortName], int]:
    return {frozenset(one.ends): at for at, one in enumerate(findings) if one.kind is kind and len(one.ends) == 2}


def _names(link: Link, places: FabricLabels) -> frozenset[PortName]:
    return frozenset((places.name(link.a), places.name(link.b)))
