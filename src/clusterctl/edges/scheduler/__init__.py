"""Who gives nodes work: Slurm, a site's own commands, or nobody but a list of nodes that are never given any."""

from clusterctl.edges.scheduler.commands import CommandScheduler, ListedScheduler
from clusterctl.edges.scheduler.slurm import SlurmScheduler

__all__ = ["CommandScheduler", "ListedScheduler", "SlurmScheduler"]
