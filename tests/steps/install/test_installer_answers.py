"""What an installer answers decides what is to be repaired: the machine, the installer, or what an operator decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import (
    AuthenticationError,
    ClaimLostError,
    EdgeError,
    InstallerBusyError,
    InstallerUnavailableError,
    OutcomeUnknownError,
    RootDiskUnclearError,
    UnreachableError,
    UsageError,
)
from clusterctl.fleet.event import Stream
from clusterctl.fleet.finding import Finding, Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.node import Drive, Mac, NodeId, Serial
from clusterctl.fleet.payloads.node import ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, Deadline, InstallState, InstallStatus, InstallTarget
from clusterctl.ports.install import FailureKind, InstallError
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.install.job import INSTALLERS_NETWORK, TargetNetworks
from clusterctl.steps.install.step import TROUBLES, Install, InstallServices
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FakeBmc, FakeBmcs, FakeInstaller, FakeShell, address_of, identified, inventory
from tests.steps.install.test_install import ACCESS, greeting

BUSY = InstallerBusyError("503: no rack controller", remedy="start a rack controller")
AWAY = InstallerUnavailableError("the region does not run", where="maas", remedy="start it")


@dataclass
class Asked(FakeInstaller):
    """Keeps what it was asked: the targets, and the seconds that each look had."""

    targets: list[InstallTarget] = field(default_factory=list)
    looks: list[float] = field(default_factory=list)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self.targets.append(target)
        return super().start(target, deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        self.looks.append(deadline.remaining)
        return super().observe(targets, deadline)


@dataclass
class LoginBmcs(FakeBmcs):
    """BMCs that accept the password `secret` alone, and keep the logins."""

    logins: list[tuple[str, str]] = field(default_factory=list)

    def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
        self.logins.append((address.user, address.password))
        return super().open(address, deadline) if address.password == "secret" else FakeBmc(AuthenticationError("401"))


@dataclass
class Site:
    """A site with the machine n1, whose installer is looked at each 15 seconds of a fake clock, a site's default."""

    book: SqlJournal
    bmc: FakeBmc = field(default_factory=lambda: FakeBmc(inventory("SN-n1")))
    shell: FakeShell = field(default_factory=lambda: FakeShell({"n1": greeting("n1")}))
    networks: TargetNetworks = INSTALLERS_NETWORK
    node: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 3600.0
    bmcs: FakeBmcs | None = None
    intents: IntentLog | None = None
    timer: FakeTimer = field(default_factory=FakeTimer)

    def outcome(self, installer: FakeInstaller) -> StepOutcome:
        if not self.book.state(NodeId("id-n1")).name:
            identified(self.book, "n1", "SN-n1")
        services = InstallServices(installer, self.shell, self.bmcs or FakeBmcs({"n1": self.bmc}), address_of)
        step = Install(services, ACCESS, self.networks, poll_s=15)
        node = replace(self.book.state(NodeId("id-n1")), **self.node)
        self.intents = IntentLog(self.book, self.book.claim([node.id], "r").granted)
        (outcome,) = step.run([node], self.intents, Deadline.after(self.seconds, timer=self.timer))
        return outcome

    def finding(self, installer: FakeInstaller) -> Finding:
        return self.outcome(installer).findings[0]


@pytest.fixture
def site(book: SqlJournal) -> Site:
    return Site(book)


@dataclass
class BusyInstaller(FakeInstaller):
    """Takes no order for `seconds` of `timer`."""

    timer: FakeTimer = field(default_factory=FakeTimer)
    seconds: float = 0.0

    def _trouble(self) -> None:
        if self.timer.now() < self.seconds:
            raise BUSY


def test_a_busy_installer_is_waited_for_ten_minutes(site: Site) -> None:
    """A rack controller restarts: the machine waits, is asked for at each look, and is installed."""
    installer = BusyInstaller({"n1": InstallState.READY}, timer=site.timer, seconds=9.9 * 60)
    assert site.finding(installer).verdict is Verdict.PASS
    assert len(installer.calls) > 10


def test_an_installer_that_is_busy_once_more_is_waited_for_as_long(site: Site) -> None:
    """It took an order in between: the ten minutes count from there."""

    class Twice(BusyInstaller):
        def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            self._trouble()
            self.seconds = self.timer.now() + 2 * 15 + 9.9 * 60
            return super().prepare(target, deadline)

    assert site.finding(Twice(timer=site.timer, seconds=9.9 * 60)).verdict is Verdict.PASS
    assert site.timer.now() > 19 * 60


def test_an_installer_that_stays_busy_is_to_blame(site: Site) -> None:
    """After ten minutes: nothing is known against the machine, and the remedy is the installer's own."""
    finding = site.finding(BusyInstaller({"n1": InstallState.READY}, timer=site.timer, seconds=3600))
    assert site.timer.now() < 10.1 * 60
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.INSTALLER_UNAVAILABLE)
    assert (finding.cause, finding.remedy) == ("503: no rack controller", "start a rack controller")


def test_an_installer_that_goes_away_during_an_act_costs_no_attempt(site: Site) -> None:
    """Its service restarts ten times in a row just as it is asked: none of that counts against the machine."""
    installer = FakeInstaller({"n1": InstallState.READY}, errors=[AWAY] * 10)
    assert site.finding(installer).verdict is Verdict.PASS
    assert len(installer.calls) == 11


def test_an_unclear_root_disk_is_for_the_operator(site: Site) -> None:
    """The rule fits two drives: the installer is asked once, and nothing is written."""
    installer = FakeInstaller({"n1": InstallState.READY}, errors=[RootDiskUnclearError("2 drives", remedy="name one")])
    finding = site.finding(installer)
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.ROOT_DISK_UNCLEAR)
    assert finding.remedy.startswith("name one")
    assert installer.calls == [("start", "n1")]


FINAL = [
    (FailureKind.FOREIGN, Verdict.FAIL, Code.NOT_THE_SAME_MACHINE),
    (FailureKind.OPERATOR, Verdict.INCONCLUSIVE, Code.NEEDS_OPERATOR),
    (FailureKind.LOGIN, Verdict.FAIL, Code.BMC_LOGIN_REFUSED),
]


@pytest.mark.parametrize(("kind", "verdict", "code"), FINAL)
def test_what_no_attempt_can_change_is_not_attempted_again(
    site: Site, kind: FailureKind, verdict: Verdict, code: Code
) -> None:
    """Another owner's machine, a broken one that an operator took out, another BMC login: asked once, its remedy kept."""
    error = InstallError("the installer refuses", kind, remedy="do this first")
    installer = FakeInstaller({"n1": InstallState.READY}, errors=[error] * 5)
    finding = site.finding(installer)
    assert (finding.verdict, finding.code, finding.cause) == (verdict, code, "the installer refuses")
    assert "do this first" in finding.remedy
    assert installer.calls == [("start", "n1")]


@pytest.mark.parametrize(("kind", "verdict", "code"), FINAL)
def test_an_old_failure_that_is_final_is_not_given_back(
    site: Site, kind: FailureKind, verdict: Verdict, code: Code
) -> None:
    """The installer rests in it from before: releasing another owner's machine would destroy its OS."""
    report = InstallStatus(InstallState.FAILED, failure=kind, remedy="do this first")
    installer = FakeInstaller({"n1": InstallState.FAILED}, {"n1": "not yours"}, report=report)
    finding = site.finding(installer)
    assert (finding.verdict, finding.code, finding.cause) == (verdict, code, "not yours")
    assert installer.calls == []


@dataclass
class ComesBack(FakeInstaller):
    """Each start leads back to READY, without an error, with this kind of failure in the installer's report."""

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        for target in targets:
            if self.states.get(target.name) is InstallState.INSTALLING:
                self.states[target.name] = InstallState.READY
        return {target.name: self._status(target.name) for target in targets}


def test_a_machine_that_comes_back_is_started_three_times(site: Site) -> None:
    """Its power is cut in each install: the outcome counts the attempts and is the machine's."""
    report = InstallStatus(InstallState.READY, failure=FailureKind.MACHINE)
    installer = ComesBack({"n1": InstallState.READY}, {"n1": "deployment aborted"}, report=report)
    finding = site.finding(installer)
    assert (finding.verdict, finding.code, finding.deterministic) == (Verdict.FAIL, Code.INSTALL_FAILED, True)
    assert "3 attempts failed; the last: deployment aborted" in finding.cause
    assert installer.calls == [("start", "n1")] * 3


@pytest.mark.parametrize("state", [InstallState.INSTALLED, InstallState.RELEASING, InstallState.ERASING])
def test_a_machine_that_is_given_back_by_an_operator_costs_no_attempt(site: Site, state: InstallState) -> None:
    """It was begun, and is given back by hand: all three attempts are left, of which each fails here."""
    taken: list[str] = []

    class TakenBack(ComesBack):
        def observe(
            self, targets: Sequence[InstallTarget], deadline: Deadline
        ) -> Mapping[str, Observed[InstallStatus]]:
            if self.calls and not taken:
                taken.append("n1")
                self.states["n1"] = state
            elif self.states["n1"] is state:
                self.states["n1"] = InstallState.READY
            return super().observe(targets, deadline)

    site.shell = FakeShell({})
    report = InstallStatus(InstallState.READY, failure=FailureKind.MACHINE)
    installer = TakenBack({"n1": InstallState.READY}, report=report)
    assert "3 attempts failed" in site.finding(installer).cause
    assert installer.calls == [("start", "n1")] * 4


def test_a_machine_that_comes_back_for_a_final_reason_is_started_once(site: Site) -> None:
    """An operator took it out meanwhile: nothing is known against it."""
    report = InstallStatus(InstallState.READY, failure=FailureKind.OPERATOR)
    installer = ComesBack({"n1": InstallState.READY}, {"n1": "marked broken"}, report=report)
    assert site.finding(installer).code is Code.NEEDS_OPERATOR
    assert installer.calls == [("start", "n1")]


@pytest.mark.parametrize(("kind", "verdict"), [(FailureKind.POWER, Verdict.FAIL), (FailureKind.MACHINE, Verdict.PASS)])
def test_we_log_in_ourselves_only_where_power_failed(site: Site, kind: FailureKind, verdict: Verdict) -> None:
    """The BMC refuses us. That ends the attempts where the installer could not use it either, and nowhere else."""
    site.bmc = FakeBmc(AuthenticationError("401"))
    installer = FakeInstaller({"n1": InstallState.READY}, errors=[InstallError("it failed", kind)])
    finding = site.finding(installer)
    assert (finding.verdict, finding.code is Code.BMC_LOGIN_REFUSED) == (verdict, verdict is Verdict.FAIL)


def test_we_log_in_once_however_often_power_fails(site: Site) -> None:
    """The second failure of power repeats no login of ours: BMCs count them, and lock accounts."""
    bmcs = LoginBmcs({"n1": site.bmc})
    site.bmcs = bmcs
    power = InstallError("power error", FailureKind.POWER)
    assert site.finding(FakeInstaller({"n1": InstallState.READY}, errors=[power] * 2)).verdict is Verdict.PASS
    assert len(bmcs.logins) == 1


@pytest.mark.parametrize("times", [TROUBLES, TROUBLES + 1])
def test_trouble_that_stays_keeps_the_remedy_of_the_installer(site: Site, times: int) -> None:
    """Five refusals in a row are waited out; the sixth is the machine's failure, with the remedy that came with it."""
    error = EdgeError("the pool is full", remedy="free an address of the pool")
    installer = FakeInstaller({"n1": InstallState.READY}, errors=[error] * times)
    finding = site.finding(installer)
    if times == TROUBLES:
        assert finding.verdict is Verdict.PASS
        return
    assert finding.verdict is Verdict.FAIL
    assert "the pool is full" in finding.cause
    assert finding.remedy == "n1: free an address of the pool"
    assert installer.calls == [("start", "n1")] * times


def test_a_failure_without_a_reason_is_named_as_one(site: Site) -> None:
    """An installer that gives no text leaves no empty cause."""
    installer = FakeInstaller({"n1": InstallState.INSTALLING}, report=InstallStatus(InstallState.ABSENT))
    site.shell = FakeShell({})

    class Silent(FakeInstaller):
        def observe(
            self, targets: Sequence[InstallTarget], deadline: Deadline
        ) -> Mapping[str, Observed[InstallStatus]]:
            answer = super().observe(targets, deadline)
            self.details.clear()
            return answer

    silent = Silent(fails={"n1"}, report=installer.report)
    assert "the installer reports a failure; power is on" in site.finding(silent).cause


def test_a_silent_host_is_looked_for_at_the_host(site: Site) -> None:
    """It is installed, and SSH fails; that its BMC also refuses us is not why: the technician goes to the host."""
    site.bmc, site.shell, site.seconds = FakeBmc(AuthenticationError("401")), FakeShell({}), 100
    finding = site.finding(FakeInstaller())
    assert (finding.code, finding.subject) == (Code.INSTALL_FAILED, "node")
    assert "SSH fails: no route" in finding.cause
    assert "attach a console to n1 (rack A01 U4)" in finding.remedy


def test_a_bmc_that_refuses_us_is_named_where_the_installer_fails(site: Site) -> None:
    """The installer's own words come first, and the password is the remedy."""
    site.bmc = FakeBmc(AuthenticationError("401"))
    finding = site.finding(FakeInstaller(fails={"n1"}))
    assert (finding.code, finding.subject) == (Code.BMC_LOGIN_REFUSED, "bmc")
    assert finding.cause == "Failed deployment: node was never seen; 401"


def test_a_machine_with_an_unknown_network_is_not_installed(site: Site) -> None:
    """It would come up unreachable: the installer is asked for nothing, until the site is corrected."""

    def unknown(_node: NodeState) -> HostNetwork:
        raise UsageError("no port has this name", remedy="name a port of the SKU")

    site.networks = TargetNetworks(network_of=unknown)
    installer = FakeInstaller()
    finding = site.finding(installer)
    assert (finding.verdict, finding.code) == (Verdict.INCONCLUSIVE, Code.NOT_INSTALLABLE)
    assert (finding.remedy, finding.deterministic) == ("name a port of the SKU", False)
    assert installer.calls == []


def test_the_installer_gets_serial_and_wwn_of_the_root_disk(site: Site) -> None:
    """Two drives: MAAS matches the root disk by either, so a WWN of the other drive would be the wrong disk."""
    drives = (
        Drive("1", "NVMe", 9, Serial("DATA"), wwn="eui.2"),
        Drive("0", "M.2", 9, Serial("DISK-SN-n1"), wwn="eui.1"),
    )
    site.node = {"inventory": replace(inventory("SN-n1"), drives=drives)}
    installer = Asked()
    site.outcome(installer)
    (target,) = installer.targets
    assert (target.serial, target.root_disk, target.root_wwn) == ("SN-n1", "DISK-SN-n1", "eui.1")


@pytest.mark.parametrize(
    "known",
    [
        {"inventory": replace(inventory("SN-n1"), drives=None)},
        {"inventory": None, "boot_mac": Mac("02:00:00:00:00:01")},
    ],
    ids=["no drives", "no inventory"],
)
def test_a_machine_with_unknown_drives_is_written_by_the_serial(site: Site, known: Mapping[str, Any]) -> None:
    """No BMC reports its drives: the serial of the root disk alone is the contract."""
    site.node = known
    installer = Asked()
    site.outcome(installer)
    assert (installer.targets[0].root_disk, installer.targets[0].root_wwn) == ("DISK-SN-n1", "")


def test_where_a_rule_chooses_the_disk_no_serial_is_ordered(site: Site) -> None:
    """The host chooses among its drives, also where an earlier install proved one: that drive may have been replaced."""
    site.node = {"root_rule": RootDisk(chosen_by="host", max_bytes=600_000_000_000)}
    installer = Asked()
    site.outcome(installer)
    (target,) = installer.targets
    assert (target.root_disk, target.root_wwn, target.root_rule) == ("", "", site.node["root_rule"])


def test_the_last_look_has_its_time(site: Site) -> None:
    """A look at a large MAAS takes minutes: that the step ends in a few seconds cuts none off."""
    site.seconds, site.shell = 100, FakeShell({})
    installer = Asked()
    site.outcome(installer)
    assert len(installer.looks) >= 7
    assert min(installer.looks) >= 300


def test_refusals_are_counted_from_zero_once_the_machine_moves(site: Site) -> None:
    """Trouble in one state is over when the machine is seen in another: only a row without progress is a failure."""

    class Shaky(FakeInstaller):
        def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            if len(self.calls) < TROUBLES:
                self.calls.append(("prepare", target.name))
                raise UnreachableError("reset by peer")
            return super().prepare(target, deadline)

    installer = Shaky(errors=[EdgeError("409: another action is in progress")] * TROUBLES)
    assert site.finding(installer).verdict is Verdict.PASS
    assert installer.calls.count(("start", "n1")) == TROUBLES + 1


@pytest.mark.parametrize("password", ["wrong", "secret"])
def test_the_installers_login_is_tried_before_its_first_order(site: Site, password: str) -> None:
    """It would try a wrong one many times, and the BMC would lock the account: one login of ours, and no order."""
    bmcs = LoginBmcs({"n1": site.bmc})
    site.bmcs = bmcs
    installer = FakeInstaller(login=BmcAddress("n1", "maas", password))
    finding = site.finding(installer)
    assert bmcs.logins == [("maas", password)]
    if password == "secret":
        assert finding.verdict is Verdict.PASS
        return
    assert (finding.verdict, finding.code) == (Verdict.FAIL, Code.BMC_LOGIN_REFUSED)
    assert installer.calls == []


def test_a_start_that_is_still_at_work_is_not_repeated(site: Site, book: SqlJournal) -> None:
    """The run before was killed after its order: the installer shows the machine ready once more, then as it installs."""

    class Late(FakeInstaller):
        def observe(
            self, targets: Sequence[InstallTarget], deadline: Deadline
        ) -> Mapping[str, Observed[InstallStatus]]:
            answer = super().observe(targets, deadline)
            if self.states["n1"] is InstallState.READY:
                self.states["n1"] = InstallState.INSTALLING
            return answer

    killed_during(book, Act.INSTALL_START)
    installer = Late({"n1": InstallState.READY})
    assert site.finding(installer).verdict is Verdict.PASS
    assert installer.calls == []


def killed_during(book: SqlJournal, act: Act) -> None:
    """A run of n1 ended between an intent and its result."""
    identified(book, "n1", "SN-n1")
    killed = book.claim([NodeId("id-n1")], "killed").granted
    IntentLog(book, killed).intend(NodeId("id-n1"), act, "SN-n1")
    book.release(killed.values())


def test_a_start_with_a_lost_answer_is_looked_at_twice(site: Site) -> None:
    """The request may be at work in the installer, which shows the machine ready once more: it is not started again."""

    class Slow(FakeInstaller):
        def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            self.calls.append(("start", target.name))
            raise OutcomeUnknownError("504")

        def observe(
            self, targets: Sequence[InstallTarget], deadline: Deadline
        ) -> Mapping[str, Observed[InstallStatus]]:
            answer = super().observe(targets, deadline)
            if self.calls and self.states["n1"] is InstallState.READY:
                self.states["n1"] = InstallState.INSTALLING
            return answer

    installer = Slow({"n1": InstallState.READY})
    assert site.finding(installer).verdict is Verdict.PASS
    assert installer.calls == [("start", "n1")]


@pytest.mark.parametrize(
    ("act", "state", "result"),
    [
        (Act.POWER_LOGIN, InstallState.READY, "unknown"),
        (Act.INSTALL_START, InstallState.INSTALLING, "done"),
        (Act.INSTALL_START, InstallState.FAILED, "failed"),
    ],
)
def test_what_a_killed_run_began_gets_the_result_that_a_look_can_show(
    site: Site, book: SqlJournal, act: Act, state: InstallState, result: str
) -> None:
    """What the installer works on shows what came of an order of ours; it shows nothing of a login at the BMC."""
    killed_during(book, act)
    site.outcome(FakeInstaller({"n1": state}))
    seen = [event.payload for event in book.history(Stream.NODE, "id-n1")]
    first = next(one for one in seen if isinstance(one, ActObserved) and one.act is act)
    assert first.result == result


def test_a_machine_that_became_another_runs_gets_no_order(site: Site) -> None:
    """The controller slept between its intent and the order: the order is refused before it is sent."""
    sent: list[str] = []

    class Fenced(FakeInstaller):
        def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
            assert site.intents is not None
            site.intents.lease.lose(NodeId("id-n1"), "run thief has it")
            deadline.check("sending the order")
            sent.append(target.name)
            return super().start(target, deadline)

    with pytest.raises(ClaimLostError, match="run thief"):
        site.outcome(Fenced({"n1": InstallState.READY}))
    assert sent == []
