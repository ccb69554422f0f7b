"""Which nodes a command is about: names, shell patterns and selectors such as `stage=gold,rack=A01`."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeSummary

SELECTOR_KEYS: Mapping[str, Callable[[NodeSummary], str]] = {
    "name": lambda node: node.name,
    "stage": lambda node: node.stage.value,
    "rack": lambda node: node.location.rack,
    "sku": lambda node: node.sku,
    "verdict": lambda node: node.verdict.value,
    "serial": lambda node: node.serial or "",
}
"""What selectors compare."""


def matching(names: Iterable[str], patterns: Sequence[str], where: str = "--limit") -> set[str]:
    """Return the names that match any pattern; all without patterns. Raises `UsageError` at `where` for a pattern
    without a match.
    """
    known = list(names)
    if not patterns:
        return set(known)
    found: set[str] = set()
    for pattern in patterns:
        hits = fnmatch.filter(known, pattern)
        if not hits:
            raise UsageError(f"no node matches {pattern!r}", where=where, remedy="clusterctl nodes lists their names")
        found.update(hits)
    return found


def choose(
    nodes: Sequence[NodeSummary], patterns: Sequence[str], selectors: Sequence[str], where: str = "NODE"
) -> list[NodeSummary]:
    """Return the nodes that match any of the patterns and all of the selectors, in their order; all without both.

    Retired nodes match selectors only where these name a stage, name or serial. Raises `UsageError` for a pattern
    without a match and for a wrong selector.
    """
    wanted = matching((node.name for node in nodes), patterns, where)
    terms = _terms(selectors)
    hidden = Stage.RETIRED if terms and not terms.keys() & {"stage", "name", "serial"} else None
    return [node for node in nodes if node.name in wanted and node.stage is not hidden and _meets(node, terms)]


def _terms(selectors: Sequence[str]) -> dict[str, list[tuple[bool, str]]]:
    """Return the terms of the selectors by key: (whether it must match, shell pattern)."""
    terms: dict[str, list[tuple[bool, str]]] = {}
    for text in (part.strip() for selector in selectors for part in selector.split(",")):
        key, equals, value = text.partition("=")
        wanted = not key.endswith("!")
        key = key.rstrip("!=").strip()
        if not equals or key not in SELECTOR_KEYS:
            remedy = f"write KEY=VALUE or KEY!=VALUE, with the keys {', '.join(SELECTOR_KEYS)}"
            raise UsageError(f"{text!r} is no selector", where="-l", remedy=remedy)
        value = value.removeprefix("=").strip()
        if key == "stage" and not fnmatch.filter([stage.value for stage in Stage], value):
            stages = ", ".join(stage.value for stage in Stage)
            raise UsageError(f"{value!r} is no stage", where="-l", remedy=f"the stages are {stages}")
        terms.setdefault(key, []).append((wanted, value))
    return terms


def _meets(node: NodeSummary, terms: Mapping[str, Sequence[tuple[bool, str]]]) -> bool:
    """Return whether each key has one of its values and none of its excluded ones."""
    for key, values in terms.items():
        actual = SELECTOR_KEYS[key](node)
        wanted = [pattern for positive, pattern in values if positive]
        if any(fnmatch.fnmatchcase(actual, pattern) for positive, pattern in values if not positive):
            return False
        if wanted and not any(fnmatch.fnmatchcase(actual, pattern) for pattern in wanted):
            return False
    return True
