"""Runs, nights, hunting campaigns and burns of the fabric: payloads of the streams `run` and `campaign`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from clusterctl.fleet.event import Kind, Payload
from clusterctl.fleet.finding import Digest
from clusterctl.fleet.node import Step


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Payload):
    kind: ClassVar = Kind.RUN_STARTED
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Payload):
    kind: ClassVar = Kind.RUN_FINISHED


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessIdentity:
    """One process of a controller, distinguished from every later one with the same number.

    started  when it started, in clock ticks since boot
    boot     the kernel's boot id and the pid namespace; `machine`: empty where the process may outlive a reboot
    """

    host: str
    pid: int
    started: str
    boot: str = ""
    machine: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOrdered(Payload):
    """A detached run is ordered; `subject` is its id. The event's actor is the run's.

    operation  module of `clusterctl.operations`, and its `request` as JSON
    approved   digest of the approved preview; empty: any preview is approved
    by         the process that starts the run's own process
    earlier    id of the run that this one repeats
    key        of the one who orders: a second order with the same key is the same order; empty for none
    pool       of the workers that carry it out, instead of a process of its own; empty for none
    priority   among the runs of its pool: the highest first, then the oldest
    needs      addresses and networks of its nodes, host names among them: a worker must reach all
    parent     id that the runs of one order over several pools share; empty for a run alone
    """

    kind: ClassVar = Kind.RUN_ORDERED
    operation: str
    command: str
    request: Mapping[str, Any]
    by: ProcessIdentity
    approved: str = ""
    earlier: str = ""
    key: str = ""
    pool: str = ""
    priority: int = 0
    needs: tuple[str, ...] = ()
    parent: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun(Payload):
    """The process of a detached run begins: written before it does anything. Only the first of a run counts.

    worker  that begins a run of its pool, under its claim on the run: there the last one counts
    """

    kind: ClassVar = Kind.RUN_BEGUN
    process: ProcessIdentity
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunHandedBack(Payload):
    """A worker gives a run back that it has not finished: another one goes on."""

    kind: ClassVar = Kind.RUN_HANDED_BACK
    worker: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCancelOrdered(Payload):
    """The process of a detached run is going to be asked to stop."""

    kind: ClassVar = Kind.RUN_CANCEL_ORDERED


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAbandoned(Payload):
    """A detached run that has not begun must not begin any more. It does not count after `RunBegun`."""

    kind: ClassVar = Kind.RUN_ABANDONED
    reason: str
    exit_code: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Payload):
    """A detached run came to its end. `text`: the error, or why it stopped; empty where there is none."""

    kind: ClassVar = Kind.RUN_ENDED
    exit_code: int
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightStarted(Payload):
    """`closes`: the end of the window; `percent` of the gold nodes may be out at a time."""

    kind: ClassVar = Kind.NIGHT_STARTED
    closes: datetime
    percent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NightEnded(Payload):
    """`tested` and `stuck` have the reason of each node; `failed` are those that are no longer gold."""

    kind: ClassVar = Kind.NIGHT_ENDED
    tested: tuple[str, ...]
    failed: tuple[str, ...]
    stuck: Mapping[str, str]
    ended: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WavesStopped(Payload):
    """No more nodes begin `step` in this run."""

    kind: ClassVar = Kind.WAVES_STOPPED
    step: Step
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignStarted(Payload):
    """How a campaign measures: only one with equal settings continues it."""

    kind: ClassVar = Kind.CAMPAIGN_STARTED
    load: str
    suite: str
    limits: str
    pair_seconds: int | None = None
    group_iterations: int | None = None
    hang_seconds: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignAsked(Payload):
    """A round that begins, as `burnin.campaign` writes it."""

    kind: ClassVar = Kind.CAMPAIGN_ASKED
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignAnswered(Payload):
    """The result of one group of a round, as `burnin.campaign` writes it."""

    kind: ClassVar = Kind.CAMPAIGN_ANSWERED
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignDropped(Payload):
    """A host that no longer answers, as `burnin.campaign` writes it."""

    kind: ClassVar = Kind.CAMPAIGN_DROPPED
    record: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEnded(Payload):
    """`by`: the campaign that continues it; empty where it came to its end."""

    kind: ClassVar = Kind.CAMPAIGN_ENDED
    by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnStarted(Payload):
    """A burn of the fabric begins or goes on.

    rails      that are loaded, by the hosts' own order of their adapters; none: all
    stage_s    seconds for which a stage loads its links
    adaptive   the switches route adaptively: a link may carry part of a flow
    limits     digest of the fabric limits
    leaves     switches whose links are loaded, by name; none: all
    nodes      names and patterns that were ordered; none: all free hosts
    links      single links that are loaded, each by one of its ports, SWITCH:PORT; none: all
    """

    kind: ClassVar = Kind.BURN_STARTED
    hosts: tuple[str, ...]
    rails: tuple[int, ...]
    stage_s: float
    adaptive: bool
    limits: str
    leaves: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFlow:
    """A flow that did not run to its end: the adapters at its ends, as `node007 mlx5_0`, and why."""

    source: str
    target: str
    cause: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnStageMeasured(Payload):
    """A stage came to its end. Its evidence: the fabric and its counters while the flows ran, once early, once late.

    cycle   of all links, counted from 1
    ways    evidence: a JSON list of the flows' ways, each the list of the sending ports, `GUID:number`
    """

    kind: ClassVar = Kind.BURN_STAGE_MEASURED
    cycle: int
    flows: int
    fabric_before: Digest
    counters_before: Digest
    fabric_after: Digest
    counters_after: Digest
    ways: Digest
    failed: tuple[FailedFlow, ...] = ()

    @property
    def readings(self) -> tuple[Digest, ...]:
        """All evidence: fabric and counters before, fabric and counters after, ways."""
        return self.fabric_before, self.counters_before, self.fabric_after, self.counters_after, self.ways


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnSwitchGone(Payload):
    """A switch is not in the fabric any more since an earlier reading of this burn, and so many links with it."""

    kind: ClassVar = Kind.BURN_SWITCH_GONE
    switch: str
    guid: str
    links: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnSwitchBack(Payload):
    """A switch that was gone is in the fabric again."""

    kind: ClassVar = Kind.BURN_SWITCH_BACK
    switch: str
    guid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnEnded(Payload):
    """`reason`: why it ended early; empty where every link was loaded."""

    kind: ClassVar = Kind.BURN_ENDED
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted(Payload):
    """A worker takes runs of `pool` from now on; `subject` is its name. `reach`: networks; none: it reaches all."""

    kind: ClassVar = Kind.WORKER_STARTED
    pool: str
    process: ProcessIdentity
    reach: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStopped(Payload):
    """A worker has stopped in order."""

    kind: ClassVar = Kind.WORKER_STOPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRemoved(Payload):
    """The raw output of so many pieces of passing evidence from before `before` is removed; their digests stay."""

    kind: ClassVar = Kind.EVIDENCE_REMOVED
    before: datetime
    pieces: int


PAYLOADS: tuple[type[Payload], ...] = (
    RunStarted, RunFinished, RunOrdered, RunBegun, RunCancelOrdered, RunAbandoned, RunEnded, NightStarted, NightEnded,
    WavesStopped, CampaignStarted, CampaignAsked, CampaignAnswered, CampaignDropped, CampaignEnded, BurnStarted,
    BurnStageMeasured, BurnSwitchGone, BurnSwitchBack, BurnEnded, RunHandedBack, WorkerStarted, WorkerStopped,
    EvidenceRemoved,
)  # fmt: skip
