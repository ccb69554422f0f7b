"""The gold pool: its nodes, and where they are published: a file, an Ansible inventory, a feature of Slurm."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.pool import FilePool, InventoryFile
from clusterctl.edges.scheduler import SlurmScheduler
from clusterctl.edges.scheduler.slurm import Featured, publish_feature
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.fleet.state import NodeSummary
from clusterctl.ports import Deadline, Journal, Pool
from clusterctl.site.scheduling import SlurmSettings

log = logging.getLogger(__name__)
FEATURE_S = 150.0
MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class Feature:
    """Slurm's feature for gold nodes, and the nodes of the site."""

    slurm: Featured
    name: str
    nodes: Collection[str]

    def publish(self, gold: Mapping[str, str]) -> None:
        """Publish the feature; a failure is logged: the files are right, and the next publication tries again."""
        try:
            unknown = publish_feature(self.slurm, self.name, self.nodes, gold, Deadline.after(FEATURE_S))
        except ClusterctlError as error:
            log.error("Slurm's feature %s is not up to date: %s", self.name, error)  # noqa: TRY400 — the message names the cause
            return
        if unknown:
            some = f"{', '.join(unknown[:5])}{' …' if unknown[5:] else ''}"
            log.error("Slurm does not know %d gold nodes: %s", len(unknown), some)


@dataclass(frozen=True, slots=True)
class GoldPool:
    """Meets `Pool`: the file, and whatever else the site publishes gold nodes by."""

    file: FilePool
    others: tuple[InventoryFile | Feature, ...] = ()

    def publish(self, gold: Mapping[str, str]) -> None:
        self.file.publish(gold)
        for other in self.others:
            other.publish(gold)

    def lacks(self, names: Iterable[str]) -> frozenset[str]:
        return self.file.lacks(names)


def gold_pool(site: Site) -> GoldPool:
    """Return the publishers that the site names."""
    file = FilePool(Path(site.path(site.settings.pool)), site.settings.name, site.settings.simulated, CLOCK)
    others: list[InventoryFile | Feature] = []
    if site.settings.publish.inventory:
        others.append(InventoryFile(Path(site.path(site.settings.publish.inventory))))
    match site.settings.scheduler:
        case SlurmSettings(feature=feature, ssh=ssh) if feature:
            others.append(Feature(SlurmScheduler(CLOCK, site.origin, ssh), feature, tuple(site.by_name)))
        case _:
            pass
    return GoldPool(file, tuple(others))


def spares(site: Site, journal: Journal) -> Spares | None:
    """Return the spare nodes; None where the site does not name the number of nodes that its work needs."""
    return spares_of(site, len(_gold(journal))) if site.settings.publish.needed is not None else None


def spares_of(site: Site, gold: int) -> Spares | None:
    """Return the same, of a caller that knows how many nodes are in the pool."""
    settings = site.settings.publish
    return None if settings.needed is None else Spares(gold, settings.needed, settings.spares_percent)


def expiry_of(site: Site) -> timedelta | None:
    """Return the age that a gold node's burn-in may reach; None where the site names none."""
    nightly = site.settings.nightly
    return timedelta(days=nightly.expiry_days) if nightly is not None else None


def expired_note(nodes: Iterable[NodeSummary], expiry: timedelta | None, now: datetime) -> str:
    """Return one line about gold nodes that were admitted longer ago than `expiry`; empty where there are none.

    Their burn-in is older still, by the time that it waited for the admission. The report counts from the burn-in
    itself, which is too much to read of thousands of nodes for a list.
    """
    if expiry is None:
        return ""
    names = [node.name for node in nodes if node.in_pool(now) and node.since is not None and now - node.since > expiry]
    if not names:
        return ""
    some = f"{', '.join(names[:MOST_NAMES])}{' …' if len(names) > MOST_NAMES else ''}"
    return f"expired: {len(names)} gold nodes were admitted more than {expiry.days} days ago: {some}"


def publish(journal: Journal, pool: Pool) -> None:
    """Publish the gold pool, and again where another run admitted or demoted a node meanwhile.

    The run that writes last reads once more after it: no older pool stays over a newer one.
    """
    published = None
    while published != (gold := _gold(journal)):
        pool.publish(gold)
        published = gold


def _gold(journal: Journal) -> Mapping[str, str]:
    """Return the addresses of gold nodes that no operator holds, by name."""
    now = CLOCK.now()
    return {node.name: node.address for node in journal.summaries() if node.in_pool(now)}
