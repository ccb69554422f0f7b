"""The site's scheduler, as its file names it, and nodes that are borrowed from it."""

from __future__ import annotations

from clusterctl.edges.scheduler import CommandScheduler, ListedScheduler, SlurmScheduler
from clusterctl.edges.site import Site
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import CLOCK
from clusterctl.ports.scheduler import Scheduler
from clusterctl.site.scheduling import CommandSettings, ListSettings, SlurmSettings
from clusterctl_cli.options import matching


def scheduler_of(site: Site) -> Scheduler:
    """Raises `UsageError` where the site names none: nobody could tell who is idle."""
    match site.settings.scheduler:
        case SlurmSettings(ssh=ssh):
            return SlurmScheduler(CLOCK, site.origin, ssh)
        case CommandSettings() as said:
            return CommandScheduler(CLOCK, site.origin, said.idle, said.take, said.give_back, said.held)
        case ListSettings(nodes=patterns):
            where = site.where("scheduler", "nodes")
            return ListedScheduler(frozenset(matching((node.name for node in site.nodes), patterns, where)))
        case None:
            raise UsageError(
                "the site does not say who gives its nodes work: nobody can tell which are idle",
                where=site.where("scheduler"),
                remedy="add scheduler: {kind: slurm}, or another kind (docs/nightly.md)",
            )
