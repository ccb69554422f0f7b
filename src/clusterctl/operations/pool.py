"""The gold pool: its nodes, and where they are published."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.operations.context import SiteContext
from clusterctl.ports import Pool


def spares(context: SiteContext) -> Spares | None:
    """None where the site does not say how many nodes its work needs."""
    said = context.site.settings.publish
    return Spares(len(_gold(context)), said.needed, said.spares_percent) if said.needed is not None else None


def publish(context: SiteContext, pool: Pool) -> None:
    """Write the gold pool for those who schedule on it; again where another run admitted or demoted meanwhile.

    Whoever writes last looks once more after it: so no older pool stays over a newer one.
    """
    published = None
    while published != (gold := _gold(context)):
        pool.publish(gold)
        published = gold


def _gold(context: SiteContext) -> Mapping[str, str]:
    """Who is gold and held by no person, with addresses."""
    now = CLOCK.now()
    return {node.name: node.address for node in context.journal.summaries() if node.in_pool(now)}
