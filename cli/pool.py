"""The gold pool: who is in it, and where it is published."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl.cli.office import CLOCK, Office
from clusterctl.edges.pool import FilePool
from clusterctl.edges.site import Site
from clusterctl.ports import Pool


def gold_pool(site: Site) -> FilePool:
    return FilePool(Path(site.path(site.settings.pool)), site.settings.name, site.settings.simulated, CLOCK)


def publish(office: Office, pool: Pool) -> None:
    """Write the gold pool for those who schedule on it; again where another run admitted or demoted meanwhile.

    Whoever writes last looks once more after it: so no older pool stays over a newer one.
    """
    published = None
    while published != (gold := _gold(office)):
        pool.publish(gold)
        published = gold


def _gold(office: Office) -> Mapping[str, str]:
    """Who is gold and held by no person, with addresses."""
    now = CLOCK.now()
    return {node.name: node.address for node in office.journal.summaries() if node.in_pool(now)}
