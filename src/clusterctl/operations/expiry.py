"""Gold that is older than the site lets evidence become."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.context import SiteContext

SHOWN = 10


def expiry_of(context: SiteContext) -> timedelta | None:
    """How old a gold node's burn-in may become; None where the site does not say."""
    said = context.site.settings.nightly
    return timedelta(days=said.expiry_days) if said is not None else None


def expired_note(nodes: Iterable[NodeSummary], expiry: timedelta | None, now: datetime) -> str:
    """The gold nodes that were admitted longer ago than that, in one line; empty where there are none.

    Their burn-in is older still, by as much as it waited for the admission: the report counts from the burn-in itself,
    which is too much to read of thousands of nodes for a list.
    """
    if expiry is None:
        return ""
    names = [node.name for node in nodes if node.in_pool(now) and node.since is not None and now - node.since > expiry]
    if not names:
        return ""
    some = f"{', '.join(names[:SHOWN])}{' …' if len(names) > SHOWN else ''}"
    return f"expired: {len(names)} gold nodes were admitted more than {expiry.days} days ago: {some}"
