"""A wiring plan against an observed fabric: the one call that the rest of the house makes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clusterctl.cabling.absence import AbsentGroup, absent_groups
from clusterctl.cabling.actions import Ends
from clusterctl.cabling.components import components
from clusterctl.cabling.explain import Explanation
from clusterctl.cabling.explain_absence import cuts_off, explain_group, with_consequence
from clusterctl.cabling.explain_cages import join_cages
from clusterctl.cabling.explain_moves import explain_component
from clusterctl.cabling.explain_names import duplicates, misnamed, unknown_adapters
from clusterctl.cabling.explain_strangers import explain_strangers, strangers_apart
from clusterctl.cabling.names import Hosts, ObservedCable
from clusterctl.cabling.rails import rails_of
from clusterctl.cabling.rates import slow_links
from clusterctl.cabling.sighting import Sighting, sight
from clusterctl.cabling.wording import Words, words_for
from clusterctl.fleet.fabric import Fabric, PortId
from clusterctl.fleet.wiring import PortName, WiringPlan


@dataclass(frozen=True, slots=True)
class HostLinks:
    """Of one planned host: links planned, seen where they belong, and the slowest of those (Gb/s, None without any)."""

    planned: int
    right: int
    slowest_gbps: float | None


@dataclass(frozen=True, slots=True)
class Verification:
    """`planned`, `observed` and `right` count cables; `explanations` is empty only where every planned one is right,
    nothing else is there, and no link is slow. They are in order of racks; `names` are the cabled ports' names as
    they use them, and `cables` what is plugged in, by these names.
    """

    planned: int
    observed: int
    right: int
    explanations: tuple[Explanation, ...]
    hosts: Mapping[str, HostLinks]
    names: Mapping[PortId, PortName] = field(default_factory=dict)
    cables: frozenset[Ends] = frozenset()
    host_gbps: float | None = None

    @property
    def moves(self) -> int:
        """The physical actions of all explanations."""
        return sum(explanation.moves for explanation in self.explanations)

    @property
    def dark_hosts(self) -> frozenset[str]:
        """Planned hosts that show none of their adapters: they may be off, or not installed yet."""
        return frozenset(self.hosts.keys() - {end.device for ends in self.cables for end in ends})


def verify(
    plan: WiringPlan, fabric: Fabric, hosts: Hosts | None = None, *, host_gbps: float | None = None
) -> Verification:
    """`hosts` are GUIDs known from elsewhere; `host_gbps` the rate that a host's link must have.

    Without `host_gbps` a link is slow when most links of its class (host, or switch to switch) are faster.
    """
    seen = sight(plan, fabric, hosts or {})
    words = words_for(plan, fabric, seen.names)
    right = [cable for cable in seen.difference.right if cable.ends.isdisjoint(seen.assumed)]
    found = (
        *misnamed(seen, words),
        *duplicates(seen, words),
        *unknown_adapters(seen, words),
        *_absent_and_misplaced(seen, absent_groups(plan, seen.difference), words),
        *slow_links(_between_planned(seen.cables, words), words, host_gbps),
    )
    return Verification(
        planned=len(plan.cables),
        observed=len(seen.cables),
        right=len(right),
        explanations=tuple(sorted(found, key=lambda e: (not e.rack, e.rack))),
        hosts=_host_links(plan, right),
        names=seen.names,
        cables=frozenset(cable.ends for cable in seen.cables),
        host_gbps=host_gbps,
    )


def _absent_and_misplaced(seen: Sighting, groups: tuple[AbsentGroup, ...], words: Words) -> list[Explanation]:
    """What is absent, strange or misplaced; an absence that a misplaced cable explains is told as its consequence."""
    explained = {cable.ends for group in groups for cable in (*group.boundary, *group.inner)}
    strangers, rest = strangers_apart(seen.difference, words.devices)
    missing = [cable for cable in seen.difference.missing if cable.ends not in explained]
    rails = rails_of(words.plan)
    alone = (explain_component(component, words, rails) for component in components(missing, rest))
    misplaced = join_cages(alone, {port.device for port in seen.difference.observed_ports}, words)
    absent = []
    for group in groups:
        first = next((n for n, e in enumerate(misplaced) if cuts_off(e, group)), None) if not group.boundary else None
        if first is None:
            absent.append(explain_group(group, words))
        else:
            misplaced[first] = with_consequence(misplaced[first], group, words)
    return [*absent, *explain_strangers(strangers, words), *misplaced]


def _between_planned(cables: Iterable[ObservedCable], words: Words) -> list[ObservedCable]:
    """A misplaced cable's rate counts as well; a stranger's does not."""
    return [cable for cable in cables if all(end.device in words.devices for end in cable.ends)]


def _host_links(plan: WiringPlan, right: Iterable[ObservedCable]) -> dict[str, HostLinks]:
    planned: dict[str, int] = dict.fromkeys(sorted(plan.hosts), 0)
    for cable in plan.cables:
        for end in cable.ends:
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
