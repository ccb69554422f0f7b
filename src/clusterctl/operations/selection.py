"""Which nodes an operation is about: names and shell patterns."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from clusterctl.fleet.errors import UsageError

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext


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
