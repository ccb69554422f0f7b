"""What a supervised run does after an attempt; progress, hangs and slow steps; where it is placed; its downtime."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Event, Payload, Stream
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.fleet.payloads.jobs import (
    JobAttemptEnded,
    JobRunEnded,
    JobRunOrdered,
    JobStopIntended,
    JobSubmitIntended,
    JobSubmitted,
)
from clusterctl.jobs.attribution import JobAction
from clusterctl.jobs.downtime import checkpoint_interval, downtime, poisson_bounds, spares
from clusterctl.jobs.placement import PlacementFacts, place
from clusterctl.jobs.progress import JobProgress, Reading, reader
from clusterctl.jobs.supervision import JobOutcome, Next, SupervisedRun, after, fold
from clusterctl.jobs.watching import judge, parse_slower

T0 = datetime(2026, 11, 1, 12, tzinfo=UTC)
ORDERED = JobRunOrdered(
    script="/x/train.sh",
    arguments=(),
    options=(),
    variables=(),
    nodes=2,
    spares=1,
    folder="/x/logs",
    readers=("frameworks",),
    heartbeat="",
    policy=JobPolicy(retries=2),
)
LOST = JobAttemptEnded(
    attempt=1,
    job="11",
    state="FAILED",
    nodes=2,
    gpus=16,
    launched=T0,
    first_at=T0 + timedelta(minutes=5),
    first=1,
    last_at=T0 + timedelta(minutes=65),
    last=60,
    saved=40,
    saved_at=T0 + timedelta(minutes=45),
    saving_s=120.0,
    saves=2,
    detected=T0 + timedelta(minutes=70),
    stopped=T0 + timedelta(minutes=71),
    failure=Failure.CRASH,
    layer=Layer.HARDWARE,
    certainty=Certainty.PROVEN,
    hosts=("n2",),
    action=JobAction.RESTART_WITHOUT.value,
    cause="GPU lost",
)


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def run_of(*ended: JobAttemptEnded, more: tuple[Payload, ...] = (), policy: JobPolicy | None = None) -> SupervisedRun:
    """A run whose attempts ended so."""
    ordered = replace(ORDERED, policy=policy or ORDERED.policy)
    payloads: list[Payload] = [ordered]
    for one in ended:
        nodes = ("n1", "n2")
        payloads += [
            JobSubmitIntended(attempt=one.attempt, nodes=nodes, avoided=(), comment=f"c{one.attempt}"),
            JobSubmitted(attempt=one.attempt, job=one.job),
            one,
        ]
    events = [
        Event(seq, Stream.JOB, "run-1", T0, "r", "ann", payload) for seq, payload in enumerate([*payloads, *more])
    ]
    found = fold(events)
    assert found is not None
    return found


def second(**changes: object) -> JobAttemptEnded:
    """A second attempt, which fails by its program."""
    program = {"layer": Layer.APPLICATION, "action": JobAction.RESTART.value, "hosts": (), "cause": "it crashed"}
    values = {"launched": at(80), "stopped": at(120), **program, **changes}
    return replace(LOST, attempt=2, job="12", **values)  # type: ignore[arg-type]


def test_a_host_that_is_to_blame_is_left_out_and_drained() -> None:
    found = run_of(LOST)
    assert after(found) == Next(outcome=None, reason="GPU lost", drain=("n2",))
    assert found.suspects == ("n2",)


@pytest.mark.parametrize(
    "ended",
    [
        replace(LOST, certainty=Certainty.UNKNOWN),
        replace(LOST, layer=Layer.APPLICATION),
        replace(LOST, hosts=("n1", "n2", "n3")),
        replace(LOST, action=JobAction.RESTART.value),
    ],
)
def test_no_drain_without_evidence(ended: JobAttemptEnded) -> None:
    """Neither by an unknown cause, nor for a program, nor of many hosts at a time."""
    assert after(run_of(ended)).drain == ()


def test_only_proven_hardware_is_quarantined_and_only_by_policy() -> None:
    policy = replace(ORDERED.policy, quarantine=True)
    assert after(run_of(LOST, policy=policy)).quarantine == ("n2",)
    for other in (replace(LOST, certainty=Certainty.LIKELY), replace(LOST, layer=Layer.FABRIC)):
        assert after(run_of(other, policy=policy)).quarantine == ()
    assert after(run_of(LOST)).quarantine == ()


def test_what_a_user_could_have_written_takes_no_host_out() -> None:
    """A run that its user submits drains by the kernel's log, a BMC or the scheduler alone; so does the site's rule."""
    own = replace(ORDERED, submitter="ada")
    for ended, drain in ((LOST, ()), (replace(LOST, from_host=True), ("n2",))):
        following = after(replace(run_of(ended), ordered=own))
        assert (following.drain, following.proven) == (drain, drain)
    assert after(run_of(LOST)).proven == ()
    assert after(run_of(replace(LOST, from_host=True))).proven == ("n2",)
    assert after(run_of(replace(LOST, from_host=True, certainty=Certainty.LIKELY))).proven == ()


def test_policy_may_forbid_drains() -> None:
    assert after(run_of(LOST, policy=JobPolicy(drain=False))).drain == ()


@pytest.mark.parametrize(
    ("ended", "outcome", "reason"),
    [
        (replace(LOST, state="COMPLETED"), JobOutcome.COMPLETED, "job 11 completed"),
        (replace(LOST, action=JobAction.STOP.value), JobOutcome.ASKS, "stop and ask the user: GPU lost"),
        (replace(LOST, action=JobAction.WAIT.value), JobOutcome.ASKS, "wait for the repair: GPU lost"),
        (replace(LOST, action=JobAction.INVESTIGATE.value), None, "GPU lost"),
    ],
)
def test_what_follows_from_an_attempt(ended: JobAttemptEnded, outcome: JobOutcome | None, reason: str) -> None:
    found = after(run_of(ended))
    assert (found.outcome, found.reason) == (outcome, reason)


def test_the_same_step_twice_is_the_programs() -> None:
    """A second failure of the program at the step of the first asks; that of a host does not."""
    first = replace(LOST, layer=Layer.APPLICATION, action=JobAction.RESTART.value)
    assert after(run_of(first, second(last=60))).outcome is JobOutcome.ASKS
    assert after(run_of(first, second(last=61))).outcome is None
    assert after(run_of(LOST, replace(LOST, attempt=2, job="12"))).outcome is None


def test_attempts_are_bounded() -> None:
    """By their number, and by three that made no step."""
    third = replace(LOST, attempt=3, job="13", last=99)
    assert after(run_of(LOST, second(last=70), third)).outcome is JobOutcome.ASKS
    idle = [replace(LOST, attempt=n, job=str(n), first=None, last=None) for n in (1, 2, 3)]
    found = after(run_of(*idle, policy=JobPolicy(retries=9)))
    assert (found.outcome, found.reason) == (JobOutcome.ASKS, "three attempts in a row made no step")


def test_a_users_stop_outranks_a_restart() -> None:
    stop = JobStopIntended(attempt=1, job="11", failure=Failure.ENDED, reason="enough", detected=T0)
    intent = JobSubmitIntended(attempt=1, nodes=("n1",), avoided=(), comment="c")
    payloads = [ORDERED, intent, JobSubmitted(attempt=1, job="11"), stop, replace(LOST, state="CANCELLED")]
    found = fold(Event(n, Stream.JOB, "run-1", T0, "r", "ann", one) for n, one in enumerate(payloads))
    assert found is not None
    assert after(found) == Next(outcome=JobOutcome.STOPPED, reason="enough")


def test_a_repeated_event_changes_nothing() -> None:
    """A watcher that was killed may write its end again."""
    again = replace(LOST, state="COMPLETED")
    found = run_of(LOST, more=(again, JobSubmitted(attempt=1, job="99"), JobRunEnded(outcome="asks", reason="x")))
    assert found.jobs == ("11",)
    assert found.attempts[0].ended == LOST
    assert found.outcome is JobOutcome.ASKS


def test_pauses_grow_and_are_bounded() -> None:
    policy = JobPolicy(backoff_s=60)
    assert [policy.pause(attempt) for attempt in (1, 2, 3, 9)] == [60, 120, 240, 3600]


@pytest.mark.parametrize(
    ("name", "line", "expected"),
    [
        ("frameworks", "[rank0]: saving checkpoint at iteration     500 to /x", Reading(saving=True)),
        (
            "frameworks",
            "  successfully saved checkpoint from iteration     500 to /x",
            Reading(saved=True, goes_on=True, saved_step=500),
        ),
        ("frameworks", "step: 12  loss: 3.1", Reading(12)),
        ("frameworks", "hello", None),
        ("mllog", ':::MLLOG {"key": "x", "metadata": {"step": 7}}', Reading(7)),
        ("mllog", '0: :::MLLOG {"key": "x", "metadata": {"samples_count": 512}}', Reading(512)),
        ("mllog", ":::MLLOG {broken}", None),
        ("mllog", ':::MLLOG {"metadata": null}', None),
        ("jsonl", '{"step": 5, "step_time": 0.5}', Reading(5, 0.5)),
        ("jsonl", '{"step": 5, "checkpoint": true}', Reading(5, None, saved=True, goes_on=True, saved_step=5)),
        ("jsonl", '{"step": true}', None),
        ("jsonl", f'{{"step": {"9" * 400}}}', None),
        ("jsonl", f'{{"step": 5, "step_time": {"9" * 400}}}', Reading(5)),
        ("jsonl", '{"step": ' + "[" * 1900, None),
        ("jsonl", "[1]", None),
        (r"regex:it (?P<step>\d+) t=(?P<seconds>[\d.]+)", "it 9 t=0.25", Reading(9, 0.25)),
    ],
)
def test_readers(name: str, line: str, expected: Reading | None) -> None:
    assert reader(name)(line) == expected


@pytest.mark.parametrize("name", ["tensorboard", "regex:(", "regex:no group", "regex:(?P<step>a{99999999999})"])
def test_a_wrong_reader_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        reader(name)


def progress_of(*seconds: float) -> tuple[JobProgress, datetime]:
    """Steps that took so long, and when the last of them ended."""
    found, now = JobProgress(), T0
    for number, one in enumerate(seconds, start=1):
        now += timedelta(seconds=one)
        found.add(Reading(number, one), now)
    return found, now


def test_progress_is_counted_once_for_all_ranks() -> None:
    """Equal and older steps of other ranks are no further steps; a save ends where the training goes on."""
    found, now = progress_of(1.0, 1.0, 1.0)
    found.add(Reading(2), now + timedelta(seconds=9))
    found.add(Reading(saving=True), now + timedelta(seconds=10))
    found.add(Reading(saved=True, goes_on=True, saved_step=3), now + timedelta(seconds=40))
    assert (found.steps, found.first, found.last) == (3, 1, 3)
    assert (found.saving_s, found.saves, found.saved) == (30.0, 1, 3)


def test_a_hang_is_learned_from_the_job() -> None:
    """Five times its longest silence, which a slow checkpoint has made longer; never below the floor."""
    policy = JobPolicy(hang_s=30)
    steady, now = progress_of(*[2.0] * 20)
    assert judge(steady, policy, T0, now + timedelta(seconds=30)) is None
    hung = judge(steady, policy, T0, now + timedelta(seconds=31))
    assert hung is not None
    assert hung.failure is Failure.HANG
    uneven, now = progress_of(*[2.0] * 10, 100.0, *[2.0] * 10)
    assert judge(uneven, policy, T0, now + timedelta(seconds=499)) is None
    assert judge(uneven, policy, T0, now + timedelta(seconds=501)) is not None


def test_loading_takes_its_time() -> None:
    """Before the first steps, and while they compile, the limit is that of loading."""
    policy = JobPolicy(setup_s=600, hang_s=30)
    assert judge(JobProgress(), policy, T0, T0 + timedelta(seconds=599)) is None
    assert judge(JobProgress(), policy, T0, T0 + timedelta(seconds=601)) is not None
    first, now = progress_of(100.0, 1.0)
    assert judge(first, policy, T0, now + timedelta(seconds=500)) is None


def test_a_blocking_save_has_the_time_of_loading() -> None:
    """A first checkpoint of many minutes is no hang; the step after it ends that time."""
    policy = JobPolicy(setup_s=1800, hang_s=300)
    found, now = progress_of(*[2.0] * 20)
    found.add(Reading(saving=True), now)
    assert judge(found, policy, T0, now + timedelta(seconds=1700)) is None
    assert judge(found, policy, T0, now + timedelta(seconds=1801)) is not None
    found.add(Reading(21, 2.0), now + timedelta(seconds=40))
    assert (found.saving_s, found.saves) == (40.0, 1)
    assert judge(found, policy, T0, now + timedelta(seconds=341)) is not None


def test_a_watcher_that_begins_late_learns_nothing_from_what_it_missed() -> None:
    """Steps that it reads all at once took no known time: steps as fast as before are not slow against them."""
    policy = JobPolicy(slower_percent=30, slower_batches=10, hang_s=300)
    found, now = JobProgress(), T0 + timedelta(hours=1)
    found.add_all([Reading(number) for number in range(1, 361)], now, watched=False)
    for number in range(361, 400):
        now += timedelta(seconds=10)
        found.add_all([Reading(number)], now)
        assert judge(found, policy, T0, now) is None
    late = now + timedelta(hours=2)
    found.add_all([Reading(number) for number in range(400, 410)], late, watched=False)
    hung = judge(found, policy, T0, late + timedelta(seconds=301))
    assert hung is not None, "two hours without a watcher are no silence of the job"


def test_steps_of_one_look_share_its_time() -> None:
    found = JobProgress()
    found.add_all([Reading(1)], T0)
    found.add_all([Reading(number) for number in range(2, 7)], T0 + timedelta(seconds=10))
    assert list(found.seconds) == [2.0] * 5


def test_steps_of_one_look_were_made_one_after_the_other() -> None:
    """By the seconds of their lines: of a job that was shorter than a look first step, checkpoint and end are apart."""
    found, now = JobProgress(), T0 + timedelta(seconds=60)
    steps = [Reading(step, 2.0) for step in (1, 1, 2, 2, 3, 3)]
    saved = Reading(saved=True, goes_on=True, saved_step=3)
    found.add_all([*steps, saved, Reading(4, 2.0), Reading(10, 1.5)], now, since=T0)
    assert found.last_at == now
    assert found.saved_at == now - timedelta(seconds=2 + 6 * 1.5)
    assert found.first_at == found.saved_at - timedelta(seconds=4)
    assert found.active_at == now


@pytest.mark.parametrize(
    "readings",
    [[Reading(1, 2.0), Reading(2), Reading(3, 2.0)], [Reading(1), Reading(2)], [Reading(1)]],
)
def test_steps_without_seconds_were_made_when_they_were_seen(readings: list[Reading]) -> None:
    found = JobProgress()
    found.add_all(readings, T0 + timedelta(seconds=60), since=T0)
    assert found.first_at == found.last_at == T0 + timedelta(seconds=60)


@pytest.mark.parametrize("seconds", [40.0, 9e11])
def test_no_step_was_made_before_the_start_nor_before_the_last_look(seconds: float) -> None:
    """A user's log may give any number of seconds."""
    found, began = JobProgress(), T0 + timedelta(seconds=30)
    found.add_all([Reading(step, seconds) for step in (1, 2, 3)], T0 + timedelta(seconds=60), since=began)
    assert found.first_at == began
    saved = Reading(saved=True, saved_step=3)
    found.add_all([saved, Reading(4, seconds), Reading(5, seconds)], T0 + timedelta(seconds=70), since=began)
    assert found.saved_at == T0 + timedelta(seconds=60)


@pytest.mark.parametrize(
    ("last", "slow"),
    [([1.4] * 5, True), ([1.4, 1.4, 1.2, 1.4, 1.4], False), ([1.4] * 4, False), ([1.4] * 40, True)],
    ids=["five", "one fast among them", "four", "forty between two looks"],
)
def test_slow_steps_in_a_row(last: list[float], slow: bool) -> None:
    """One fast step among them, or one too few, is no verdict: single steps count, no mean."""
    policy = JobPolicy(slower_percent=30, slower_batches=5)
    found, now = progress_of(*[9.0] * 5, *[1.0] * 20, *last)
    verdict = judge(found, policy, T0, now)
    assert (verdict is not None and verdict.failure is Failure.SLOW) is slow


def test_how_slow_is_written() -> None:
    assert parse_slower("30% for 10 batches") == (30, 10)
    for wrong in ("30%", "0% for 10 batches", "30 for ten"):
        with pytest.raises(UsageError):
            parse_slower(wrong)


def test_the_healthiest_nodes_close_together() -> None:
    """Blamed nodes last; of healthy ones those of the fullest leaf; slow pairs after them; ranks by leaf and name."""
    free = [
        PlacementFacts(name="n1", leaf="l1", blamed=1),
        PlacementFacts(name="n2", leaf="l2"),
        PlacementFacts(name="n10", leaf="l2"),
        PlacementFacts(name="n9", leaf="l2"),
        PlacementFacts(name="n3", leaf="l1"),
        PlacementFacts(name="n4", leaf="l1", pairs=0.9),
    ]
    found = place(free, 3, 2)
    assert found is not None
    assert [one.name for one in found.chosen] == ["n2", "n9", "n10"]
    assert [one.name for one in found.spares] == ["n3", "n4"]
    assert [one.reasons for one in found.rest] == ["blamed by 1 jobs"]
    assert place(free, 7, 0) is None


def test_terms_add_up_to_the_wall_clock() -> None:
    """Formulae of docs/reference/downtime.md on two attempts, by hand."""
    done = replace(
        second(state="COMPLETED", layer=Layer.UNKNOWN), first_at=at(84), last_at=at(118), saved_at=at(100),
        saving_s=60.0, saves=1, detected=at(119),
    )  # fmt: skip
    (run,) = downtime([run_of(LOST, done)]).runs
    first, last = run.attempts
    minutes = [
        one / 60 for one in (first.startup, first.saving, first.lost, first.detection, first.shutdown, first.wait)
    ]
    assert minutes == [5, 2, 20, 5, 1, 9]
    assert (last.lost, last.startup) == (0, 240)
    assert run.elapsed == 120 * 60
    assert run.restart == 240
    assert run.downtime == (2 + 20 + 5 + 1) * 60 + 60 + 60 + 60 + 240
    assert run.hardware == (20 + 5 + 1 + 4) * 60


def test_an_attempt_without_a_step_and_one_without_times() -> None:
    """The first is start-up until its end was noticed; the second is named, and counts nothing."""
    none = replace(LOST, first=None, first_at=None, last=None, last_at=None, saved=None, saved_at=None, saving_s=0.0)
    (run,) = downtime([run_of(none, second(stopped=None))]).runs
    assert (run.attempts[0].startup, run.attempts[0].useful, run.attempts[0].lost) == (70 * 60, 0, 0)
    assert run.unknown == ("12",)


def test_shares_of_hardware() -> None:
    """The mean over runs, and weighted by GPU hours: a long healthy run counts more there."""
    long = replace(LOST, state="COMPLETED", gpus=48, last_at=at(650), detected=at(650), stopped=at(650))
    found = downtime([run_of(LOST), run_of(long)])
    share = 26 / 71
    assert found.hardware_mean == pytest.approx(share / 2)
    assert found.hardware_weighted == pytest.approx(share * 16 * 71 / (16 * 71 + 48 * 650))
    assert found.rate.failures == 1
    assert found.saving_s == 60.0


@pytest.mark.timeout(60)
def test_a_plan_by_failures_of_minutes_takes_no_time() -> None:
    """Three failures in two minutes of four nodes, as in a trial: rate and number of spares are absurd, and known at once."""
    assert spares(8, 500.0, 7.0) == pytest.approx(28_000 + 2.32635 * 28_000**0.5, abs=2)
    assert spares(10_000, 1000.0, 7.0) == pytest.approx(70_000_000 + 2.32635 * 70_000_000**0.5, abs=2)
    assert spares(8, 0.0, 7.0) == 0


def test_published_figures() -> None:
    """Spares of 511 nodes at 4.3 failures of 1000 node-days, and Garwood's table of Poisson bounds."""
    assert [spares(511, 0.0043, days) for days in (7, 14)] == [25, 44]
    assert poisson_bounds(0) == (0.0, pytest.approx(3.689, abs=0.001))
    assert poisson_bounds(10) == (pytest.approx(4.795, abs=0.001), pytest.approx(18.390, abs=0.001))
    assert checkpoint_interval(60, 511, 0.0065) == pytest.approx((2 * 60 * 86400 / (511 * 0.0065)) ** 0.5)
    assert checkpoint_interval(60, 511, 0.0) is None
