"""Watchers of users' runs: which runs get one, as which user, and when one that is gone is started again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from clusterctl.fleet.event import NewEvent, Stream
from clusterctl.fleet.payloads.jobs import JobRunEnded
from clusterctl.fleet.payloads.runs import ProcessIdentity, RunBegun, RunEnded
from clusterctl.operations import runs
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_inputs import JobRunRequest
from clusterctl.operations.job_run import claim_of
from clusterctl.operations.job_watchers import PAUSE, keep_watched, latest_watcher, require_watcher
from clusterctl.operations.runs import RunState
from tests.edges.slurm.job_site import job_site
from tests.operations.written_orders import WrittenOrders

USER = "ada"
RUN = "run-1"
ORDER = JobRunRequest(script="/home/ada/train.sh", folder="/home/ada/logs")


@dataclass
class LaterClock:
    """The system's clock, so much later."""

    later: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.later


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """A site with one open run of a user."""
    with job_site(tmp_path) as site:
        order(site.context, RUN, USER)
        yield site.context


def order(context: SiteContext, run: str, submitter: str) -> None:
    context.journal.append([NewEvent(Stream.JOB, run, ORDER.ordered(submitter))])


def end(context: SiteContext, watcher: str, process: ProcessIdentity | None = None) -> None:
    """Let a watcher begin and end; with a process that does not live it was killed, and recorded no end."""
    events = [NewEvent(Stream.RUN, watcher, RunBegun(process=process or runs.this_process()))]
    if process is None:
        events.append(NewEvent(Stream.RUN, watcher, RunEnded(exit_code=3, text="the scheduler does not answer")))
    context.journal.append(events)


def killed() -> ProcessIdentity:
    """Return a process of this machine that ended: its number was given to another one since."""
    return replace(runs.this_process(), started="1")


def test_a_run_without_a_watcher_gets_one(context: SiteContext) -> None:
    """The service was ended between order and watcher: it is started as the user who ordered, and only once."""
    watchers = WrittenOrders()
    assert keep_watched(context, watchers) == (RUN,)
    (actor,) = {event.actor for event in context.journal.history(Stream.JOB, RUN)}
    assert (watchers.runs, watchers.actors) == ([RUN], [actor])
    assert keep_watched(context, watchers, LaterClock(2 * PAUSE)) == (), "the first one lives"


@pytest.mark.parametrize("process", [None, killed()], ids=["ended with an error", "killed"])
def test_a_watcher_that_is_gone_is_started_again_after_a_pause(
    context: SiteContext, process: ProcessIdentity | None
) -> None:
    """Not at once, so that one that fails at its begin is not started again and again."""
    watchers = WrittenOrders()
    end(context, require_watcher(context, RUN, watchers).name, process)
    found = latest_watcher(context, RUN)
    assert found is not None
    assert found.state is (RunState.LOST if process else RunState.ENDED)
    assert keep_watched(context, watchers) == ()
    assert keep_watched(context, watchers, LaterClock(PAUSE)) == (RUN,)
    assert watchers.runs == [RUN, RUN]
    assert keep_watched(context, watchers, LaterClock(PAUSE)) == ()


def test_a_watcher_on_a_machine_that_is_lost_is_started_elsewhere(context: SiteContext) -> None:
    """Nothing is known of its process; while it lives, it has the claim on the run."""
    watchers = WrittenOrders()
    elsewhere = replace(runs.this_process(), host="other", boot="another boot", machine="another machine")
    end(context, require_watcher(context, RUN, watchers).name, elsewhere)
    subject = claim_of(RUN)
    claim = context.journal.claim([subject], "its run").granted[subject]
    assert keep_watched(context, watchers, LaterClock(2 * PAUSE)) == ()
    context.journal.release([claim])
    assert keep_watched(context, watchers) == (), "it has just begun"
    assert keep_watched(context, watchers, LaterClock(2 * PAUSE)) == (RUN,)
    assert watchers.runs == [RUN, RUN]


def test_runs_that_need_no_watcher_get_none(context: SiteContext) -> None:
    """One that is over, and one of an operator, whose own command follows it."""
    order(context, "run-2", "")
    context.journal.append([NewEvent(Stream.JOB, RUN, JobRunEnded(outcome="stopped", reason="by its user"))])
    watchers = WrittenOrders()
    assert keep_watched(context, watchers, LaterClock(timedelta(days=1))) == ()
    assert watchers.runs == []
