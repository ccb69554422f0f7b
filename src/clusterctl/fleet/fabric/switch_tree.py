"""The hosts of a fabric as nested groups, nearest first: what a scheduler needs to place a job close together."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchGroup:
    """Hosts that reach each other through the same switches.

    name      `unit3` at tier 0, `pod1` above, `fabric` where one group holds all hosts
    tier      0 for hosts on the same leaf switches, 1 for groups that meet in the next tier
    switches  the switches of this tier that join them
    hosts     of tier 0; empty above
    groups    names of the groups of the tier below; empty at tier 0
    """

    name: str
    tier: int
    switches: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()


def restricted(tree: Sequence[SwitchGroup], hosts: Collection[str]) -> tuple[SwitchGroup, ...]:
    """Return the tree with these hosts only, without groups that become empty. Names do not change."""
    kept: dict[str, SwitchGroup] = {}
    for group in sorted(tree, key=lambda one: one.tier):
        left = replace(
            group,
            hosts=tuple(host for host in group.hosts if host in hosts),
            groups=tuple(name for name in group.groups if name in kept),
        )
        if left.hosts or left.groups:
            kept[group.name] = left
    return tuple(kept[group.name] for group in tree if group.name in kept)
