"""What is to be read of a job from its nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.fleet.scheduled_job import ScheduledJob


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parts are read: kernel log and counters, the job's files, stacks of its processes, the BMC's events."""

    kernel: bool = True
    files: bool = True
    stacks: bool = True
    bmc: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionRequest:
    """What is read of which job.

    nodes         names of its nodes
    since, until  the time of which logs are read
    patterns      paths on the nodes, with wildcards, of further files of the job
    """

    job: ScheduledJob
    nodes: tuple[str, ...]
    since: datetime
    until: datetime
    patterns: tuple[str, ...] = ()
    wanted: Wanted = field(default_factory=Wanted)
