"""A wiring plan compared with an observed fabric: the entry point, and the re-check after repairs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterctl.cabling.actions import Ends, carry_out
from clusterctl.cabling.difference import components
from clusterctl.cabling.explain.absence import AbsentGroup, absent_groups, cuts_off, explain_group, with_consequence
from clusterctl.cabling.explain.adapter_names import names_differ
from clusterctl.cabling.explain.devices import (
    duplicates,
    explain_unknown_devices,
    factory_names,
    misnamed,
    split_unknown,
    unknown_adapters,
)
from clusterctl.cabling.explain.enumeration import NameMap
from clusterctl.cabling.explain.explanation import CablingExplanation, FaultKind, chassis_of
from clusterctl.cabling.explain.link_rates import slow_links
from clusterctl.cabling.explain.misplaced import explain_components, rails_of
from clusterctl.cabling.explain.observation import CablingObservation, observe
from clusterctl.cabling.explain.twin_cages import join_cages
from clusterctl.cabling.explain.wrong_cables import wrong_cables
from clusterctl.cabling.labels import PlanLabels, plan_labels
from clusterctl.cabling.names import Hosts, ObservedCable
from clusterctl.fleet.fabric.telemetry import Transceiver
from clusterctl.fleet.fabric.topology import Fabric, PortId
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class HostLinks:
    """Links of a planned host: planned, right, and the rate of the slowest right one (Gb/s, None without any)."""

    planned: int
    right: int
    slowest_gbps: float | None


@dataclass(frozen=True, slots=True)
class CablingVerification:
    """`planned`, `observed` and `right` count cables.

    `explanations` are in order of racks; none if every planned cable is right, no other exists, and no link is slow.
    `names` are the names of cabled ports in them; `cables` the plugged cables by these names; `warnings` come from the
    tool that read the fabric, which may lack devices then.
    """

    planned: int
    observed: int
    right: int
    explanations: tuple[CablingExplanation, ...]
    hosts: Mapping[str, HostLinks]
    names: Mapping[PortId, PortName] = field(default_factory=dict)
    cables: frozenset[Ends] = frozenset()
    host_gbps: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def moves(self) -> int:
        """Number of physical actions of all explanations."""
        return sum(explanation.moves for explanation in self.explanations)

    @property
    def chassis(self) -> int:
        """Number of devices to visit for all physical actions."""
        return chassis_of(self.explanations)

    @property
    def as_planned(self) -> bool:
        """Whether all cables are right: at most names differ."""
        return all(explanation.kind is FaultKind.NAMES_DIFFER for explanation in self.explanations)

    @property
    def dark_hosts(self) -> frozenset[str]:
        """Planned hosts without any visible adapter: they may be off, or not installed yet."""
        return frozenset(self.hosts.keys() - {end.device for ends in self.cables for end in ends})


def verify(
    plan: WiringPlan,
    fabric: Fabric,
    hosts: Hosts | None = None,
    *,
    host_gbps: float | None = None,
    transceivers: Mapping[PortId, Transceiver] | None = None,
) -> CablingVerification:
    """Return the verification. `hosts` are GUIDs from an inventory; `host_gbps` is the required rate of host links;
    `transceivers` have the data of the cables' memories.
    """
    seen = observe(plan, fabric, hosts or {})
    labels = plan_labels(plan, fabric, seen.names)
    unproven = _unproven(seen.maps)
    right = [c for c in seen.difference.right if c.ends.isdisjoint(seen.assumed) and c.ends.isdisjoint(unproven)]
    factory = factory_names(seen, labels)
    found = (
        *names_differ(seen.maps, seen.respelled, factory, seen.guids),
        *misnamed(seen, labels, set(factory)),
        *duplicates(seen, labels),
        *unknown_adapters(seen, labels),
        *_absent_and_misplaced(seen, absent_groups(plan, seen.difference), labels),
        *slow_links(_between_planned(seen.cables, labels), labels, host_gbps, fabric),
        *wrong_cables(seen.difference.right, transceivers or {}, labels),
    )
    return CablingVerification(
        planned=len(plan.cables),
        observed=len(seen.cables),
        right=len(right),
        explanations=tuple(sorted(found, key=lambda e: (not e.rack, e.rack))),
        hosts=_host_links(plan, right),
        names=seen.names,
        cables=frozenset(cable.ends for cable in seen.cables),
        host_gbps=host_gbps,
        warnings=fabric.warnings,
    )


def _unproven(maps: Iterable[NameMap]) -> set[PortName]:
    """Return the ports whose names rest on a map that is not proven."""
    return {
        PortName(host, port)
        for found in maps
        if not found.proven
        for host in found.hosts
        for port in found.names.values()
    }


def _cause_of(group: AbsentGroup, misplaced: list[CablingExplanation]) -> int | None:
    """Return the index of the explanation that cuts the group off; None where there is none."""
    if group.boundary:
        return None
    return next((number for number, found in enumerate(misplaced) if cuts_off(found, group)), None)


def _absent_and_misplaced(
    seen: CablingObservation, groups: tuple[AbsentGroup, ...], labels: PlanLabels
) -> list[CablingExplanation]:
    """Return absent, unknown and misplaced parts; an absence that a misplaced cable causes becomes its consequence."""
    explained = {cable.ends for group in groups for cable in (*group.boundary, *group.inner)}
    unknown, rest = split_unknown(seen.difference, labels.devices)
    missing = [cable for cable in seen.difference.missing if cable.ends not in explained]
    rails = rails_of(labels.plan)
    visited = {device for group in groups for device in group.chassis(labels.plan)}
    alone = explain_components(components(missing, rest), labels, rails, visited)
    misplaced = join_cages(alone, {port.device for port in seen.difference.observed_ports}, labels)
    absent = []
    for group in groups:
        first = _cause_of(group, misplaced)
        if first is None:
            absent.append(explain_group(group, labels))
        else:
            misplaced[first] = with_consequence(misplaced[first], group, labels)
    return [*absent, *explain_unknown_devices(unknown, labels), *misplaced]


def _between_planned(cables: Iterable[ObservedCable], labels: PlanLabels) -> list[ObservedCable]:
    """Return the cables between planned devices: rates of misplaced cables count, those of unknown devices do not."""
    return [cable for cable in cables if all(end.device in labels.devices for end in cable.ends)]


def _host_links(plan: WiringPlan, right: Iterable[ObservedCable]) -> dict[str, HostLinks]:
    planned: dict[str, int] = dict.fromkeys(sorted(plan.hosts), 0)
    for cable in plan.cables:
        for end in (cable.source, cable.destination):
            if end.device in planned:
                planned[end.device] += 1
    rates: dict[str, list[float]] = defaultdict(list)
    for seen in right:
        for end in seen.ends:
            rates[end.device].append(seen.link.gbps)
    return {
        host: HostLinks(count, len(rates.get(host, ())), min(rates.get(host, ()), default=None))
        for host, count in planned.items()
    }


@dataclass(frozen=True, slots=True)
class Recheck:
    """`repaired` were found before only, `left` before and after, `new` after only; `undone` are cables that the repair
    should have produced.
    """

    repaired: tuple[CablingExplanation, ...]
    left: tuple[CablingExplanation, ...]
    new: tuple[CablingExplanation, ...]
    undone: tuple[Ends, ...]


def recheck(before: CablingVerification, after: CablingVerification) -> Recheck:
    """Compare two verifications of one plan. Findings are the same if kind, subjects and ports are."""
    known = Counter(map(_key, before.explanations))
    now = Counter(map(_key, after.explanations))
    expected = carry_out((step for e in before.explanations for step in e.steps), before.cables)
    return Recheck(
        repaired=tuple(e for e in before.explanations if _key(e) not in now),
        left=tuple(e for e in after.explanations if _key(e) in known),
        new=tuple(e for e in after.explanations if _key(e) not in known),
        undone=tuple(sorted(expected - after.cables, key=sorted)),
    )


def _key(explanation: CablingExplanation) -> tuple[object, ...]:
    return explanation.kind, explanation.subjects, explanation.ports
