"""A node that is closed between the choice of nodes and the job's start: the attempt is withdrawn, and nodes are chosen again.

The table of decisions, and a watcher by a clock of the test with fakes of Slurm's jobs and nodes. The same on a real
Slurm: tests/edges/slurm/test_nodes_that_close.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import pytest

from clusterctl.edges.site import Site
from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.fleet.payloads.jobs import JobStopIntended, JobSubmitIntended, JobSubmitted
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations.adapters import Access
from clusterctl.operations.job_run import alone
from clusterctl.operations.job_start import closed_nodes, described, waits_for_nodes
from clusterctl.operations.job_watch import StopRequest, Watched, Watcher, order_stop
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline
from clusterctl.ports.jobs import Submission
from clusterctl.ports.scheduler import Occupancy, Use
from tests.edges.slurm.job_site import JobSite, LocalAdapters, LocalHosts, job_site
from tests.jobs.test_supervision import ORDERED
from tests.operations.test_job_watch import TestTime

RUN = "run-20261101T120000-cccc"
IDLE = Occupancy(Use.IDLE, "idle")
DRAINED = Occupancy(Use.OUT, "drained", "disk")
LEAVING = Occupancy(Use.BUSY, "draining", "disk", leaving=True)
BUSY = Occupancy(Use.BUSY, "allocated")
SILENT = Occupancy(Use.UNKNOWN, "idle*")
LENT = Occupancy(Use.OUT, "drained", "clusterctl:nightly:20261101T120000-dddd")
PENDING = ScheduledJob(job="11", state="PENDING", reason="ReqNodeNotAvail")


@pytest.mark.parametrize(
    ("changes", "waits"),
    [
        ({}, True),
        ({"reason": "Resources"}, True),
        ({"reason": "Priority"}, True),
        ({"reason": ""}, True),
        ({"reason": "JobHeldAdmin", "held": True}, False),
        ({"reason": "", "held": True}, False),
        ({"reason": "Dependency"}, False),
        ({"reason": "BeginTime"}, False),
        ({"reason": "Licenses"}, False),
        ({"reason": "QOSGrpNodeLimit"}, False),
        ({"reason": "Reservation"}, False),
        ({"state": "RUNNING", "reason": ""}, False),
        ({"state": "CONFIGURING", "reason": ""}, False),
        ({"state": "CANCELLED", "reason": ""}, False),
    ],
)
def test_what_a_job_waits_for(changes: Mapping[str, object], waits: bool) -> None:
    """Nodes, or its turn; an order, a time, another job and a limit are left as they are."""
    assert waits_for_nodes(replace(PENDING, **changes)) is waits  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "closed"),
    [
        ({"c1": IDLE, "c2": IDLE}, ()),
        ({"c1": IDLE, "c2": BUSY}, ()),
        ({"c1": IDLE, "c2": SILENT}, ()),
        ({"c1": IDLE, "c2": DRAINED}, ("c2",)),
        ({"c1": IDLE, "c2": LEAVING}, ("c2",)),
        ({"c1": IDLE, "c2": LENT}, ("c2",)),
        ({"c1": IDLE, "c2": Occupancy(Use.OUT, "down*")}, ("c2",)),
        ({"c1": IDLE, "c2": Occupancy(Use.OUT, "reserved")}, ("c2",)),
        ({"c1": IDLE}, ("c2",)),
        ({"c1": IDLE, "c2": IDLE, "c3": DRAINED}, ()),
    ],
)
def test_which_nodes_are_closed(seen: Mapping[str, Occupancy], closed: Sequence[str]) -> None:
    """A busy node opens by itself, and a state that is not known shows nothing; a node that left the cluster is closed."""
    assert closed_nodes(("c1", "c2"), seen) == tuple(closed)


def test_the_text_of_closed_nodes() -> None:
    """It is short whatever an administrator wrote, and holds no control characters."""
    seen = {"c1": DRAINED, "c2": Occupancy(Use.OUT, "down", "\x1b[2J" + "x" * 500), "c3": DRAINED, "c4": DRAINED}
    text = described(("c0", "c1", "c2", "c3", "c4"), seen)
    assert text.startswith("c0 is unknown to the scheduler, c1 is drained (disk), c2 is down (")
    assert text.endswith(" and 2 more")
    assert "\x1b" not in text
    assert len(text) < 200


@dataclass
class FakeSlurm:
    """Meets `Jobs` and the part of `Scheduler` that a watcher reads: a job begins where all of its nodes are idle.

    `later`: nodes that change at the question of this number; `asked` counts those for a job and for the nodes.
    """

    nodes: dict[str, Occupancy]
    later: dict[int, dict[str, Occupancy]] = field(default_factory=dict)
    reason: str = "ReqNodeNotAvail"
    held: bool = False
    asked: int = 0
    submitted: list[Submission] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        self._count()
        return Observed(dict(self.nodes))

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        self._count()
        if job in self.cancelled:
            return ScheduledJob(job=job, state="CANCELLED")
        nodes = self.submitted[int(job) - 11].nodes
        if all(self.nodes[name].use is Use.IDLE for name in nodes):
            return ScheduledJob(job=job, state="COMPLETED", node_list=",".join(nodes))
        return ScheduledJob(job=job, state="PENDING", reason=self.reason, held=self.held)

    def marked(self, comment: str, deadline: Deadline, user: str = "") -> str:
        found = [str(11 + at) for at, one in enumerate(self.submitted) if one.comment == comment]
        return found[0] if found else ""

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        self.submitted.append(submission)
        return str(10 + len(self.submitted))

    def cancel(self, job: str, deadline: Deadline) -> None:
        self.cancelled.append(job)

    def reserve(self, name: str, nodes: Sequence[str], deadline: Deadline) -> None: ...

    def unreserve(self, name: str, deadline: Deadline) -> None: ...

    def _count(self) -> None:
        self.asked += 1
        self.nodes.update(self.later.get(self.asked, {}))


class KilledAtCancel(FakeSlurm):
    """The watcher dies when it has ordered the end of the job, before Slurm is asked."""

    def cancel(self, job: str, deadline: Deadline) -> None:
        raise KeyboardInterrupt


class FakeAdapters(LocalAdapters):
    def __init__(self, site: Site, hosts: LocalHosts, slurm: FakeSlurm) -> None:
        super().__init__(site, Access.FULL, hosts)
        self._slurm = slurm

    @cached_property
    def jobs(self) -> FakeSlurm:  # type: ignore[override]
        return self._slurm

    @cached_property
    def scheduler(self) -> FakeSlurm:  # type: ignore[override]
        return self._slurm


@dataclass
class Pool:
    """Four gold nodes, and a run whose first attempt is job 11 on c1 and c2."""

    site: JobSite
    time: TestTime

    def submitted(self, slurm: FakeSlurm) -> FakeSlurm:
        slurm.submitted.append(
            Submission(script="/x/train.sh", comment="clusterctl:x:1", nodes=("c1", "c2"), output="/x/out")
        )
        return slurm

    def follow(self, slurm: FakeSlurm) -> SupervisedRun:
        control = Control()
        adapters = FakeAdapters(self.site.context.site, self.site.hosts, slurm)
        with alone(self.site.context, RUN, control) as claim:
            watched = Watched(run=RUN, claim=claim, poll_s=10.0)
            return Watcher(
                self.site.context, adapters, watched, control, clock=self.time, timer=self.time.timer
            ).follow()  # fmt: skip


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Pool]:
    with job_site(tmp_path, ("c1", "c2", "c3", "c4")) as site:
        script = tmp_path / "train.sh"
        script.write_text("#!/bin/sh\n")
        ordered = replace(
            ORDERED,
            script=str(script),
            folder=str(tmp_path / "logs"),
            spares=0,
            policy=JobPolicy(retries=2, backoff_s=1),
        )
        events = (
            ordered,
            JobSubmitIntended(attempt=1, nodes=("c1", "c2"), avoided=(), comment="clusterctl:x:1"),
            JobSubmitted(attempt=1, job="11"),
        )
        site.context.journal.append([NewEvent(Stream.JOB, RUN, one) for one in events])
        yield Pool(site, TestTime())


def nodes(**changes: Occupancy) -> dict[str, Occupancy]:
    return {**dict.fromkeys(("c1", "c2", "c3", "c4"), IDLE), **changes}


def test_an_attempt_that_waits_for_a_drained_node_gets_others(pool: Pool) -> None:
    """It is cancelled once, the next one leaves the node out without blaming it, and completes."""
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED)))
    found = pool.follow(slurm)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    first, second = found.attempts
    assert (second.nodes, second.avoided) == (("c1", "c3"), ())
    assert slurm.cancelled == ["11"]
    assert first.stop is not None
    assert first.ended is not None
    assert first.stop.unavailable == ("c2",)
    assert (first.ended.failure, first.ended.layer, first.ended.certainty) == (
        Failure.ENDED, Layer.SCHEDULER, Certainty.PROVEN,
    )  # fmt: skip
    assert (first.ended.hosts, first.ended.cause) == (("c2",), "it cannot begin: c2 is drained (disk)")
    assert found.suspects == ()


def test_one_look_is_not_enough(pool: Pool) -> None:
    """A node that is back at the next look costs no attempt; nor do two nodes that are closed one after the other."""
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED), later={3: {"c2": IDLE, "c1": DRAINED}, 5: {"c1": IDLE}}))
    found = pool.follow(slurm)
    assert (found.outcome, len(found.attempts), slurm.cancelled) == (JobOutcome.COMPLETED, 1, [])


@pytest.mark.parametrize(
    ("seen", "reason", "held"),
    [(BUSY, "Resources", False), (SILENT, "ReqNodeNotAvail", False), (DRAINED, "JobHeldUser", True), (DRAINED, "BeginTime", False)],
    ids=["busy", "silent", "held", "later"],
)  # fmt: skip
def test_an_attempt_that_may_begin_later_is_left_alone(pool: Pool, seen: Occupancy, reason: str, held: bool) -> None:
    """It begins after some minutes, once what it waits for is there."""
    slurm = pool.submitted(FakeSlurm(nodes(c2=seen), later={30: {"c2": IDLE}}, reason=reason, held=held))
    found = pool.follow(slurm)
    assert (found.outcome, len(found.attempts), slurm.cancelled) == (JobOutcome.COMPLETED, 1, [])


def test_a_watcher_that_was_killed_goes_on(pool: Pool) -> None:
    """The end was ordered: the next watcher cancels the job, and submits each attempt once."""
    killed = pool.submitted(KilledAtCancel(nodes(c2=DRAINED)))
    with pytest.raises(KeyboardInterrupt):
        pool.follow(killed)
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED)))
    found = pool.follow(slurm)
    assert found.outcome is JobOutcome.COMPLETED, found.reason
    assert slurm.cancelled == ["11"]
    comments = [one.comment for one in slurm.submitted]
    assert len(comments) == len(set(comments)) == len(found.attempts) == 2


def test_with_too_few_nodes_the_run_asks(pool: Pool) -> None:
    """The cause names them, and what to do."""
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED, c3=LEAVING, c4=Occupancy(Use.OUT, "down", "died"))))
    found = pool.follow(slurm)
    assert found.outcome is JobOutcome.ASKS
    assert found.reason == (
        "2 gold nodes are needed, work can begin on 1: c2 is drained (disk), c3 is draining (disk), c4 is down (died). "
        "Give nodes back to the scheduler, then order the run again"
    )
    assert len(slurm.submitted) == 1


@pytest.mark.parametrize("seen", [BUSY, SILENT, LENT], ids=["busy", "silent", "in a night"])
def test_nodes_that_come_back_are_waited_for(pool: Pool, seen: Occupancy) -> None:
    """A busy node, one of which nothing is known, and one that a run of clusterctl has drained for its own work."""
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED, c3=seen, c4=DRAINED), later={30: {"c3": IDLE}}))
    found = pool.follow(slurm)
    assert (found.outcome, found.attempts[-1].nodes) == (JobOutcome.COMPLETED, ("c1", "c3"))


def test_attempts_in_vain_are_bounded(pool: Pool) -> None:
    """Each choice loses a node before the start: the retries are used up, and the run asks."""
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED)))

    def submit(submission: Submission, deadline: Deadline) -> str:
        slurm.nodes.update(dict.fromkeys(slurm.nodes, IDLE) | {submission.nodes[-1]: DRAINED})
        return FakeSlurm.submit(slurm, submission, deadline)

    slurm.submit = submit  # type: ignore[method-assign]
    found = pool.follow(slurm)
    assert found.outcome is JobOutcome.ASKS
    assert len(found.attempts) == len(slurm.submitted) == 3
    assert "3 attempts failed, the last one by: it cannot begin: " in found.reason


def test_a_user_outranks_the_watcher(pool: Pool) -> None:
    """A stop that a user orders after the watcher's own is what the run ends with."""
    own = JobStopIntended(
        attempt=1,
        job="11",
        failure=Failure.ENDED,
        reason="it cannot begin",
        detected=pool.time.now(),
        unavailable=("c2",),
    )
    pool.site.context.journal.append([NewEvent(Stream.JOB, RUN, own)])
    slurm = pool.submitted(FakeSlurm(nodes(c2=DRAINED)))
    connected = replace(
        pool.site.context, connect=lambda site, access: FakeAdapters(site, pool.site.hosts, slurm)
    )  # fmt: skip
    order_stop(connected, StopRequest(run=RUN, reason="enough"), Control())
    found = pool.follow(slurm)
    assert (found.outcome, found.reason, len(slurm.submitted)) == (JobOutcome.STOPPED, "enough", 1)
