"""What `configure --check` prints: grouped by task, so that a hundred hosts stay readable. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.ports import PlayOutcome

NAMED = 8
"""So many nodes are named in one line."""


@dataclass(frozen=True, slots=True)
class Look:
    """What check mode says of one node. `unmeasured`: why it says nothing that can be relied on; empty where it does.

    `changes`: the tasks that would change something, as far as it came; `reboot_for`: the roles that want a reboot.
    """

    node: str
    changes: tuple[str, ...] = ()
    reboot_for: tuple[str, ...] = ()
    unmeasured: str = ""

    @classmethod
    def of(cls, play: PlayOutcome) -> Look:
        why = ""
        if play.unreachable:
            why = f"not reached: {play.message}"
        elif not play.ok:
            why = f"task “{play.failed_task}” failed: {play.message}" if play.failed_task else play.message
        return cls(play.host, play.changes, play.reboot_for, why)

    @property
    def clean(self) -> bool:
        return not (self.changes or self.reboot_for or self.unmeasured)


def drift_json(looks: Sequence[Look], passed: Mapping[str, str]) -> dict[str, Any]:
    """`{"nodes": [{"name", "state": "clean" | "drifted" | "unmeasured", "changes", "reboot_for", "cause"}], "tasks":
    [{"task", "nodes"}], "passed": {NODE: WHY}}`. A node that is unmeasured may have changes too: those seen before.
    """
    nodes = [
        {
            "name": look.node,
            "state": "unmeasured" if look.unmeasured else "clean" if look.clean else "drifted",
            "changes": list(look.changes),
            "reboot_for": list(look.reboot_for),
            "cause": look.unmeasured,
        }
        for look in sorted(looks, key=lambda one: one.node)
    ]
    tasks = [{"task": task, "nodes": names} for task, names in _by_task(looks)]
    return {"nodes": nodes, "tasks": tasks, "passed": dict(passed)}


def drift_text(looks: Sequence[Look], passed: Mapping[str, str]) -> str:
    return "\n".join(_lines(looks, passed))


def _lines(looks: Sequence[Look], passed: Mapping[str, str]) -> Iterator[str]:
    for task, names in _by_task(looks):
        yield f"{_nodes(names)}: {task} would change"
    for role, names in _grouped((role, look.node) for look in looks for role in look.reboot_for):
        yield f"{_nodes(names)}: {role} wants a reboot"
    for why, names in _grouped((look.unmeasured, look.node) for look in looks if look.unmeasured):
        yield f"{_nodes(names)}: not measured: {why}"
    for why, names in _grouped((why, name) for name, why in passed.items()):
        yield f"{_nodes(names)}: not looked at: {why}"
    clean = sum(look.clean for look in looks)
    blind = sum(bool(look.unmeasured) for look in looks)
    if not looks:
        yield "no node was looked at; without --limit the gold pool is (clusterctl nodes --stage gold)"
        return
    drifted = len(looks) - clean - blind
    of_all = f"{len(looks)} node{'s' * (len(looks) > 1)}"
    yield f"{of_all} looked at: {clean} as the site has it, {drifted} drifted, {blind} not measured."
    yield "Nothing was changed."


def _by_task(looks: Sequence[Look]) -> list[tuple[str, list[str]]]:
    """Most nodes first."""
    found = _grouped((task, look.node) for look in looks for task in dict.fromkeys(look.changes))
    return sorted(found, key=lambda one: (-len(one[1]), one[0]))


def _grouped(pairs: Iterator[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for key, node in pairs:
        found.setdefault(key, []).append(node)
    return [(key, sorted(names)) for key, names in found.items()]


def _nodes(names: Sequence[str]) -> str:
    more = len(names) - NAMED
    listed = ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
    return f"{len(names)} node{'s' * (len(names) > 1)} ({listed})"
