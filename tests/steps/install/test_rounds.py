"""Machines go side by side, reports come as they are known, and an installer that is away costs no machine anything."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from clusterctl.edges.installers import Backend, Installers
from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.errors import CancelledError, InstallerAwayError
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Deadline, InstallState, InstallStatus, InstallTarget
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import Outcome
from clusterctl.steps.install.job import INSTALLERS_NETWORK
from clusterctl.steps.install.step import Install, InstallServices
from tests.steps.fakes import FakeBmc, FakeBmcs, FakeInstaller, FakeShell, address_of, identified, inventory
from tests.steps.install.test_install import ACCESS, greeting

AWAY = InstallerAwayError("the region does not run", where="maas", remedy="start it")


@dataclass
class SlowInstaller(FakeInstaller):
    """The start of `slow` is answered only when `answer` is set."""

    slow: str = ""
    answer: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        if target.name == self.slow:
            self.asked.set()
            while not self.answer.wait(0.01):
                deadline.check("waiting for the answer")
        return super().start(target, deadline)


@dataclass
class AwayInstaller(FakeInstaller):
    """Away for its looks from `first` on, for `seconds`."""

    first: int = 0
    seconds: float = 0.0
    looks: int = 0
    since: float = 0.0

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        self.looks += 1
        if self.looks > self.first:
            self.since = self.since or time.monotonic()
            if time.monotonic() - self.since < self.seconds:
                raise AWAY
        return super().observe(targets, deadline)


@dataclass
class Run:
    """One batch on these nodes; `messages` are what the operator was told."""

    book: SqlJournal
    names: Sequence[str]
    messages: list[str] = field(default_factory=list)

    def outcomes(
        self, installer: FakeInstaller | Installers, deadline: Deadline, away_s: float = 60.0
    ) -> list[Outcome]:
        for name in self.names:
            identified(self.book, name, f"SN-{name}")
        bmcs = FakeBmcs({name: FakeBmc(inventory(f"SN-{name}")) for name in self.names})
        shell = FakeShell({name: greeting(name) for name in self.names})
        services = InstallServices(installer, shell, bmcs, address_of)
        step = Install(services, ACCESS, INSTALLERS_NETWORK, poll_s=0.01, away_s=away_s)
        nodes = [self.book.state(NodeId(f"id-{name}")) for name in self.names]
        claims = self.book.claim([node.id for node in nodes], "r").granted
        intents = IntentLog(self.book, claims, lambda _node, message: self.messages.append(message))
        return list(step.run(nodes, intents, deadline))


def test_a_slow_act_holds_up_no_other_machine(book: SqlJournal) -> None:
    """The others have their outcome while one machine's request is still waited for."""
    installer = SlowInstaller(slow="n1")
    run = Run(book, ["n1", "n2", "n3"])
    threading.Timer(1.0, installer.answer.set).start()
    outcomes = run.outcomes(installer, Deadline.after(20))
    assert [outcome.node for outcome in outcomes][-1] == "id-n1"
    assert {outcome.findings[0].verdict for outcome in outcomes} == {Verdict.PASS}
    assert installer.calls.count(("start", "n1")) == 1


def test_stopped_inside_a_slow_act_the_run_ends_at_once(book: SqlJournal) -> None:
    """It waits for no answer; what was sent stays open in the journal, for the next run to look at."""
    installer, cancelled = SlowInstaller(slow="n1"), threading.Event()
    stopper = threading.Thread(target=lambda: (installer.asked.wait(10), cancelled.set()))
    stopper.start()
    begun = time.monotonic()
    with pytest.raises(CancelledError):
        Run(book, ["n1"]).outcomes(installer, Deadline.after(60, cancelled))
    stopper.join()
    assert time.monotonic() - begun < 10
    assert [act.act.value for act in book.state(NodeId("id-n1")).open_acts] == ["install.start"]


@pytest.mark.parametrize("first", [0, 2])
def test_an_installer_that_is_away_fails_nothing_and_its_time_does_not_count(book: SqlJournal, first: int) -> None:
    """Away for longer than the step has in all: the run waits, says so once, says when it goes on, and passes."""
    run = Run(book, ["n1", "n2"])
    outcomes = run.outcomes(AwayInstaller(first=first, seconds=1.5), Deadline.after(1.2))
    assert {outcome.findings[0].verdict for outcome in outcomes} == {Verdict.PASS}
    assert run.messages == [
        *["the region does not run: waiting until it answers (start it)"] * 2,
        *["the installer answers again, after 0 minutes"] * 2,
    ]


def test_an_installer_that_stays_away_is_no_machines_failure(book: SqlJournal) -> None:
    """Unmeasured, with the installer to blame."""
    (outcome,) = Run(book, ["n1"]).outcomes(AwayInstaller(seconds=60), Deadline.after(20), away_s=0.3)
    (finding,) = outcome.findings
    assert (finding.verdict, finding.code.value, finding.subject) == (
        Verdict.INCONCLUSIVE,
        "installer_away",
        "installer",
    )
    assert "the region does not run" in finding.cause


def test_one_of_two_installers_that_is_away_does_not_hold_up_the_other(book: SqlJournal) -> None:
    """The machines of the one that works are installed; those of the other are unmeasured when the time is over."""
    away, works = AwayInstaller(seconds=60), FakeInstaller()
    both = Installers(lambda name: Backend(away if name == "n1" else works))
    outcomes = {
        outcome.node: outcome.findings[0] for outcome in Run(book, ["n1", "n2"]).outcomes(both, Deadline.after(2), 0.5)
    }
    assert outcomes["id-n2"].verdict is Verdict.PASS
    assert (outcomes["id-n1"].verdict, outcomes["id-n1"].code.value) == (Verdict.INCONCLUSIVE, "installer_away")


def test_a_start_that_gives_the_machine_back_for_ever_ends(book: SqlJournal) -> None:
    """Each start leaves the machine ready, and begins nothing: that is trouble, and bounded."""

    class GivesBack(FakeInstaller):
        def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            self.calls.append(("start", target.name))
            return self._status(target.name)

    installer = GivesBack(states={"n1": InstallState.READY})
    (outcome,) = Run(book, ["n1"]).outcomes(installer, Deadline.after(20))
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert len(installer.calls) == 6
