"""A wiring plan against the nodes of a site: nodes without cables or adapters, and hosts that are no node."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from clusterctl.cabling.labels import shortened
from clusterctl.cabling.names import short
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.natural_order import natural_key


class GapKind(enum.Enum):
    """How plan and nodes differ."""

    NO_CABLES = "no_cables"
    ADAPTER_COUNT = "adapter_count"
    NO_NODE = "no_node"


@dataclass(frozen=True, slots=True)
class WiringGap:
    """`hosts` are nodes, or hosts of the plan that are not nodes."""

    kind: GapKind
    hosts: tuple[str, ...]
    message: str

    @property
    def stops(self) -> bool:
        """Whether the step cable cannot pass these nodes; hosts that are no node may be storage."""
        return self.kind is not GapKind.NO_NODE


def wiring_gaps(plan: WiringPlan, adapters: Mapping[str, int | None]) -> tuple[WiringGap, ...]:
    """Return the gaps. `adapters`: number of adapters that its SKU gives each node; None where the SKU is unknown.

    Names are compared without case and domain, as `cable verify` does.
    """
    planned, spelled = _planned(plan)
    nodes = {short(node): node for node in adapters}
    return (
        *no_cables([node for key, node in nodes.items() if adapters[node] != 0 and key not in planned]),
        *_adapter_counts({node: planned[key] for key, node in nodes.items() if key in planned}, adapters),
        *_no_nodes([spelled[key] for key in planned.keys() - nodes.keys()]),
    )


def _planned(plan: WiringPlan) -> tuple[dict[str, set[str]], dict[str, str]]:
    """Return the adapters that the plan gives each host, and the plan's spelling of each host, by short name."""
    planned: dict[str, set[str]] = defaultdict(set)
    spelled: dict[str, str] = {}
    for cable in plan.cables:
        for end in (cable.source, cable.destination):
            if end.device in plan.hosts:
                planned[short(end.device)].add(end.port.partition("/")[0])
                spelled[short(end.device)] = end.device
    return planned, spelled


def no_cables(nodes: Iterable[str], what: str = "the wiring plan has no cable") -> tuple[WiringGap, ...]:
    """Return the gap of these nodes; none where there are none."""
    hosts = tuple(sorted(nodes, key=natural_key))
    if not hosts:
        return ()
    they = "they" if len(hosts) > 1 else "it"
    message = f"{what} of {shortened(hosts)}: {they} cannot pass cable"
    return (WiringGap(GapKind.NO_CABLES, hosts, message),)


def _adapter_counts(planned: Mapping[str, set[str]], adapters: Mapping[str, int | None]) -> Iterator[WiringGap]:
    """Yield the nodes for which the plan has another number of adapters than their SKU."""
    for node in sorted(planned, key=natural_key):
        found = len(planned[node])
        if adapters[node] and found != adapters[node]:
            names = ", ".join(sorted(planned[node], key=natural_key))
            message = f"{node}: its SKU has {adapters[node]} adapters, the wiring plan cables {found} ({names})"
            yield WiringGap(GapKind.ADAPTER_COUNT, (node,), message)


def _no_nodes(hosts: list[str]) -> Iterator[WiringGap]:
    hosts.sort(key=natural_key)
    if hosts:
        message = f"hosts of the wiring plan that are no node of the site: {shortened(hosts)}"
        yield WiringGap(GapKind.NO_NODE, tuple(hosts), message)
