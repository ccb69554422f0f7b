"""Machines go side by side, reports come as they are known, and an installer that is away costs no machine anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pytest

from clusterctl.edges.installers import Backend, Installers
from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.errors import (
    AuthenticationError,
    CancelledError,
    ClusterctlError,
    EdgeError,
    InstallerUnavailableError,
    ParseError,
)
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId
from clusterctl.ports import BmcAddress, Deadline, InstallState, InstallStatus, InstallTarget
from clusterctl.ports.install import FailureKind, InstallError
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install.job import INSTALLERS_NETWORK
from clusterctl.steps.install.rounds import AT_ONCE, AWAY_S
from clusterctl.steps.install.step import Install, InstallServices
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FakeBmc, FakeBmcs, FakeInstaller, FakeShell, address_of, identified, inventory
from tests.steps.install.test_install import ACCESS, greeting

AWAY = InstallerUnavailableError("the region does not run", where="maas", remedy="start it")


@dataclass
class SlowInstaller(FakeInstaller):
    """The start of `slow` is answered only when `answer` is set."""

    slow: str = ""
    answer: threading.Event = field(default_factory=threading.Event)
    asked: threading.Event = field(default_factory=threading.Event)
    looks: list[list[str]] = field(default_factory=list)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        self.looks.append([target.name for target in targets])
        return super().observe(targets, deadline)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        if target.name == self.slow:
            self.asked.set()
            while not self.answer.wait(0.01):
                deadline.check("waiting for the answer")
        return super().start(target, deadline)


@dataclass
class AwayInstaller(FakeInstaller):
    """Away for its looks from `first` on, for `seconds` of `timer`."""

    timer: FakeTimer = field(default_factory=FakeTimer)
    first: int = 0
    seconds: float = 0.0
    looks: int = 0
    since: float | None = None

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        self.looks += 1
        if self.looks > self.first:
            self.since = self.timer.now() if self.since is None else self.since
            if self.timer.now() - self.since < self.seconds:
                raise AWAY
        return super().observe(targets, deadline)


@dataclass
class UnstoppableInstaller(SlowInstaller):
    """The start of `slow` goes on in a cancelled run."""

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        if target.name == self.slow:
            self.asked.set()
            self.answer.wait(600)
        return FakeInstaller.start(self, target, deadline)


class NeverDone(FakeInstaller):
    """Its machines stay where they are."""

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        return {target.name: self._status(target.name) for target in targets}


@dataclass
class TimedBmcs(FakeBmcs):
    """Keeps the seconds that each call leaves to the BMC."""

    left: list[float] = field(default_factory=list)

    def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
        self.left.append(deadline.remaining)
        return super().open(address, deadline)


@dataclass
class Run:
    """One batch on these nodes; `messages` are the messages to the operator, `left` the seconds that BMCs had."""

    book: SqlJournal
    names: Sequence[str]
    messages: list[str] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    lacking: Mapping[str, None] = field(default_factory=dict)
    bmcs: type[TimedBmcs] = TimedBmcs

    def outcomes(
        self, installer: FakeInstaller | Installers, deadline: Deadline, away_s: float = 60.0
    ) -> list[StepOutcome]:
        return list(self.running(installer, deadline, away_s))

    def running(
        self, installer: FakeInstaller | Installers, deadline: Deadline, away_s: float = 60.0
    ) -> Iterator[StepOutcome]:
        """Yield the outcomes as the step does. With a fake timer it looks each ten of its seconds."""
        for name in self.names:
            identified(self.book, name, f"SN-{name}")
        bmcs = self.bmcs({name: FakeBmc(inventory(f"SN-{name}")) for name in self.names}, self.left)
        shell = FakeShell({name: greeting(name) for name in self.names})
        services = InstallServices(installer, shell, bmcs, address_of)
        step = Install(
            services,
            ACCESS,
            INSTALLERS_NETWORK,
            poll_s=10 if isinstance(deadline.timer, FakeTimer) else 0.01,
            away_s=away_s,
        )
        nodes = [replace(self.book.state(NodeId(f"id-{name}")), **self.lacking) for name in self.names]
        claims = self.book.claim([node.id for node in nodes], "r").granted
        intents = IntentLog(self.book, claims, lambda _node, message: self.messages.append(message))
        yield from step.run(nodes, intents, deadline)


def test_a_slow_act_holds_up_no_other_machine(book: SqlJournal) -> None:
    """The others have their outcome while one machine's request is still waited for; once it alone is left, the installer
    is not asked about nothing.
    """
    installer = SlowInstaller(slow="n1")
    run = Run(book, ["n1", "n2", "n3"])
    outcomes = []
    for outcome in run.running(installer, Deadline.after(120)):
        outcomes.append(outcome)
        if len(outcomes) == 2:
            threading.Timer(0.1, installer.answer.set).start()
    assert [outcome.node for outcome in outcomes][-1] == "id-n1"
    assert {outcome.findings[0].verdict for outcome in outcomes} == {Verdict.PASS}
    assert installer.calls.count(("start", "n1")) == 1
    assert [] not in installer.looks


def test_while_an_act_runs_the_controller_rests(book: SqlJournal) -> None:
    """A request may take minutes: it is waited for, and not looked at all the time."""
    installer, timer = SlowInstaller(slow="n1"), FakeTimer()
    looks: list[int] = []

    def answer() -> None:
        installer.asked.wait(600)
        looks.append(timer.looks)
        threading.Event().wait(0.5)
        looks.append(timer.looks)
        installer.answer.set()

    answering = threading.Thread(target=answer)
    answering.start()
    (outcome,) = Run(book, ["n1"]).outcomes(installer, Deadline.after(3600, timer=timer))
    answering.join()
    assert outcome.findings[0].verdict is Verdict.PASS
    before, after = looks
    assert after - before < 200


def test_stopped_inside_a_slow_act_the_run_ends_at_once(book: SqlJournal) -> None:
    """It waits for no answer; what was sent stays open in the journal, for the next run to look at."""
    installer, cancelled = SlowInstaller(slow="n1"), threading.Event()
    stopper = threading.Thread(target=lambda: (installer.asked.wait(600), cancelled.set()))
    stopper.start()
    with pytest.raises(CancelledError):
        Run(book, ["n1"]).outcomes(installer, Deadline.after(3600, cancelled))
    stopper.join()
    assert not installer.answer.is_set()
    assert [act.act.value for act in book.state(NodeId("id-n1")).open_acts] == ["install.start"]


@pytest.mark.parametrize("lacking", [{"serial": None}, {"root_disk": None, "root_rule": None}, {"inventory": None}])
def test_a_machine_of_which_too_little_is_known_is_not_installed(book: SqlJournal, lacking: Mapping[str, None]) -> None:
    """Its serial, its root disk or its network cards: the installer is asked for nothing, and discover is the remedy."""
    installer = FakeInstaller()
    (outcome,) = Run(book, ["n1"], lacking=lacking).outcomes(installer, Deadline.after(120))
    (finding,) = outcome.findings
    assert (finding.verdict, finding.code.value) == (Verdict.INCONCLUSIVE, "not_installable")
    assert "clusterctl discover" in finding.remedy
    assert installer.calls == []


def test_stopped_it_waits_for_no_act_that_goes_on(book: SqlJournal) -> None:
    """An act may take its own time: the operator has the terminal back before it ends."""
    installer, cancelled = UnstoppableInstaller(slow="n1"), threading.Event()
    stopper = threading.Thread(target=lambda: (installer.asked.wait(600), cancelled.set()))
    stopper.start()
    with pytest.raises(CancelledError):
        Run(book, ["n1"]).outcomes(installer, Deadline.after(3600, cancelled))
    assert not installer.answer.is_set()
    installer.answer.set()
    stopper.join()


def test_when_the_time_is_over_the_bmc_is_asked_all_the_same(book: SqlJournal) -> None:
    """Each BMC has time to answer: the failure names what it reports, and not that no time was left."""
    run, timer = Run(book, ["n1"]), FakeTimer()
    installer = NeverDone(states={"n1": InstallState.INSTALLING})
    (outcome,) = run.outcomes(installer, Deadline.after(200, timer=timer))
    assert "the installer did not finish in time; power is on" in outcome.findings[0].cause
    assert run.left[-1] > 0


@pytest.mark.parametrize("first", [0, 2])
def test_an_installer_that_is_away_fails_nothing_and_its_time_does_not_count(book: SqlJournal, first: int) -> None:
    """Away for longer than the step has in all: the run waits, reports that once and its end, and passes."""
    run = Run(book, ["n1", "n2"])
    timer = FakeTimer()
    outcomes = run.outcomes(
        AwayInstaller(timer=timer, first=first, seconds=1500), Deadline.after(1200, timer=timer), 3600
    )
    assert {outcome.findings[0].verdict for outcome in outcomes} == {Verdict.PASS}
    assert run.messages == [
        *["the region does not run: waiting until it answers (start it)"] * 2,
        *["the installer answers again, after 25 minutes"] * 2,
    ]


@pytest.mark.parametrize(("away_s", "verdict"), [(4 * 3600, Verdict.PASS), (4 * 3600 + 60, Verdict.INCONCLUSIVE)])
def test_an_installer_that_is_away_is_waited_for_four_hours(book: SqlJournal, away_s: float, verdict: Verdict) -> None:
    """A region controller is installed again in an afternoon: the run is still there. One that needs longer is to blame."""
    timer = FakeTimer()
    away = AwayInstaller(timer=timer, seconds=away_s)
    (outcome,) = Run(book, ["n1"]).outcomes(away, Deadline.after(1200, timer=timer), AWAY_S)
    assert outcome.findings[0].verdict is verdict


def test_a_machine_that_is_done_just_in_time_is_installed(book: SqlJournal) -> None:
    """It is seen as installed half a second before the time is over."""
    timer = FakeTimer()

    class InTime(NeverDone):
        def observe(
            self, targets: Sequence[InstallTarget], deadline: Deadline
        ) -> Mapping[str, Observed[InstallStatus]]:
            if timer.now() >= 200:
                self.states["n1"] = InstallState.INSTALLED
            return super().observe(targets, deadline)

    installer = InTime({"n1": InstallState.READY})
    (outcome,) = Run(book, ["n1"]).outcomes(installer, Deadline.after(200.5, timer=timer))
    assert outcome.findings[0].verdict is Verdict.PASS


def test_an_installer_that_stays_away_is_no_machines_failure(book: SqlJournal) -> None:
    """Unmeasured, with the installer to blame."""
    timer = FakeTimer()
    away = AwayInstaller(timer=timer, seconds=600)
    (outcome,) = Run(book, ["n1"]).outcomes(away, Deadline.after(200, timer=timer), away_s=300)
    (finding,) = outcome.findings
    assert (finding.verdict, finding.code.value, finding.subject) == (
        Verdict.INCONCLUSIVE,
        "installer_unavailable",
        "installer",
    )
    assert "the region does not run" in finding.cause


def test_one_of_two_installers_that_is_away_does_not_hold_up_the_other(book: SqlJournal) -> None:
    """The machines of the one that works are installed; those of the other are unmeasured when the time is over."""
    timer = FakeTimer()
    away, works = AwayInstaller(timer=timer, seconds=6000), FakeInstaller()
    both = Installers(lambda name: Backend(away if name == "n1" else works))
    deadline = Deadline.after(2000, timer=timer)
    outcomes = {out.node: out.findings[0] for out in Run(book, ["n1", "n2"]).outcomes(both, deadline, 500)}
    assert outcomes["id-n2"].verdict is Verdict.PASS
    assert (outcomes["id-n1"].verdict, outcomes["id-n1"].code.value) == (Verdict.INCONCLUSIVE, "installer_unavailable")


def test_a_start_that_gives_the_machine_back_for_ever_ends(book: SqlJournal) -> None:
    """Each start leaves the machine ready, and begins nothing: that is trouble, and bounded."""

    class GivesBack(FakeInstaller):
        def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            self.calls.append(("start", target.name))
            return self._status(target.name)

    installer = GivesBack(states={"n1": InstallState.READY})
    (outcome,) = Run(book, ["n1"]).outcomes(installer, Deadline.after(120))
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert len(installer.calls) == 6


def test_a_run_that_begins_late_counts_only_the_time_of_the_absence(book: SqlJournal) -> None:
    """The controller has run for days: the seconds of its clock are not those for which the installer is away."""
    timer = FakeTimer()
    timer.advance(86_400)
    away = AwayInstaller(timer=timer, seconds=1500)
    (outcome,) = Run(book, ["n1"]).outcomes(away, Deadline.after(1200, timer=timer), away_s=3600)
    assert outcome.findings[0].verdict is Verdict.PASS


@dataclass
class FailingLooks(FakeInstaller):
    """Its first `failing` looks fail with `error`."""

    error: ClusterctlError = field(default_factory=lambda: EdgeError("500"))
    failing: int = 0

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        self.failing -= 1
        if self.failing >= 0:
            raise self.error
        return super().observe(targets, deadline)


UNREADABLE = ParseError("a machine has no status_name", where="maas", remedy="report what it answered")


@pytest.mark.parametrize("failing", [5, 6])
@pytest.mark.parametrize("error", [EdgeError("500: internal error", where="maas", remedy="read its log"), UNREADABLE])
def test_looks_that_fail_are_repeated_and_then_each_machines_own_outcome(
    book: SqlJournal, error: ClusterctlError, failing: int
) -> None:
    """Five in a row are waited out; at the sixth all machines have their outcome at once, with the cause and remedy."""
    timer = FakeTimer()
    installer = FailingLooks(error=error, failing=failing)
    outcomes = Run(book, ["n1", "n2"]).outcomes(installer, Deadline.after(3600, timer=timer))
    assert {outcome.node for outcome in outcomes} == {"id-n1", "id-n2"}
    if failing == 5:
        assert {outcome.findings[0].verdict for outcome in outcomes} == {Verdict.PASS}
        return
    assert timer.now() < 100
    for outcome in outcomes:
        assert error.message in outcome.findings[0].cause
        assert error.remedy in outcome.findings[0].remedy


def test_a_rejected_login_at_the_installer_ends_the_run(book: SqlJournal) -> None:
    """It is no machine's: a second try with the same token helps none of them."""
    installer = FailingLooks(error=AuthenticationError("401: the token of MAAS is not valid"), failing=1)
    with pytest.raises(AuthenticationError):
        Run(book, ["n1"]).outcomes(installer, Deadline.after(3600, timer=FakeTimer()))
    assert installer.calls == []


def test_when_the_time_is_over_each_machine_has_its_own_reason(book: SqlJournal) -> None:
    """Of two installers one is away and one is slow: only the second machine's install has failed."""
    timer = FakeTimer()
    away, slow = AwayInstaller(timer=timer, seconds=6000), NeverDone({"n2": InstallState.INSTALLING})
    both = Installers(lambda name: Backend(away if name == "n1" else slow))
    outcomes = Run(book, ["n1", "n2"]).outcomes(both, Deadline.after(200, timer=timer), 500)
    found = {outcome.node: outcome.findings[0] for outcome in outcomes}
    assert (found["id-n1"].verdict, found["id-n1"].cause) == (Verdict.INCONCLUSIVE, "its installer does not answer")
    assert found["id-n2"].verdict is Verdict.FAIL


def test_an_act_that_ends_after_the_time_still_counts(book: SqlJournal) -> None:
    """It was sent before: its answer is the machine's outcome, not that the time is over."""
    timer, asked_the_bmc = FakeTimer(), threading.Event()

    class Refuses(FakeInstaller):
        def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            timer.advance(7200)
            asked_the_bmc.wait(0.5)
            raise InstallError("another owner has it", FailureKind.FOREIGN)

    class WatchedBmcs(TimedBmcs):
        def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
            asked_the_bmc.set()
            return super().open(address, deadline)

    run = Run(book, ["n1"], bmcs=WatchedBmcs)
    (outcome,) = run.outcomes(Refuses({"n1": InstallState.READY}), Deadline.after(3600, timer=timer))
    assert outcome.findings[0].code is Code.NOT_THE_SAME_MACHINE
    assert not asked_the_bmc.is_set()


def test_stopped_it_begins_no_act_that_waits_for_its_turn(book: SqlJournal) -> None:
    """More machines than are worked on at once: after Ctrl-C no further one is started, though the others end."""
    names = [f"n{number}" for number in range(AT_ONCE + 4)]
    full, cancelled, ended = threading.Barrier(AT_ONCE + 1), threading.Event(), threading.Event()

    class Held(FakeInstaller):
        def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            self.calls.append(("start", target.name))
            if not cancelled.is_set():
                full.wait(600)
                ended.wait(600)
            return self._status(target.name)

    installer = Held(dict.fromkeys(names, InstallState.READY))
    before = set(threading.enumerate())
    stopper = threading.Thread(target=lambda: (full.wait(600), cancelled.set()))
    stopper.start()
    with pytest.raises(CancelledError):
        Run(book, names).outcomes(installer, Deadline.after(3600, cancelled))
    ended.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(600)
    assert len(installer.calls) == AT_ONCE
