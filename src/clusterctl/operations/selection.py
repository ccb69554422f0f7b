"""Which nodes an operation is about: names, shell patterns and selectors such as `stage=gold,rack=A01`."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage

if TYPE_CHECKING:
    from clusterctl.fleet.state import NodeSummary
    from clusterctl.operations.context import SiteContext

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


def selected_names(
    context: SiteContext, patterns: Sequence[str], selectors: Sequence[str], where: str = "NODE"
) -> tuple[str, ...]:
    """Return the names of the nodes that patterns and selectors choose; `patterns` as they are without selectors.

    Raises `UsageError` where no node meets the selectors.
    """
    if not selectors:
        return tuple(patterns)
    found = choose(context.nodes(), patterns, selectors, where)
    if not found:
        written = ",".join(selectors)
        raise UsageError(
            f"no node meets {written!r}", where="-l", remedy="clusterctl nodes -o wide lists what selectors compare"
        )
    return tuple(node.name for node in found)


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


def selected(context: SiteContext, patterns: Sequence[str]) -> list[str]:
    """Return the names of the nodes that NODE arguments select, in the fleet's order. Raises `UsageError` for none."""
    if not patterns:
        raise UsageError("no node is named", where="NODE", remedy="name nodes, or patterns like 'node00*'")
    known = [node.name for node in context.nodes()]
    wanted = matching(known, patterns, where="NODE")
    return [name for name in known if name in wanted]


def require_listed(context: SiteContext, names: Iterable[str]) -> None:
    """Raise `UsageError` for the first node that the site's sheet does not list: its BMC's address is unknown."""
    listed = {node.name for node in context.site.nodes}
    for name in names:
        if name not in listed:
            raise UsageError(
                "the sheet no longer names it",
                where=name,
                remedy="put it back into the sheet, so that its BMC can be asked",
            )
