"""Schedulers: Slurm, a site's own commands, or a list of nodes that never have work."""

from clusterctl.edges.scheduler.commands import CommandScheduler, ListedScheduler
from clusterctl.edges.scheduler.slurm import SlurmScheduler
from clusterctl.edges.scheduler.slurm_jobs import SlurmJobs

__all__ = ["CommandScheduler", "ListedScheduler", "SlurmJobs", "SlurmScheduler"]
