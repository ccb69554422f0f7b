"""The gold pool: who is in it, and where it is published."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import click

from clusterctl.edges.pool import FilePool, InventoryFile
from clusterctl.edges.scheduler import SlurmScheduler
from clusterctl.edges.scheduler.gold_feature import Featured, publish_feature
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.fleet.reporting.spares import Spares
from clusterctl.operations.context import CLOCK, Office
from clusterctl.ports import Deadline, Pool
from clusterctl.site.scheduling import SlurmSettings

FEATURE_S = 150.0


@dataclass(frozen=True, slots=True)
class Feature:
    """Slurm's feature for gold nodes, and the nodes of the site."""

    slurm: Featured
    name: str
    nodes: Collection[str]

    def publish(self, gold: Mapping[str, str]) -> None:
        """Trouble is said and keeps nobody from anything: the files are right, and the next publication tries again."""
        try:
            unknown = publish_feature(self.slurm, self.name, self.nodes, gold, Deadline.after(FEATURE_S))
        except ClusterctlError as error:
            click.echo(f"warning: Slurm's feature {self.name} is not up to date: {error}", err=True)
            return
        if unknown:
            some = f"{', '.join(unknown[:5])}{' …' if unknown[5:] else ''}"
            click.echo(f"warning: Slurm does not know {len(unknown)} gold nodes: {some}", err=True)


@dataclass(frozen=True, slots=True)
class GoldPool:
    """Meets `Pool`: the file, and whatever else the site wants gold told by."""

    file: FilePool
    others: tuple[InventoryFile | Feature, ...] = ()

    def publish(self, gold: Mapping[str, str]) -> None:
        self.file.publish(gold)
        for other in self.others:
            other.publish(gold)

    def lacks(self, names: Iterable[str]) -> frozenset[str]:
        return self.file.lacks(names)


def gold_pool(site: Site) -> GoldPool:
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


def spares(office: Office) -> Spares | None:
    """None where the site does not say how many nodes its work needs."""
    said = office.site.settings.publish
    return Spares(len(_gold(office)), said.needed, said.spares_percent) if said.needed is not None else None


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
