"""A wiring plan against the nodes of a site: nodes without cables or adapters, and hosts that are no node."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from clusterctl.cabling.labels import shortened
from clusterctl.cabling.names import short
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.natural_order import natural_key


class GapKind(enum.Enum):
    """What of plan and nodes does not fit."""

    NO_CABLES = "no_cables"
    ADAPTER_COUNT = "adapter_count"
    NO_NODE = "no_node"


@dataclass(frozen=True, slots=True)
class WiringGap:
    """`hosts` are nodes, or hosts of the plan that are none."""

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
    planned: dict[str, set[str]] = defaultdict(set)
    spelled: dict[str, str] = {}
    for cable in plan.cables:
        for end in cable.ends:
            if end.device in plan.hosts:
                planned[short(end.device)].add(end.port.partition("/")[0])
                spelled[short(end.device)] = end.device
    nodes = {short(node): node for node in adapters}
    gaps = []
    bare = sorted((node for key, node in nodes.items() if adapters[node] != 0 and key not in planned), key=natural_key)
    if bare:
        message = (
            f"the wiring plan has no cable of {shortened(bare)}: {'they' if len(bare) > 1 else 'it'} cannot pass cable"
        )
        gaps.append(WiringGap(GapKind.NO_CABLES, tuple(bare), message))
    for key in sorted(nodes.keys() & planned.keys(), key=natural_key):
        node, found = nodes[key], len(planned[key])
        if adapters[node] and found != adapters[node]:
            names = ", ".join(sorted(planned[key], key=natural_key))
            message = f"{node}: its SKU has {adapters[node]} adapters, the wiring plan cables {found} ({names})"
            gaps.append(WiringGap(GapKind.ADAPTER_COUNT, (node,), message))
    strange = sorted((spelled[key] for key in planned.keys() - nodes.keys()), key=natural_key)
    if strange:
        message = f"hosts of the wiring plan that are no node of the site: {shortened(strange)}"
        gaps.append(WiringGap(GapKind.NO_NODE, tuple(strange), message))
    return tuple(gaps)
