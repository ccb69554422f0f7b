"""What was observed of a failed job. Times are UTC; a host may be unknown (empty), and so may a rank or a time."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from clusterctl.formats.flight_recorder import RankRecord
from clusterctl.jobs.meaning import Meaning


class Source(enum.Enum):
    """Which log a line is from."""

    JOB = "job"
    KERNEL = "kernel"
    SCHEDULER = "scheduler"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """A line of a log that a rule knows.

    place     file and line, to be looked up
    task      number of the task of srun that wrote it
    position  the log and the byte in it: the order of the lines of one log, whether they have times or not
    times     lines of the same kind, of which this is the first
    """

    source: Source
    text: str
    meaning: Meaning
    host: str = ""
    rank: int | None = None
    task: int | None = None
    at: datetime | None = None
    place: str = ""
    position: tuple[str, int] | None = None
    times: int = 1

    @property
    def rule(self) -> str:
        return self.meaning.rule


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerFacts:
    """What the scheduler records of a job. `state` as Slurm names it (`NODE_FAIL`, `TIMEOUT`); empty where unknown.

    `silent_nodes`: the hosts answered, but not the scheduler's daemon on them.
    """

    state: str = ""
    exit_code: int | None = None
    signal: int | None = None
    nodes: tuple[str, ...] = ()
    failed_nodes: tuple[str, ...] = ()
    silent_nodes: tuple[str, ...] = ()
    submitted: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The stack of one rank's main thread, innermost frame first (`function (file:line)`); `kernel`: of the kernel."""

    rank: int
    host: str
    frames: tuple[str, ...]
    kernel: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RankProcess:
    """What kept a rank off the processor. `throttled`: the share of the periods in which a quota did."""

    rank: int
    host: str
    stopped: bool = False
    throttled: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkErrors:
    """How much an error counter of an adapter's port rose while the job ran."""

    host: str
    device: str
    counter: str
    increase: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcEvent:
    """A grave event of a node's BMC: power lost, a critical temperature, a machine check."""

    host: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierFailure:
    """An earlier attempt or job, as it was attributed: `hosts` are its suspects."""

    job: str
    rule: str
    hosts: tuple[str, ...] = ()
    iteration: int | None = None
    rank: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The last step that the job's logs show, and when it was made."""

    iteration: int
    at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEvidence:
    """All that is known of one failed attempt.

    ranks      the host of each rank, as far as it is known
    addresses  names of hosts by the addresses that NCCL prints
    missing    what could not be read, with the reason: it is never taken for healthy
    """

    job: str = ""
    observations: tuple[Observation, ...] = ()
    scheduler: SchedulerFacts = field(default_factory=SchedulerFacts)
    progress: Progress | None = None
    records: tuple[RankRecord, ...] = ()
    stacks: tuple[Stack, ...] = ()
    processes: tuple[RankProcess, ...] = ()
    links: tuple[LinkErrors, ...] = ()
    bmc: tuple[BmcEvent, ...] = ()
    earlier: tuple[EarlierFailure, ...] = ()
    ranks: Mapping[int, str] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def hosts(self) -> frozenset[str]:
        """All hosts that the job is known to have run on."""
        seen = {one.host for one in self.observations} | set(self.ranks.values()) | set(self.scheduler.nodes)
        return frozenset(seen - {""})
