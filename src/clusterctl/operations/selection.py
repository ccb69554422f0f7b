"""The nodes that an operator names, looked up in the site and its journal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterctl.fleet.errors import UsageError, no_bmc
from clusterctl.fleet.selectors import choose, matching
from clusterctl.operations.context import SiteContext


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


def selected(context: SiteContext, patterns: Sequence[str]) -> list[str]:
    """Return the names of the nodes that NODE arguments select, in the fleet's order. Raises `UsageError` for none."""
    if not patterns:
        raise UsageError("no node is named", where="NODE", remedy="name nodes, or patterns like 'node00*'")
    known = context.names()
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


def require_bmcs(context: SiteContext, names: Iterable[str]) -> None:
    """Raise `UsageError` for the first node to which the site gives no BMC: it can be neither asked nor switched."""
    given = {node.name for node in context.site.with_bmc}
    for name in names:
        if name not in given:
            raise no_bmc(name)
