"""What `configure --check` prints: grouped by task, so that a hundred hosts stay readable. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clusterctl.operations.drift import DriftReport, NodeDrift
from clusterctl_cli.formats import print_document
from clusterctl_cli.text import echo

NAMED = 8
"""So many nodes are named in one line."""


def drift_json(looks: Sequence[NodeDrift], passed: Mapping[str, str]) -> dict[str, Any]:
    """Return `{"nodes": [{"name", "state", "changes", "reboot_for", "cause"}], "tasks": [{"task", "nodes"}],
    "passed": {NODE: WHY}}`.

    `state`: clean, drifted or unmeasured. An unmeasured node may have changes too: those seen before.
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


def drift_text(looks: Sequence[NodeDrift], passed: Mapping[str, str]) -> str:
    return "\n".join(_lines(looks, passed))


def _lines(looks: Sequence[NodeDrift], passed: Mapping[str, str]) -> Iterator[str]:
    for task, names in _by_task(looks):
        yield f"{_nodes(names)}: {task} would change"
    yield from _reboots(looks)
    for why, names in _grouped((look.unmeasured, look.node) for look in looks if look.unmeasured):
        yield f"{_nodes(names)}: not measured: {why}"
    for why, names in _grouped((why, name) for name, why in passed.items()):
        yield f"{_nodes(names)}: not read: {why}"
    if looks:
        yield _counts(looks)
        yield "Nothing was changed."
    else:
        yield "no node was read; without --limit the gold pool is (clusterctl nodes -l stage=gold)"


def _reboots(looks: Sequence[NodeDrift]) -> Iterator[str]:
    for role, names in _grouped((role, look.node) for look in looks for role in look.reboot_for):
        yield f"{_nodes(names)}: {role} needs a reboot"


def _counts(looks: Sequence[NodeDrift]) -> str:
    clean = sum(look.clean for look in looks)
    blind = sum(bool(look.unmeasured) for look in looks)
    drifted = len(looks) - clean - blind
    of_all = f"{len(looks)} node{'s' * (len(looks) > 1)}"
    return f"{of_all} read: {clean} as the site has it, {drifted} drifted, {blind} not measured."


def _by_task(looks: Sequence[NodeDrift]) -> list[tuple[str, list[str]]]:
    """Return the nodes of each task, the task with most nodes first."""
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


def print_drift(report: DriftReport, *, as_json: bool) -> None:
    """Print what the roles would change."""
    if as_json:
        print_document(drift_json(report.nodes, report.skipped))
    else:
        echo(drift_text(report.nodes, report.skipped))
