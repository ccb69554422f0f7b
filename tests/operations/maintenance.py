"""A pool of gold nodes under a scheduler with jobs, for tests of rolling changes. Each of its parts may die at any act."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.journal import Holder, open_journal
from clusterctl.fleet.decisions import maintain
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream, node_event
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.maintenance.plan import Change, MaintenancePlan, WaveRule, Waves
from clusterctl.fleet.maintenance.progress import Progress
from clusterctl.fleet.node import NodeId, Step
from clusterctl.fleet.payloads.maintenance import MaintenanceOrdered
from clusterctl.fleet.payloads.node import NodeQuarantined, StageAdvanced
from clusterctl.operations.context import SiteContext, new_run_id, open_site
from clusterctl.operations.maintenance_rollout import Rollout, moved
from clusterctl.operations.maintenance_status import read
from clusterctl.operations.operation import Control
from clusterctl.operations.partners import PartnerLender
from clusterctl.operations.serial import to_data
from clusterctl.ports import Append, Claim, Deadline, Journal
from clusterctl.ports.scheduler import PREFIX, Draining, Occupancy, Use, is_returnable
from tests.cli.nights import write
from tests.fake_timer import FakeTimer
from tests.steps.fakes import identified

NAMES = ("n1", "n2", "n3", "n4", "n5", "n6")
"""Where only some of them are of a plan, the others are idle."""
PLAN = MaintenancePlan(
    name="driver-580",
    reason="driver 580",
    change=Change(variables={"nvidia_driver_version": "580.95.05"}),
    waves=WaveRule(canary=2, size=2),
    stop_percent=20,
    drain_minutes=60,
)
WAVES = (("n1", "n2"), ("n3", "n4"), ("n5", "n6"))


class Killed(BaseException):
    """The process was killed with signal 9: nothing that follows happens."""


@dataclass
class Life:
    """The life of one process. It ends after act number `until`; 0: it does not end. Acts are counted."""

    until: int = 0
    passed: int = 0

    def boundary(self) -> None:
        self.passed += 1
        self.require()

    def require(self) -> None:
        if self.until and self.passed >= self.until:
            raise Killed


class MortalJournal:
    """A `Journal` in a process that may be killed after each append. A claim of a dead process is free."""

    def __init__(self, journal: Journal, life: Life) -> None:
        self._journal, self._life = journal, life

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        self._life.require()
        found = self._journal.append(events, claim=claim)
        self._life.boundary()
        return found

    def append_each(self, appends: Sequence[Append]) -> Sequence[tuple[Event, ...] | Exception]:
        self._life.require()
        found = self._journal.append_each(appends)
        self._life.boundary()
        return found

    def release(self, claims: Iterable[Claim], rest_s: float = 0.0) -> None:
        self._journal.release(claims, rest_s)

    def __getattr__(self, name: str) -> Any:
        self._life.require()
        return getattr(self._journal, name)


@dataclass
class Cluster:
    """Meets `Scheduler`. `jobs`: how long the job of each node still runs, in looks of the plan at its nodes.

    new_jobs  so long is the next job of a node that is idle and not drained; 0: no job comes
    settling  so long a node that was given back is not known to respond, in looks
    """

    names: Sequence[str] = NAMES
    jobs: dict[str, int] = field(default_factory=dict)
    drains: dict[str, str] = field(default_factory=dict)
    new_jobs: int = 0
    life: Life = field(default_factory=Life)
    most_out: int = 0
    settling: int = 0
    silent: dict[str, int] = field(default_factory=dict)

    def tick(self) -> None:
        """Let time pass: jobs end, and idle nodes get new ones."""
        self.jobs = {name: left - 1 for name, left in self.jobs.items() if left > 1}
        self.silent = {name: left - 1 for name, left in self.silent.items() if left > 1}
        for name in self.names:
            if self.new_jobs and name not in self.jobs and name not in self.drains:
                self.jobs[name] = self.new_jobs

    def look(self, deadline: Deadline) -> Observed[Mapping[str, Occupancy]]:
        self.life.require()
        return Observed({name: self._one(name) for name in self.names})

    def take(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Mapping[str, str]:
        self.life.require()
        had = [name for name in nodes if self._one(name).use is Use.IDLE]
        self.drains.update(dict.fromkeys(had, reason))
        self.life.boundary()
        return {name: "it has work" for name in nodes if name not in had}

    def drain(self, nodes: Sequence[str], reason: str, deadline: Deadline) -> Draining:
        self.life.require()
        refused = {name: self.drains[name] for name in nodes if self.drains.get(name, reason) != reason}
        mine = [name for name in nodes if name not in refused]
        self.drains.update(dict.fromkeys(mine, reason))
        self.most_out = max(self.most_out, sum(one == reason for one in self.drains.values()))
        self.life.boundary()
        waiting = {name: "draining" for name in mine if name in self.jobs}
        return Draining(frozenset(mine) - waiting.keys(), waiting, refused)

    def relabel(self, node: str, reason: str, deadline: Deadline) -> None:
        self.life.require()
        if self.drains.get(node, "").startswith(PREFIX):
            self.drains[node] = reason
        self.life.boundary()

    def give_back(self, nodes: Sequence[str], deadline: Deadline) -> Mapping[str, str]:
        if not nodes:
            return {}
        self.life.require()
        ours = [name for name in nodes if is_returnable(self.drains.get(name, ""))]
        for name in ours:
            del self.drains[name]
            if self.settling:
                self.silent[name] = self.settling
        self.life.boundary()
        return {name: "it is not ours" for name in nodes if name not in ours}

    def _one(self, name: str) -> Occupancy:
        reason = self.drains.get(name, "")
        if name in self.jobs:
            return Occupancy(Use.BUSY, "draining" if reason else "allocated", reason)
        if reason:
            return Occupancy(Use.OUT, "drained", reason)
        return Occupancy(Use.UNKNOWN, "idle*") if name in self.silent else Occupancy(Use.IDLE, "idle")


@dataclass
class FakeChanger:
    """Meets `Changer`: takes nodes through the steps to gold by events alone; `fails`: these fail their burn-in.

    hurt  nodes that were changed while a job ran on them, or while one could begin
    """

    context: SiteContext
    cluster: Cluster
    plan: MaintenancePlan = PLAN
    fails: Collection[str] = ()
    hurt: list[str] = field(default_factory=list)
    calls: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)

    def change(self, names: Sequence[str], partners: Sequence[str]) -> Mapping[str, str]:
        self.calls.append((tuple(names), tuple(partners)))
        for name in names:
            self._one(name)
        return {}

    def _one(self, name: str) -> None:
        reason = f"{PREFIX}maintain:{self.plan.name}"
        if name in self.cluster.jobs or self.cluster.drains.get(name) != reason:
            self.hurt.append(name)
        node = self.context.node(name)
        if not maintain.is_begun(node) or node.stopped_at is not None:
            events = maintain.ordered(node, self.plan.name, self.plan.reason, CLOCK.now())
            self.context.journal.append(events)
        if self.context.node(name).next_step is Step.CONFIGURE:
            self.context.journal.append(passed(node.id, Step.CONFIGURE, Step.CABLE))
        if self.context.node(name).next_step is Step.BURNIN:
            last = (
                [node_event(node.id, quarantine())] if name in self.fails else passed(node.id, Step.BURNIN, Step.ADMIT)
            )
            self.context.journal.append(last)


def passed(node: NodeId, *steps: Step) -> list[NewEvent]:
    return [node_event(node, StageAdvanced(to=step.leads_to, verdict=Verdict.PASS)) for step in steps]


def quarantine() -> NodeQuarantined:
    return NodeQuarantined(
        step=Step.BURNIN, cause="GPU 3 has 2 uncorrectable errors", remedy="replace it", check="gpu_ecc"
    )


@dataclass
class MovableClock:
    """A clock that a test moves on."""

    late: timedelta = timedelta()

    def now(self) -> datetime:
        return datetime.now(UTC) + self.late


def template(folder: Path) -> Path:
    """A site of six gold nodes."""
    site = write(folder)
    rows = [f"{name},10.0.0.{at},SN-{name},A0{1 + at // 3},{4 * at}" for at, name in enumerate(NAMES, start=1)]
    (site / "bmcs.csv").write_text("\n".join(["name,bmc_address,serial,rack,unit", *rows, ""]))
    journal = open_site(site).journal
    for name in ("n5", "n6"):
        identified(journal, name, f"SN-{name}", "gold")
    journal.close()
    return site


@dataclass
class Rig:
    """One pool. Each `run` is another process of the same plan."""

    site: Path
    cluster: Cluster
    clock: MovableClock = field(default_factory=MovableClock)
    hurt: list[str] = field(default_factory=list)
    calls: list[tuple[tuple[str, ...], tuple[str, ...]]] = field(default_factory=list)
    context: SiteContext | None = None

    @classmethod
    def copied(cls, site: Path, folder: Path, cluster: Cluster | None = None, waves: Waves = WAVES) -> Rig:
        """Return a pool of its own, with an order of `PLAN` in its journal."""
        shutil.copytree(site, folder)
        rig = cls(folder, cluster or Cluster())
        order = MaintenanceOrdered(plan=to_data(PLAN), waves=waves, skipped={})
        rig.append([NewEvent(Stream.MAINTENANCE, PLAN.name, order)])
        return rig

    def run(
        self,
        *,
        until: int = 0,
        fails: Collection[str] = (),
        plan: MaintenancePlan = PLAN,
        control: Control | None = None,
        claim: Claim | None = None,
    ) -> Life:
        """Run the plan until its end, or until it is killed at that boundary; return how far it lived."""
        life = Life(until)
        context = self._opened()
        mortal = replace(context, journal=MortalJournal(context.journal, life))  # type: ignore[arg-type]
        self.cluster.life = life
        changer = FakeChanger(mortal, self.cluster, plan, fails, self.hurt, self.calls)
        timer = TickingTimer(self.cluster)
        lender = PartnerLender(mortal, self.cluster, f"maintain:{plan.name}")
        try:
            Rollout(
                context=mortal,
                lender=lender,
                changer=changer,
                plan=plan,
                control=control or Control(),
                clock=self.clock,
                timer=timer,
                claim=claim,
            ).run()
        except Killed:
            pass
        finally:
            self.cluster.life = Life()
            context.journal.close()
        return life

    def resume(self) -> None:
        """Write what an operator's `resume` writes."""
        self.append([moved(PLAN.name, self.progress().stage.RUNNING)])

    def append(self, events: Sequence[NewEvent]) -> None:
        context = self._opened()
        context.journal.append(events)
        context.journal.close()

    def _opened(self) -> SiteContext:
        """Return the site as another process opens it; its files are read once."""
        if self.context is None:
            self.context = open_site(self.site)
            self.context.journal.close()
        site, run = self.context.site, new_run_id()
        return SiteContext(site, open_journal(site.journal_url(), CLOCK, Holder(run, "tester", "maintain")), run)

    def progress(self) -> Progress:
        return self.ending()[0]

    def ending(self) -> tuple[Progress, dict[str, int]]:
        """Return the plan, and how often each node was put back before its steps."""
        context = self._opened()
        found, counts = read(context.journal, PLAN.name), Counter[str]()
        ids = [NodeId(f"id-{name}") for name in NAMES]
        for event in context.journal.histories(ids, [Kind.REVALIDATION_ORDERED]):
            counts[event.subject.removeprefix("id-")] += 1
        context.journal.close()
        assert found is not None
        return found, dict(counts)

    def stages(self) -> dict[str, str]:
        context = self._opened()
        found = {node.name: node.stage.value for node in context.journal.summaries()}
        context.journal.close()
        return found

    def orders(self) -> dict[str, int]:
        return self.ending()[1]


class TickingTimer(FakeTimer):
    """A timer that lets the jobs of a cluster go on with each wait."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__()
        self._cluster = cluster

    def wait(self, event: Any, seconds: float) -> None:
        self._cluster.tick()
        super().wait(event, seconds)


__all__ = ["NAMES", "PLAN", "WAVES", "Cluster", "Killed", "Rig", "quarantine", "template"]
