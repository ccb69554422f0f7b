"""Reboots through the scheduler: drained, rebooted once, checked, back at work; what another drained stays drained."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from clusterctl.edges.journal import Holder, SqlJournal, open_journal
from clusterctl.fleet.errors import CancelledError, UnreachableError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import NodeId, Serial
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import PREFIX, Draining, NodeBoot, Occupancy, Use
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NodePermits, reboot_pool
from clusterctl.steps.scheduler_reboot import RebootedNode, RebootServices, SchedulerReboots
from tests.events import data_of
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FixedClock, identified

NAMES = ("n1", "n2", "n3")
BEFORE = datetime(2026, 5, 1, tzinfo=UTC)
IDLE = NodeBoot(use=Use.IDLE, state="idle", booted=BEFORE)


class KilledError(BaseException):
    """The process was killed with signal 9."""


@dataclass
class Cluster:
    """Meets `Scheduler` and `Reboots`. A reboot takes two looks; a job of `jobs` takes as many as it has left.

    meanwhile  drains by others while a node reboots, by node
    dies_at    the act after which the process is killed
    """

    nodes_: dict[str, NodeBoot] = field(default_factory=lambda: dict.fromkeys(NAMES, IDLE))
    jobs: dict[str, int] = field(default_factory=dict)
    booting: dict[str, int] = field(default_factory=dict)
    meanwhile: dict[str, str] = field(default_factory=dict)
    acts: list[str] = field(default_factory=list)
    most: int = 0
    silent: int = 0
    silent_after: int = 0
    dies_at: str = ""

    def nodes(self, deadline: Deadline) -> Mapping[str, NodeBoot]:
        if self.silent and self.silent_after:
            self.silent_after -= 1
        elif self.silent:
            self.silent -= 1
            raise UnreachableError("no answer", where="scontrol")
        self.jobs = {name: left - 1 for name, left in self.jobs.items() if left > 1}
        for name, left in list(self.booting.items()):
            self.booting[name] = left - 1
            if left == 1:
                del self.booting[name]
                was = self.nodes_[name]
                reason = self.meanwhile.get(name, f"{was.reason} : reboot complete")
                self.nodes_[name] = replace(was, pending=False, booted=BEFORE + timedelta(hours=1), reason=reason)
        return {
            name: replace(node, use=Use.BUSY if name in self.jobs else node.use) for name, node in self.nodes_.items()
        }

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        for name in nodes:
            self.nodes_[name] = replace(self.nodes_[name], use=Use.OUT, state="drain", reason=reason)
            self._acted(f"drain {name}")
        return Draining(out=frozenset(nodes))

    def reboot(self, node: str, deadline: Deadline) -> None:
        deadline.check("ordering")
        self.nodes_[node] = replace(self.nodes_[node], pending=True, down=True)
        self.booting[node] = 2
        self.most = max(self.most, len(self.booting))
        self._acted(f"reboot {node}")

    def resume(self, node: str, deadline: Deadline) -> None:
        self.nodes_[node] = replace(IDLE, booted=self.nodes_[node].booted)
        self._acted(f"resume {node}")

    def give_back(self, nodes: Sequence[str], deadline: Deadline) -> Mapping[str, str]:
        for name in nodes:
            assert self.nodes_[name].reason.startswith(PREFIX)
            self.nodes_[name] = IDLE
            self._acted(f"give back {name}")
        return {}

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        raise AssertionError("the nodes are read by `nodes`")

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        raise AssertionError("busy nodes are drained, too")

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        raise AssertionError("a drain keeps its reason")

    def _acted(self, act: str) -> None:
        self.acts.append(act)
        if act == self.dies_at:
            raise KilledError


@dataclass
class Site:
    book: SqlJournal
    cluster: Cluster = field(default_factory=Cluster)
    troubles: dict[str, str] = field(default_factory=dict)
    checked: list[str] = field(default_factory=list)
    timer: FakeTimer = field(default_factory=FakeTimer)

    def check(self, names: Sequence[str]) -> Mapping[str, str]:
        self.checked += names
        return {name: self.troubles.get(name, "") for name in names}

    def reboot(self, *names: str, cap: int = 8, deadline: Deadline | None = None) -> dict[str, RebootedNode]:
        states = [self.book.state(NodeId(f"id-{name}")) for name in names]
        claims = self.book.claim([state.id for state in states], "r").granted
        services = RebootServices(
            scheduler=self.cluster,
            reboots=self.cluster,
            permits=NodePermits(reboot_pool(self.book, cap), now=self.timer.now),
            checks=self.check,
            drain_s=3600.0,
            poll_s=200.0,
        )
        try:
            run = SchedulerReboots(services, IntentLog(self.book, claims), "ticket 7", "r1")
            until = deadline or Deadline.after(1e5, timer=self.timer)
            return {one.name: one for one in run.reboot([(one, Serial(one.name.upper())) for one in states], until)}
        finally:
            self.book.release(claims.values())

    def events(self, name: str) -> list[tuple[str, dict[str, Any]]]:
        kinds = (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)
        found = self.book.history(Stream.NODE, NodeId(f"id-{name}"))
        return [(event.kind.value, dict(data_of(event))) for event in found if event.kind in kinds]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    book = open_journal(f"sqlite:///{tmp_path}/j.db", FixedClock(), Holder("r", "alice"))
    for name in NAMES:
        identified(book, name, name.upper(), "gold")
    yield Site(book)
    book.close()


def test_drained_rebooted_checked_resumed(site: Site) -> None:
    """In this order, each once, intended with the operator's reason before; nothing is left open."""
    found = site.reboot("n1")
    assert found["n1"].error is None
    assert site.cluster.acts == ["drain n1", "reboot n1", "resume n1"]
    assert site.checked == ["n1"]
    (intended, details), (observed, result) = site.events("n1")
    assert (intended, details["reason"], details["details"]["drain"]) == (
        "act.intended",
        "ticket 7",
        "clusterctl:reboot:r1",
    )
    assert (observed, result["result"]) == ("act.observed", "done")
    assert site.book.state(NodeId("id-n1")).open_acts == ()


def test_a_node_that_drained_itself_keeps_its_reason_until_it_is_back(site: Site) -> None:
    """Its own check had drained it: no second drain hides what for."""
    reason = "clusterctl:gpu_row_remap:20260501T000000Z"
    site.cluster.nodes_["n1"] = replace(IDLE, use=Use.OUT, state="drain", reason=reason)
    assert site.reboot("n1")["n1"].error is None
    assert site.cluster.acts == ["reboot n1", "resume n1"]


@pytest.mark.parametrize("reason", ["fan is noisy", "clusterctl:maintain:driver-580"])
def test_what_another_drained_is_not_touched(site: Site, reason: str) -> None:
    """Neither an operator's drain, nor the drain under which another run works; the others are rebooted."""
    site.cluster.nodes_["n1"] = replace(IDLE, use=Use.OUT, state="drain", reason=reason)
    found = site.reboot("n1", "n2")
    assert reason in str(found["n1"].error)
    assert site.cluster.nodes_["n1"].reason == reason
    assert found["n2"].error is None
    assert site.events("n1") == []


def test_a_drain_by_another_during_the_reboot_stays(site: Site) -> None:
    """The node is rebooted, and stays out with that reason."""
    site.cluster.meanwhile["n1"] = "fan is noisy : reboot complete"
    found = site.reboot("n1")
    assert "fan is noisy" in str(found["n1"].error)
    assert site.cluster.acts == ["drain n1", "reboot n1"]
    assert site.events("n1")[-1][1]["result"] == "failed"


def test_a_node_that_fails_its_checks_stays_out(site: Site) -> None:
    """It is checked again for the time of a boot, then its finding is the error; it gets no work."""
    site.troubles["n1"] = "gpu_row_remap is FAIL: GPU 3 reports a failed row remap"
    found = site.reboot("n1", "n2")
    assert "failed row remap" in str(found["n1"].error)
    assert found["n2"].error is None
    assert site.checked.count("n1") > 1
    assert "resume n1" not in site.cluster.acts


def test_jobs_come_to_their_end_before(site: Site) -> None:
    """A busy node is drained and waits; its permit is not held meanwhile."""
    site.cluster.jobs["n1"] = 9
    found = site.reboot("n1", "n2", cap=1)
    assert [one.error for one in found.values()] == [None, None]
    assert site.cluster.acts.index("resume n2") < site.cluster.acts.index("reboot n1")


def test_a_job_that_does_not_end(site: Site) -> None:
    """The node is given back after the time that was ordered, and never rebooted."""
    site.cluster.jobs["n1"] = 10**6
    found = site.reboot("n1")
    assert "60 min" in str(found["n1"].error)
    assert site.cluster.acts == ["drain n1", "give back n1"]


def test_no_more_reboot_at_once_than_permitted(site: Site) -> None:
    """The cap of the whole journal holds."""
    assert all(one.error is None for one in site.reboot(*NAMES, cap=1).values())
    assert site.cluster.most == 1
    assert sorted(site.cluster.acts) == sorted(
        f"{act} {name}" for name in NAMES for act in ("drain", "reboot", "resume")
    )


def test_a_scheduler_that_is_restarted(site: Site) -> None:
    """Looks without an answer end nothing, once the first one was answered; else nothing is changed."""
    site.cluster.silent = 1
    with pytest.raises(UnreachableError):
        site.reboot("n1")
    assert site.events("n1") == []
    site.cluster.silent_after, site.cluster.silent = 1, 3
    assert site.reboot("n1")["n1"].error is None


def test_a_node_that_the_scheduler_does_not_know(site: Site) -> None:
    """It is the only one that fails."""
    del site.cluster.nodes_["n1"]
    found = site.reboot("n1", "n2")
    assert "does not know it" in str(found["n1"].error)
    assert found["n2"].error is None


@pytest.mark.parametrize("dies_at", ["drain n1", "reboot n1", "resume n1"])
def test_a_killed_run_is_gone_on_with(site: Site, dies_at: str) -> None:
    """After a kill behind any act the same command ends with one reboot and a node at work."""
    site.cluster.dies_at = dies_at
    with pytest.raises(KilledError):
        site.reboot("n1")
    site.cluster.dies_at = ""
    assert site.reboot("n1")["n1"].error is None
    assert site.cluster.acts.count("reboot n1") == 1
    assert site.cluster.nodes_["n1"].use is Use.IDLE
    assert site.book.state(NodeId("id-n1")).open_acts == ()


def test_a_cancelled_run_gives_back_what_it_did_not_reboot(site: Site) -> None:
    """A node whose jobs still run is given back, and nothing is left open."""
    site.cluster.jobs["n1"] = 10**6
    until = Deadline.after(1e5, timer=site.timer)
    site.timer.act_when_waited(until.cancelled.set)
    with pytest.raises(CancelledError):
        site.reboot("n1", deadline=until)
    assert site.cluster.acts == ["drain n1", "give back n1"]
    assert site.book.state(NodeId("id-n1")).open_acts == ()


def test_a_cancelled_reboot_is_gone_on_with(site: Site) -> None:
    """A node that reboots when the run is stopped is brought back by the next one."""
    until = Deadline.after(1e5, timer=site.timer)
    site.cluster.nodes_["n1"] = replace(IDLE, use=Use.OUT, state="drain", reason="clusterctl:gpu_ecc:1")
    site.timer.act_when_waited(until.cancelled.set)
    with pytest.raises(CancelledError):
        site.reboot("n1", deadline=until)
    assert site.reboot("n1")["n1"].error is None
    assert site.cluster.acts.count("reboot n1") == 1
