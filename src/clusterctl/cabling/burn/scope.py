"""Which links a burn is about: all of a fabric, those of some leaves, single ones, or those that some adapters load."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from clusterctl.cabling.burn.layout import layout_of
from clusterctl.cabling.burn.plan import BurnPlan, link_numbers
from clusterctl.cabling.burn.routes import DirectedLink, Routes
from clusterctl.cabling.burn.stages import choose_stages
from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.cabling.labels import shortened
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.topology import DeviceKind, Fabric, Link
from clusterctl.fleet.fabric.wiring import PortName, WiringPlan
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Guid


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnScope:
    """What an operator asked for.

    rails   whose adapters send and receive, by the hosts' own order of their adapters; none: all
    leaves  switches whose links are loaded, by name; none: all
    links   single links that are loaded, each by one of its ports; none: all
    named   the operator named the nodes
    """

    rails: frozenset[int] = frozenset()
    leaves: frozenset[str] = frozenset()
    links: frozenset[PortName] = frozenset()
    named: bool = False

    @property
    def whole(self) -> bool:
        """Return whether it is all of the fabric."""
        return not (self.rails or self.leaves or self.links or self.named)


def named_links(scope: BurnScope, fabric: Fabric, plan: WiringPlan) -> frozenset[DirectedLink] | None:
    """Return both directions of every link of the leaves, and of each named link that is up; None where the scope names
    neither.
    """
    if not (scope.leaves or scope.links):
        return None
    labels = fabric_labels(fabric, plan)
    switches = [guid for guid, device in fabric.devices.items() if device.kind is DeviceKind.SWITCH]
    at = {guid for guid in switches if labels.device(guid) in scope.leaves}
    single = (link for link in fabric.cables() if not scope.links.isdisjoint(map(labels.name, (link.a, link.b))))
    return frozenset(_directed(fabric, at)) | frozenset(end for link in single for end in _both(link))


def hosts_across(routes: Routes, wanted: frozenset[DirectedLink], free: Collection[str]) -> frozenset[str]:
    """Return free hosts between which packets cross the wanted links, by the live routes; as few as possible, twice.

    The second time without the hosts of the first: one of them may not answer, or may have work by then.
    """
    found: set[str] = set()
    for _ in range(2):
        left = tuple(end for end in routes.endpoints if end.host in free and end.host not in found)
        among = replace(routes, endpoints=left)
        stages = choose_stages(among, layout_of(among), wanted=link_numbers(routes, wanted)).stages if left else ()
        found |= {end.host for stage in stages for flow in stage.flows for end in (flow.source, flow.target)}
    return frozenset(found)


def links_within(fabric: Fabric, plan: BurnPlan, adapters: Collection[Guid]) -> frozenset[DirectedLink]:
    """Return the links that the burn is to prove, for a scope of rails or nodes: those of the adapters themselves, and
    those that packets between them cross. Links that are loaded already count.
    """
    unreached = plan.stages.unreached
    reached = (link for number, link in enumerate(plan.routes.links) if number not in unreached)
    return frozenset(reached) | frozenset(_directed(fabric, adapters))


def _directed(fabric: Fabric, devices: Collection[Guid]) -> Iterator[DirectedLink]:
    for link in fabric.cables():
        if link.a.guid in devices or link.b.guid in devices:
            yield from _both(link)


def _both(link: Link) -> Iterator[DirectedLink]:
    yield DirectedLink(link.a, link.b)
    yield DirectedLink(link.b, link.a)


def hosts_for(scope: BurnScope, plan: WiringPlan, free: Collection[str]) -> frozenset[str]:
    """Return which of the free hosts are needed: all, or those on the leaves and as many others to write to.

    Hosts with adapters on other leaves need no partners. Raises `UsageError` for a leaf that the wiring plan has not.
    """
    if not scope.leaves:
        return frozenset(free)
    switches = _switches_by_host(plan)
    known = frozenset[str]().union(*switches.values())
    if missing := sorted(scope.leaves - known, key=natural_key):
        leaves = shortened(sorted(known, key=natural_key)) or "none"
        raise UsageError(
            f"no host is on {missing[0]} in the site's wiring plan",
            where=f"--scope leaf:{missing[0]}",
            remedy=f"name one of the plan's leaves: {leaves}",
        )
    on_leaves = {host for host in free if scope.leaves & switches.get(host, set())}
    if any(switches[host] - scope.leaves for host in on_leaves):
        return frozenset(on_leaves)
    others = sorted(frozenset(free) - on_leaves, key=natural_key)
    return frozenset(on_leaves) | frozenset(others[: max(1, len(on_leaves))])


def _switches_by_host(plan: WiringPlan) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for cable in plan.cables:
        for near, far in ((cable.source, cable.destination), (cable.destination, cable.source)):
            if near.device in plan.hosts:
                found[near.device].add(far.device)
    return found
