"""A watcher by a clock of the test: a heartbeat keeps a silent job alive, and a lost submission is made once or never."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.job_folder import JobFolder, old_folders, remove_folders
from clusterctl.edges.site import Site
from clusterctl.fleet.blame import Failure
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.fleet.payloads.jobs import JobRunEnded, JobSubmitIntended, JobSubmitted
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.jobs.downtime import run_time
from clusterctl.jobs.supervision import JobOutcome, SupervisedRun
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_collect import LostNodes, lost_of, of_all_ranks
from clusterctl.operations.job_run import alone
from clusterctl.operations.job_runs import named
from clusterctl.operations.job_watch import REMEMBERED, Watched, Watcher
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, Ran
from clusterctl.ports.jobs import Submission
from tests.cli.site_of_three import write as write_site
from tests.edges.slurm.job_site import LocalAdapters, LocalHosts, job_site
from tests.fake_timer import FakeTimer
from tests.jobs.test_supervision import ORDERED

RUN = "run-20261101T120000-bbbb"
HANG_S = 300
STEPS = "".join(f"step: {number}  loss: 3.1\n" for number in range(1, 10)).encode()


@dataclass
class TestTime:
    """Meets `Clock`: begins now, and goes on with the timer alone."""

    __test__ = False
    timer: FakeTimer = field(default_factory=FakeTimer)
    began: datetime = field(default_factory=CLOCK.now)

    def now(self) -> datetime:
        return self.began + timedelta(seconds=self.timer.now())


@dataclass
class FakeJobs:
    """Meets `ports.jobs.Jobs`: one job, which runs until it is cancelled, or is completed at once."""

    log: str
    began: datetime
    completes: bool = False
    lasted_s: float = 0.0
    known: str = ""
    submitted: list[Submission] = field(default_factory=list)
    silent: int = 0
    reserved: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)

    def job(self, job: str, deadline: Deadline) -> ScheduledJob:
        state = "COMPLETED" if self.completes else "CANCELLED" if self.cancelled else "RUNNING"
        return ScheduledJob(
            job=job, state=state, node_list="c1", batch_host="c1", uid=os.getuid(), gid=os.getgid(), stdout=self.log,
            started=self.began, ended=None if state == "RUNNING" else self.began + timedelta(seconds=self.lasted_s),
        )  # fmt: skip

    def names(self, node_list: str, deadline: Deadline) -> tuple[str, ...]:
        return (node_list,)

    def reserve(self, name: str, nodes: Sequence[str], deadline: Deadline) -> None:
        self.reserved.append((name, tuple(nodes)))

    def unreserve(self, name: str, deadline: Deadline) -> None:
        self.reserved.append((name, ()))

    def marked(self, comment: str, deadline: Deadline, user: str = "") -> str:
        if self.silent:
            self.silent -= 1
            raise EdgeError("Unable to contact slurm controller", where="squeue", remedy="wait")
        return self.known

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        self.submitted.append(submission)
        return "11"

    def cancel(self, job: str, deadline: Deadline) -> None:
        self.cancelled.append(job)


@dataclass
class Script(LocalHosts):
    """Meets `Shell`: answers each look at the log; steps at the first look, then a heartbeat until it stops."""

    time: TestTime = field(default_factory=TestTime)
    beats_until: float = 0.0
    ahead: float = 0.0
    looks: int = 0
    steps: bytes = STEPS

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        if b'"heartbeat"' not in stdin:
            return Observed(Ran(1, "", "nothing is collected here", 0.1))
        self.looks += 1
        now = self.time.timer.now()
        beat = self.time.began.timestamp() + min(now, self.beats_until) + self.ahead
        content = base64.b64encode(self.steps if self.looks == 1 else b"").decode()
        answer = {"version": 1, "log": {"offset": len(self.steps), "content": content, "error": ""}, "heartbeat": beat}
        return Observed(Ran(0, json.dumps(answer), "", 0.1))


class FakeAdapters(LocalAdapters):
    def __init__(self, site: Site, access: Access, hosts: LocalHosts, jobs: FakeJobs) -> None:
        super().__init__(site, access, hosts)
        self._fake_jobs = jobs

    @cached_property
    def jobs(self) -> FakeJobs:  # type: ignore[override]
        return self._fake_jobs


@dataclass
class Bench:
    """A site with one intended attempt, and what the watcher meets there."""

    context: SiteContext
    time: TestTime
    script: Script
    jobs: FakeJobs

    def follow(self) -> SupervisedRun:
        control = Control()
        adapters = FakeAdapters(self.context.site, Access.FULL, self.script, self.jobs)
        with alone(self.context, RUN, control) as claim:
            watched = Watched(run=RUN, claim=claim, poll_s=10.0)
            return Watcher(
                self.context, adapters, watched, control, clock=self.time, timer=self.time.timer
            ).follow()  # fmt: skip


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with job_site(tmp_path, ("c1",)) as site:
        time = TestTime()
        policy = JobPolicy(retries=0, hang_s=HANG_S, setup_s=60)
        ordered = replace(ORDERED, nodes=1, folder=str(tmp_path / "logs"), heartbeat="/x/beat", policy=policy)
        intent = JobSubmitIntended(attempt=1, nodes=("c1",), avoided=(), comment="clusterctl:x:1", spares=("c9",))
        site.context.journal.append([NewEvent(Stream.JOB, RUN, ordered), NewEvent(Stream.JOB, RUN, intent)])
        *_, last = site.context.journal.history(Stream.JOB, RUN)
        time.began = last.at  # the attempt was intended then
        jobs = FakeJobs(log=str(tmp_path / "out.log"), began=time.began)
        yield Bench(site.context, time, Script(site.hosts.folder, time=time), jobs)


def submitted(bench: Bench) -> None:
    bench.context.journal.append([NewEvent(Stream.JOB, RUN, JobSubmitted(attempt=1, job="11"))])


def stopped_after(found: SupervisedRun, bench: Bench) -> float:
    """The seconds after which the job was ended as one that hangs."""
    (attempt,) = found.attempts
    assert attempt.stop is not None
    assert attempt.ended is not None
    assert (attempt.stop.failure, attempt.ended.failure) == (Failure.HANG, Failure.HANG)
    assert bench.jobs.cancelled
    return (attempt.stop.detected - bench.time.began).total_seconds()


def test_a_heartbeat_keeps_a_silent_job_alive(bench: Bench) -> None:
    """The log is silent for half an hour while the heartbeat goes on; a hang is seen once that has stood still so long."""
    submitted(bench)
    bench.script.beats_until = 1800.0
    after = stopped_after(bench.follow(), bench)
    assert 1800 + HANG_S < after <= 1800 + HANG_S + 20


def test_spares_are_reserved_while_the_run_goes_on(bench: Bench) -> None:
    """The reservation is renewed before it ends by itself, and ended with the run."""
    submitted(bench)
    bench.script.beats_until = 3900.0
    bench.follow()
    name = f"clusterctl_{RUN}"
    *renewed, last = bench.jobs.reserved
    assert last == (name, ())
    assert set(renewed) == {(name, ("c9",))}
    assert len(renewed) == 3


def test_without_a_heartbeat_the_silence_of_the_log_counts(bench: Bench) -> None:
    submitted(bench)
    after = stopped_after(bench.follow(), bench)
    assert HANG_S < after <= HANG_S + 20


def test_a_job_that_is_shorter_than_a_look_has_useful_time(bench: Bench) -> None:
    """All steps are seen at once, and after the job's end: their seconds, and Slurm's start and end, place them."""
    submitted(bench)
    bench.time.timer.advance(7.0)
    bench.jobs.completes, bench.jobs.lasted_s = True, 5.0
    bench.script.steps = "".join(
        f"iteration {step:8}/ 9 | consumed samples: 1 | elapsed time per iteration (ms): 500.0 |\n"
        for step in range(1, 10)
    ).encode()
    (attempt,) = run_time(bench.follow()).attempts
    assert (attempt.startup, attempt.useful, attempt.detection, attempt.shutdown) == (1.0, 4.0, 0.0, 0.0)


def test_a_heartbeat_of_the_future_is_no_life_for_ever(bench: Bench) -> None:
    """A file that was written once, with a time that is years ahead, is one sign of progress."""
    submitted(bench)
    bench.script.ahead = 3e8
    after = stopped_after(bench.follow(), bench)
    assert HANG_S < after <= HANG_S + 20


@dataclass
class StoppedMeanwhile(FakeJobs):
    """The run is stopped by its user while Slurm takes its job."""

    context: SiteContext | None = None

    def submit(self, submission: Submission, deadline: Deadline) -> str:
        assert self.context is not None
        stopped = JobRunEnded(outcome=JobOutcome.STOPPED.value, reason="enough")
        self.context.journal.append([NewEvent(Stream.JOB, RUN, stopped)])
        return super().submit(submission, deadline)


def test_a_run_that_is_stopped_while_its_job_is_submitted_leaves_no_job(bench: Bench) -> None:
    """The one who stopped it saw no job that could be cancelled."""
    bench.jobs = StoppedMeanwhile(log=bench.jobs.log, began=bench.jobs.began, context=bench.context)
    found = bench.follow()
    assert (found.outcome, bench.jobs.cancelled) == (JobOutcome.STOPPED, ["11"])


def test_an_unanswered_submission_is_made_again_while_the_scheduler_would_know_it(bench: Bench) -> None:
    """Within the time that Slurm remembers jobs, one that it does not know was not submitted."""
    bench.time.timer.advance(REMEMBERED.total_seconds() - 60)
    bench.jobs.completes = True
    found = bench.follow()
    assert (found.outcome, found.jobs) == (JobOutcome.COMPLETED, ("11",))
    assert [one.comment for one in bench.jobs.submitted] == ["clusterctl:x:1"]


def test_a_scheduler_that_is_silent_for_a_while_ends_no_run(bench: Bench) -> None:
    """Its daemon is started again: the watcher asks again, submits once, and goes on."""
    bench.jobs.silent, bench.jobs.completes = 3, True
    assert bench.follow().outcome is JobOutcome.COMPLETED
    assert len(bench.jobs.submitted) == 1


def test_a_scheduler_that_stays_silent_ends_the_watcher_and_not_the_run(bench: Bench) -> None:
    bench.jobs.silent = 1000
    with pytest.raises(EdgeError, match="contact"):
        bench.follow()
    assert bench.jobs.submitted == []
    (event,) = bench.context.journal.latest(Stream.JOB, Kind.JOB_RUN_ORDERED)
    assert named(bench.context, event.subject).outcome is None


def test_an_unanswered_submission_is_not_made_again_later(bench: Bench) -> None:
    """After that time nothing shows whether it was made: the run asks, and no second job is submitted."""
    bench.time.timer.advance(REMEMBERED.total_seconds() + 1)
    found = bench.follow()
    assert found.outcome is JobOutcome.ASKS
    assert "unknown whether attempt 1 was submitted" in found.reason
    assert bench.jobs.submitted == []


def test_a_submission_that_the_scheduler_knows_is_taken_over_at_any_time(bench: Bench) -> None:
    bench.time.timer.advance(86400)
    bench.jobs.known, bench.jobs.completes = "11", True
    found = bench.follow()
    assert (found.outcome, found.jobs, bench.jobs.submitted) == (JobOutcome.COMPLETED, ("11",), [])


def test_the_output_of_all_ranks_is_no_log_of_the_node_that_it_was_read_on() -> None:
    """An innocent batch host was blamed for what another rank had printed; a job of one node has one host."""
    job = ScheduledJob(job="7", state="FAILED", stdout="/home/ann/slurm-7.out", stderr="/home/ann/slurm-7.out")
    files = {"kernel.log": b"k", "000-slurm-7.out": b"o", "001-rank_0.log": b"r"}
    assert of_all_ranks(job, ("c1", "c2"), files) == {"000-slurm-7.out": b"o"}
    assert of_all_ranks(job, ("c1",), files) == {}


def test_a_dead_daemon_is_no_lost_host() -> None:
    """Slurm ends the job with NODE_FAIL for both: the host that answers, and has not booted meanwhile, is not lost."""
    failed = ScheduledJob(job="7", state="NODE_FAIL")
    states = {"n1": "idle", "n2": "down*", "n3": "down*", "n4": "down"}
    assert lost_of(failed, states, unread=["n2"], running=["n1", "n3", "n4"]) == LostNodes(
        nodes=("n2", "n4"), silent=("n3",)
    )
    booted = lost_of(failed, states, unread=[], running=["n1"])
    assert booted == LostNodes(nodes=("n2", "n3", "n4"))
    for state in ("RUNNING", "FAILED"):
        runs = ScheduledJob(job="7", state=state)
        seen = {"n1": "allocated", "n2": "allocated*", "n3": "allocated*", "n4": "allocated"}
        found = lost_of(runs, seen, unread=["n2", "n4"], running=["n1"])
        assert found == LostNodes(nodes=("n2",), silent=("n3",))


def test_old_collections_are_removed_and_nothing_else(tmp_path: Path) -> None:
    """By the time of their last change; a link is left, and what it leads to, too."""
    base, elsewhere = tmp_path / "jobs", tmp_path / "elsewhere"
    now = datetime(2026, 11, 28, tzinfo=UTC)
    for job, run, days in (("7", "a", 100), ("7", "b", 10), ("8", "a", 100)):
        folder = JobFolder(base / job / run)
        folder.add("c1", {"kernel.log": b"x"})
        folder.close({"version": 1}, ())
        at = (now - timedelta(days=days)).timestamp()
        os.utime(folder.path, (at, at))
    (base / "8" / "progress.json").write_text("{}")
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (base / "9").mkdir()
    (base / "9" / "link").symlink_to(elsewhere)
    os.utime(base / "9" / "link", (0, 0), follow_symlinks=False)
    os.utime(base / "8" / "progress.json", (0, 0))
    old = old_folders(base, now - timedelta(days=90))
    assert [str(one.relative_to(base)) for one in old] == ["7/a", "8/a", "8/progress.json"]
    assert remove_folders(old) == 3
    assert sorted(one.name for one in base.iterdir()) == ["7", "9"]
    assert [one.name for one in (base / "7").iterdir()] == ["b"]
    assert (elsewhere / "kept").exists()
    assert old_folders(tmp_path / "none", now) == ()


def test_compact_removes_what_the_site_no_longer_keeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The preview counts it; the site sets the days."""
    from clusterctl_cli.main import run

    site = write_site(tmp_path)
    with (site / "site.yml").open("a") as file:
        file.write("\njobs: {keep_days: 3}\n")
    at = (CLOCK.now() - timedelta(days=4)).timestamp()
    for name in ("old", "new"):
        folder = site / "state" / "jobs" / "7" / name
        folder.mkdir(parents=True)
    os.utime(site / "state" / "jobs" / "7" / "old", (at, at))
    assert run(["journal", "compact", "--site", str(site), "--dry-run"]) == 0
    shown = capsys.readouterr()
    assert "remove 1 collections of jobs, older than 3 days" in " ".join((shown.out + shown.err).split())
    assert run(["journal", "compact", "--site", str(site), "--yes"]) == 0
    assert [one.name for one in (site / "state" / "jobs" / "7").iterdir()] == ["new"]
