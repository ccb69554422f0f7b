"""Jobs of the scheduler: payloads of the stream `job`. The subject is the job's id, of a supervised run the run's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from clusterctl.fleet.blame import Certainty, Failure, Layer, Persistence
from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.job_policy import JobPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAttributed(Payload):
    """The failure of one attempt of a job was attributed.

    rule       of the attribution (`broken_part`); `error`: rule of the line that it rests on (`xid_79`), or empty
    at         time of the first error; None where it has none
    hosts      the suspects; `ranks`: theirs, where known
    iteration  step at which it failed, where that is part of the evidence
    user       who submitted the job; empty where that is not known
    from_host  it rests on what the job's user cannot write: the kernel's log, a BMC, the scheduler
    """

    kind: ClassVar = Kind.JOB_ATTRIBUTED
    failure: Failure
    layer: Layer
    certainty: Certainty
    persistence: Persistence
    rule: str
    error: str
    cause: str
    action: str
    at: datetime | None = None
    hosts: tuple[str, ...] = ()
    ranks: tuple[int, ...] = ()
    iteration: int | None = None
    user: str = ""
    from_host: bool = False

    def __str__(self) -> str:
        suspects = f" ({', '.join(self.hosts[:3])})" if self.hosts else ""
        return f"{self.failure.value}, {self.layer.value}, {self.certainty.value}: {self.cause}{suspects}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunOrdered(Payload):
    """A user ordered a supervised run: a batch script that is started again after failures of the machines.

    script, arguments, options  of sbatch; `variables`: names of the environment variables that the job gets
    nodes, spares               how many nodes it gets, and how many healthy ones are left free for restarts
    folder                      each attempt's logs are in a folder of their own in it
    readers, heartbeat          by which its progress is seen
    submitter                   the scheduler's user who submits the attempts himself; empty: clusterctl submits them
    """

    kind: ClassVar = Kind.JOB_RUN_ORDERED
    script: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    nodes: int
    spares: int
    folder: str
    readers: tuple[str, ...]
    heartbeat: str
    policy: JobPolicy
    submitter: str = ""

    def __str__(self) -> str:
        return f"run of {self.script} on {self.nodes} nodes was ordered"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitIntended(Payload):
    """An attempt is going to be submitted to these nodes; `comment` marks the submission in the scheduler.

    `avoided`: hosts that are left out as suspects; `spares`: nodes that are reserved meanwhile, for the next attempt.
    The event's evidence is the manifest.
    """

    kind: ClassVar = Kind.JOB_SUBMIT_INTENDED
    attempt: int
    nodes: tuple[str, ...]
    avoided: tuple[str, ...]
    comment: str
    spares: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"attempt {self.attempt} is submitted to {len(self.nodes)} nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSubmitted(Payload):
    """The scheduler took an attempt as `job`."""

    kind: ClassVar = Kind.JOB_SUBMITTED
    attempt: int
    job: str

    def __str__(self) -> str:
        return f"attempt {self.attempt} is job {self.job}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStopIntended(Payload):
    """The scheduler's job of an attempt is going to be cancelled: it hangs, it is slow, or a user ordered it.

    `unavailable`: nodes that it waits for in vain; it has not begun.
    """

    kind: ClassVar = Kind.JOB_STOP_INTENDED
    attempt: int
    job: str
    failure: Failure
    reason: str
    detected: datetime
    unavailable: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"job {self.job} is cancelled: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAttemptEnded(Payload):
    """An attempt is over. Each term of the downtime follows from its times; None where a time is unknown.

    launched             the scheduler started it
    first_at, last_at    of its first and last step, `first` and `last`
    detected             its end was noticed; `stopped`: its processes were gone
    saved_at, saved      its last durable checkpoint, and the step before it
    saving_s             seconds in which saves kept the training waiting
    layer, hosts         what its failure is attributed to; `action`: what follows, in the attribution's terms
    from_host            that rests on what the job's user cannot write
    """

    kind: ClassVar = Kind.JOB_ATTEMPT_ENDED
    attempt: int
    job: str
    state: str
    nodes: int
    gpus: int
    launched: datetime | None
    stopped: datetime | None
    detected: datetime | None
    first: int | None = None
    first_at: datetime | None = None
    last: int | None = None
    last_at: datetime | None = None
    saved: int | None = None
    saved_at: datetime | None = None
    saving_s: float = 0.0
    saves: int = 0
    failure: Failure = Failure.ENDED
    layer: Layer = Layer.UNKNOWN
    certainty: Certainty = Certainty.UNKNOWN
    hosts: tuple[str, ...] = ()
    action: str = ""
    cause: str = ""
    from_host: bool = False

    def __str__(self) -> str:
        return f"attempt {self.attempt} (job {self.job}) ended: {self.state}{f', {self.cause}' if self.cause else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDrainIntended(Payload):
    """Hosts are going to be drained in the scheduler as suspects of an attempt's failure."""

    kind: ClassVar = Kind.JOB_DRAIN_INTENDED
    attempt: int
    hosts: tuple[str, ...]
    reason: str

    def __str__(self) -> str:
        return f"{', '.join(self.hosts)}: drained, {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRunEnded(Payload):
    """A supervised run is over: `completed`, `stopped` by its user, or `asks` for a decision."""

    kind: ClassVar = Kind.JOB_RUN_ENDED
    outcome: str
    reason: str

    def __str__(self) -> str:
        return f"{self.outcome}: {self.reason}"


PAYLOADS: tuple[type[Payload], ...] = (
    JobAttributed,
    JobRunOrdered,
    JobSubmitIntended,
    JobSubmitted,
    JobStopIntended,
    JobAttemptEnded,
    JobDrainIntended,
    JobRunEnded,
)
