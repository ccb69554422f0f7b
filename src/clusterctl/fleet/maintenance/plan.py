"""The plan of a rolling change, and the waves that it makes of the nodes. Pure."""

from __future__ import annotations

import enum
import fnmatch
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from clusterctl.fleet.natural_order import natural_key

T = TypeVar("T")


class GroupedBy(enum.Enum):
    """What one wave consists of: racks, the plan's pods, a percentage of the nodes, or a number of nodes."""

    RACK = "rack"
    POD = "pod"
    PERCENT = "percent"
    NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is changed on each node.

    roles         of `configure.yml`, in addition to the site's
    variables     of roles, in place of the site's values
    settings      bring BIOS and firmware to the SKU's baseline
    nic_firmware  burn the adapters' firmware that the site names
    """

    roles: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)
    settings: bool = False
    nic_firmware: bool = False

    @property
    def by_roles(self) -> bool:
        return bool(self.roles or self.variables)

    def __str__(self) -> str:
        parts = [f"{name} = {value}" for name, value in self.variables.items()]
        parts += [f"role {name}" for name in self.roles]
        return ", ".join([*parts, *self.of_machines])

    @property
    def of_machines(self) -> tuple[str, ...]:
        """Return what is changed before the steps, under the plan's hold."""
        parts = (self.settings, "BIOS and firmware of the baseline"), (self.nic_firmware, "firmware of the adapters")
        return tuple(text for wanted, text in parts if wanted)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRule:
    """`canary`: nodes before the first wave. `size`: racks, pods, percent or nodes of one wave. `pods`: their racks."""

    canary: int = 2
    by: GroupedBy = GroupedBy.NODES
    size: int = 4
    pods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePlan:
    """A rolling change.

    nodes, select   names and patterns, and selectors as of `-l`; both empty: every gold node
    stop_percent    the next nodes begin while at most so many percent of those that ended have failed
    drain_minutes   so long the jobs of a node may take to end; then the node is skipped
    suite           of the burn-in; empty: the site's nightly suite, else its usual one
    back_variables  what a roll back sets; the site's values otherwise
    """

    name: str
    reason: str
    change: Change
    nodes: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    waves: WaveRule = WaveRule()
    stop_percent: int = 10
    drain_minutes: int = 240
    suite: str = ""
    back_variables: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanNode:
    """What of a node decides about its wave."""

    name: str
    rack: str = ""
    sku: str = ""


Waves = tuple[tuple[str, ...], ...]


def waves(rule: WaveRule, nodes: Sequence[PlanNode]) -> Waves:
    """Return the waves by node name: the canaries first, then groups of the others.

    The canaries are of one SKU as far as it has enough nodes: a burn-in measures a node with others of its SKU.
    """
    ordered = sorted(nodes, key=lambda node: natural_key(node.name))
    canaries = _canaries(rule.canary, ordered)
    others = [node for node in ordered if node not in canaries]
    first = (tuple(node.name for node in canaries),) if canaries else ()
    return first + tuple(tuple(node.name for node in wave) for wave in _groups(rule, others, len(ordered)))


def unplaced(rule: WaveRule, nodes: Sequence[PlanNode]) -> tuple[str, ...]:
    """Return the nodes that stand in no rack or in no pod where waves are made by these: all would be one wave."""
    if rule.by not in (GroupedBy.RACK, GroupedBy.POD):
        return ()
    return tuple(node.name for node in nodes if not _group_of(rule, node))


def wave_label(canary: int, number: int) -> str:
    """Return what the wave of this index is called: `canary`, `wave 1` …"""
    return "canary" if canary and number == 0 else f"wave {number + (0 if canary else 1)}"


def _canaries(count: int, nodes: Sequence[PlanNode]) -> list[PlanNode]:
    most = Counter(node.sku for node in nodes).most_common(1)
    if not most or not count:
        return []
    same = [node for node in nodes if node.sku == most[0][0]]
    return [*same, *(node for node in nodes if node not in same)][:count]


def _groups(rule: WaveRule, nodes: Sequence[PlanNode], total: int) -> Iterator[list[PlanNode]]:
    match rule.by:
        case GroupedBy.NODES:
            yield from _chunks(nodes, rule.size)
        case GroupedBy.PERCENT:
            yield from _chunks(nodes, max(1, total * rule.size // 100))
        case GroupedBy.RACK | GroupedBy.POD:
            groups: dict[str, list[PlanNode]] = {}
            for node in nodes:
                groups.setdefault(_group_of(rule, node), []).append(node)
            names = sorted(groups, key=natural_key)
            for chunk in _chunks(names, rule.size):
                yield [node for name in chunk for node in groups[name]]


def _group_of(rule: WaveRule, node: PlanNode) -> str:
    """Return the node's rack, or its pod; empty where it has none: `unplaced` names it."""
    if rule.by is GroupedBy.RACK:
        return node.rack
    for name, racks in rule.pods.items():
        if any(fnmatch.fnmatchcase(node.rack, pattern) for pattern in racks):
            return name
    return ""


def _chunks(items: Sequence[T], size: int) -> Iterator[list[T]]:
    for at in range(0, len(items), size):
        yield list(items[at : at + size])
