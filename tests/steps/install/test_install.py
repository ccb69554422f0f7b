"""install looks first and acts second: nothing is installed twice, nothing of others is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.acts import Act
from clusterctl.fleet.errors import (
    AuthenticationError,
    EdgeError,
    OutcomeUnknownError,
    UnreachableError,
    UntrustedError,
)
from clusterctl.fleet.event import Stream
from clusterctl.fleet.finding import Observed, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import NodeId
from clusterctl.ports import Deadline, HostAddress, InstallState, InstallStatus, InstallTarget, LogEntry, Ran
from clusterctl.ports.install import FailureKind, InstallError
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.step import StepOutcome
from clusterctl.steps.executor.step_queue import StepLimits, StepQueue
from clusterctl.steps.install.confirm import HostAccess
from clusterctl.steps.install.job import INSTALLERS_NETWORK
from clusterctl.steps.install.step import ATTEMPTS, Install, InstallServices
from tests.events import data_of
from tests.fake_timer import FakeTimer
from tests.steps.fakes import FakeBmc, FakeBmcs, FakeInstaller, FakeShell, address_of, identified, inventory

ACCESS = HostAccess(
    "ops",
    "ssh-ed25519 AAAA controller",
    "/key",
    host_key=lambda name: (f"private {name}", f"public {name}"),
    new_host_key=lambda name: (f"new private {name}", f"new public {name}"),
)
HANGS = LogEntry("2026-01-01", "Critical", "POST hangs at 0x92")


def install(
    book: SqlJournal,
    installer: FakeInstaller,
    shell: FakeShell,
    names: list[str],
    *,
    bmc: FakeBmc | None = None,
    deadline: Deadline | None = None,
) -> dict[str, StepOutcome]:
    for name in names:
        if not book.state(NodeId(f"id-{name}")).name:
            identified(book, name, f"SN-{name}")
    bmcs = FakeBmcs({name: bmc or FakeBmc(inventory(f"SN-{name}"), (HANGS,)) for name in names})
    step = Install(InstallServices(installer, shell, bmcs, address_of), ACCESS, INSTALLERS_NETWORK, poll_s=0.01)
    nodes = [book.state(NodeId(f"id-{name}")) for name in names]
    claims = book.claim([node.id for node in nodes], "r").granted
    outcomes = step.run(nodes, IntentLog(book, claims), deadline or Deadline.after(120))
    return {outcome.node.removeprefix("id-"): outcome for outcome in outcomes}


def greeting(name: str) -> str:
    return f"0b00-7\n{name}\n"


def test_a_machine_goes_from_unknown_to_installed(book: SqlJournal) -> None:
    """It is prepared once, started once, and believed only when it answers with its own name."""
    installer = FakeInstaller()
    outcome = install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert installer.calls == [("prepare", "n1"), ("start", "n1")]
    assert outcome.findings[0].verdict is Verdict.PASS
    assert data_of(outcome.facts[0]) == {"address": "192.0.2.100"}
    assert book.state(NodeId("id-n1")).host_key == "public n1"


def test_intents_stand_before_acts(book: SqlJournal) -> None:
    """The journal holds intent and result of each act, and the key that the host is given before it is."""
    install(book, FakeInstaller(), FakeShell({"n1": greeting("n1")}), ["n1"])
    words = [(e.kind.value, data_of(e).get("act")) for e in book.history(Stream.NODE, "id-n1")][3:]
    assert words == [
        ("act.intended", "install.prepare"),
        ("act.observed", "install.prepare"),
        ("node.host_key_pinned", None),
        ("act.intended", "install.start"),
        ("act.observed", "install.start"),
    ]


def test_a_machine_that_comes_alone_is_installed_while_others_are(book: SqlJournal) -> None:
    """A repaired one that comes after the others: an install needs no partner, and does not wait until they are done."""
    bmcs, now = FakeBmcs({}), [0.0]
    step = Install(
        InstallServices(FakeInstaller(), FakeShell({}), bmcs, address_of), ACCESS, INSTALLERS_NETWORK, poll_s=1
    )
    queue = StepQueue(step, StepLimits(8, 30.0), clock=lambda: now[0])
    for name in ("n1", "n2"):
        identified(book, name, f"SN-{name}")
        state = book.state(NodeId(f"id-{name}"))
        queue.put(state)
        now[0] += 10
        assert queue.take(quiet=False) == [state]


@pytest.mark.parametrize("state", [InstallState.INSTALLING, InstallState.INSTALLED])
def test_a_resumed_run_never_starts_a_second_install(book: SqlJournal, state: InstallState) -> None:
    """Killed after the start: the next run finds it under way, or done, and only watches."""
    first = FakeInstaller()
    install(book, first, FakeShell({"n1": greeting("n1")}), ["n1"])
    resumed = FakeInstaller(states={"n1": state})
    outcome = install(book, resumed, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert resumed.calls == []
    assert outcome.findings[0].verdict is Verdict.PASS


def test_another_owners_machine_is_left_alone(book: SqlJournal) -> None:
    """An OS that the installer has there and that we never started is neither trusted nor overwritten."""
    installer = FakeInstaller(states={"n1": InstallState.INSTALLED})
    outcome = install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert installer.calls == []
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert "did not put there" in outcome.findings[0].cause


def test_a_machine_that_never_boots_has_the_report_of_its_bmc(book: SqlJournal) -> None:
    """A failed install carries the installer's words, the power state, the BMC's log, and a remedy at the rack."""
    outcome = install(book, FakeInstaller(fails={"n1"}), FakeShell({}), ["n1"])["n1"]
    (finding,) = outcome.findings
    assert (finding.verdict, finding.deterministic) == (Verdict.FAIL, False)
    assert "never seen" in finding.cause
    assert "POST hangs at 0x92" in finding.cause
    assert "rack A01 U4" in finding.remedy
    assert finding.evidence


def test_an_absent_bmc_is_what_must_be_repaired(book: SqlJournal) -> None:
    """Without it no installer can power the machine: the finding is about the BMC, not about boot order or DIMMs."""
    gone = FakeBmc(UnreachableError("the BMC cannot be reached", remedy="check its power, cable and address"))
    (finding,) = install(book, FakeInstaller(fails={"n1"}), FakeShell({}), ["n1"], bmc=gone)["n1"].findings
    assert (finding.check, finding.subject) == ("install", "bmc")
    assert finding.remedy == "BMC at 192.0.2.1 (rack A01 U4): check its power, cable and address"


def test_one_that_fails_does_not_keep_the_others(book: SqlJournal) -> None:
    """Outcomes come machine by machine."""
    shell = FakeShell({"n1": greeting("n1"), "n2": greeting("n2")})
    outcomes = install(book, FakeInstaller(fails={"n1"}), shell, ["n1", "n2"])
    assert {name: outcome.findings[0].verdict for name, outcome in outcomes.items()} == {
        "n1": Verdict.FAIL,
        "n2": Verdict.PASS,
    }


def test_an_old_failure_is_released_and_tried_again(book: SqlJournal) -> None:
    """A machine that rests in a failed state from before is given back and installed, not reported again."""
    installer = FakeInstaller(states={"n1": InstallState.FAILED})
    outcome = install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert installer.calls == [("release", "n1"), ("start", "n1")]
    assert outcome.findings[0].verdict is Verdict.PASS


def test_a_lost_install_of_an_earlier_run_begins_again_once(book: SqlJournal) -> None:
    """For example, its power was cut while it was written: found under way, it fails while we watch, is given back and begun
    again; where that fails too, it is reported.
    """
    installer = FakeInstaller(states={"n1": InstallState.INSTALLING}, fails={"n1"})
    outcome = install(book, installer, FakeShell({}), ["n1"])["n1"]
    assert installer.calls == [("release", "n1"), ("start", "n1")]
    assert outcome.findings[0].verdict is Verdict.FAIL


def test_a_lost_preparation_of_an_earlier_run_begins_again(book: SqlJournal) -> None:
    """Its power was cut while the installer read it in: that is given back, and not the machine's failure."""

    class Lost(FakeInstaller):
        def observe(
            self, targets: Sequence[InstallTarget], deadline: Deadline
        ) -> Mapping[str, Observed[InstallStatus]]:
            if self.states["n1"] is InstallState.PREPARING:
                answer = {"n1": self._status("n1")}
                self.states["n1"] = InstallState.FAILED
                return answer
            return super().observe(targets, deadline)

    installer = Lost(states={"n1": InstallState.PREPARING})
    outcome = install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert installer.calls == [("release", "n1"), ("start", "n1")]
    assert outcome.findings[0].verdict is Verdict.PASS


def test_a_host_that_never_answers_ends_at_the_deadline(book: SqlJournal) -> None:
    """Installed but silent: the deadline ends the wait, with the reason."""
    outcome = install(book, FakeInstaller(), FakeShell({}), ["n1"], deadline=Deadline.after(1.5, timer=FakeTimer()))[
        "n1"
    ]
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert "SSH fails: no route" in outcome.findings[0].cause


def test_a_host_with_another_key_is_not_talked_to(book: SqlJournal) -> None:
    """Another OS answers: the install fails at once and for good, and the remedy names the disk that must boot."""
    shell = FakeShell({}, error=UntrustedError("the host does not hold the key that was pinned"))
    (finding,) = install(book, FakeInstaller(), shell, ["n1"])["n1"].findings
    assert (finding.verdict, finding.deterministic) == (Verdict.FAIL, True)
    assert "another OS answers at 192.0.2.100" in finding.cause
    assert "rack A01 U4, n1: set disk 0 (serial DISK-SN-n1) first in the boot order" in finding.remedy
    assert shell.tries == 1


def test_an_os_that_never_calls_its_installer_is_asked_for_its_identity(book: SqlJournal) -> None:
    """The installer waits without success for the OS that it wrote: a foreign host key shows the reason."""
    installer = FakeInstaller(fails={"n1"}, reached={"n1"})
    shell = FakeShell({}, error=UntrustedError("the host does not hold the key that was pinned"))
    (finding,) = install(book, installer, shell, ["n1"])["n1"].findings
    assert "another OS answers" in finding.cause
    assert finding.deterministic


@pytest.mark.parametrize("error", [UnreachableError("no route"), AuthenticationError("refused"), None])
def test_only_another_key_proves_another_os(book: SqlJournal, error: EdgeError | None) -> None:
    """Whatever else answers, or no host: then the installer's own report is what is known."""
    installer = FakeInstaller(fails={"n1"}, reached={"n1"})
    (finding,) = install(book, installer, FakeShell({"n1": greeting("n1")}, error=error), ["n1"])["n1"].findings
    assert "never seen" in finding.cause
    assert not finding.deterministic


def test_a_host_that_does_not_let_us_in_yet_is_waited_for(book: SqlJournal) -> None:
    """The daemon may be up before the user is: a refused login is asked again until the deadline."""
    shell = FakeShell({}, error=AuthenticationError("refused"))
    install(book, FakeInstaller(), shell, ["n1"], deadline=Deadline.after(1.5, timer=FakeTimer()))
    assert shell.tries > 1


@pytest.mark.parametrize("ended", [Ran(None, "", "", 20.0), Ran(1, "0b00-7\n", "no such file", 0.1)])
@pytest.mark.parametrize("silent", [1, 10_000])
def test_a_host_that_lets_us_in_and_does_not_answer_yet_is_waited_for(
    book: SqlJournal, ended: Ran, silent: int
) -> None:
    """A crowded host takes the key before it runs a command: no name was reported, so it is no other host. One that
    stays so is silent, and not another machine for good.
    """

    class Slow(FakeShell):
        def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
            answer = super().run(host, argv, stdin, deadline)
            return replace(answer, value=ended) if self.tries <= silent else answer

    limit = Deadline.after(1.5, timer=FakeTimer())
    outcome = install(book, FakeInstaller(), Slow({"n1": greeting("n1")}), ["n1"], deadline=limit)["n1"]
    finding = outcome.findings[0]
    if silent == 1:
        assert finding.verdict is Verdict.PASS
        return
    assert (finding.code, finding.deterministic) == (Code.INSTALL_FAILED, False)
    assert "it lets us in, and its first command" in finding.cause


def test_the_wrong_host_name_fails(book: SqlJournal) -> None:
    """A host that answers under another name is not the node, and its drives are not read as the node's."""
    shell = FakeShell({"n1": greeting("n9")})
    (finding,) = install(book, FakeInstaller(), shell, ["n1"])["n1"].findings
    assert (finding.verdict, finding.measured, shell.tries) == (Verdict.FAIL, "n9", 1)


def test_a_busy_installer_is_asked_again_after_a_look(book: SqlJournal) -> None:
    """A refused or lost request is no failure of the machine: the installer is looked at, then asked again."""
    installer = FakeInstaller(errors=[OutcomeUnknownError("504"), EdgeError("503: another action is in progress")])
    outcome = install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"]
    assert outcome.findings[0].verdict is Verdict.PASS
    assert installer.calls == [("prepare", "n1"), *[("start", "n1")] * 3]


def test_an_installer_that_keeps_refusing_is_a_failure(book: SqlJournal) -> None:
    """Trouble that stays ends the wait with the installer's own words."""
    installer = FakeInstaller(errors=[EdgeError("no disk has this serial")] * 20)
    outcome = install(book, installer, FakeShell({}), ["n1"])["n1"]
    assert outcome.findings[0].verdict is Verdict.FAIL
    assert "no disk has this serial" in outcome.findings[0].cause


def test_a_password_that_the_bmc_refuses_is_tried_once(book: SqlJournal) -> None:
    """Where the installer could not use the BMC we log in ourselves before it does again: no account is locked."""
    installer = FakeInstaller(errors=[InstallError("power error", FailureKind.POWER)] * 20)
    refused = FakeBmc(AuthenticationError("401"))
    (finding,) = install(book, installer, FakeShell({}), ["n1"], bmc=refused)["n1"].findings
    assert (finding.code, finding.verdict) == (Code.BMC_LOGIN_REFUSED, Verdict.FAIL)
    assert installer.calls == [("prepare", "n1"), ("start", "n1")]


def test_power_that_fails_once_is_tried_again(book: SqlJournal) -> None:
    """A BMC that lets us in may have been busy; what stays is reported with the number of attempts."""
    installer = FakeInstaller(errors=[InstallError("power error", FailureKind.POWER)])
    assert install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])["n1"].findings[0].verdict is Verdict.PASS
    assert installer.calls == [("prepare", "n1"), *[("start", "n1")] * 2]
    lasting = FakeInstaller(errors=[InstallError("power error", FailureKind.POWER)] * 20)
    (finding,) = install(book, lasting, FakeShell({}), ["n2"])["n2"].findings
    assert f"{ATTEMPTS} attempts failed; the last: power error" in finding.cause
    assert lasting.calls == [("prepare", "n2"), *[("start", "n2")] * ATTEMPTS]


def acts(book: SqlJournal) -> list[tuple[str, str]]:
    """Return the journal's events about the starts of n1's install."""
    reported = [event for event in book.history(Stream.NODE, "id-n1") if data_of(event).get("act") == Act.INSTALL_START]
    return [(event.kind.value, data_of(event).get("message", "")) for event in reported]


def test_what_came_of_an_act_is_written_before_it_is_intended_again(book: SqlJournal) -> None:
    """Killed, or its answer lost: the next look is its result, so the journal shows why it was done once more."""
    identified(book, "n1", "SN-n1")
    node = NodeId("id-n1")
    killed = book.claim([node], "killed").granted
    IntentLog(book, killed).intend(node, Act.INSTALL_START, "SN-n1")
    book.release(killed.values())
    installer = FakeInstaller({"n1": InstallState.READY}, errors=[OutcomeUnknownError("the answer was lost")])
    install(book, installer, FakeShell({"n1": greeting("n1")}), ["n1"])
    looked_at = ("act.observed", "ready")
    assert acts(book) == [
        ("act.intended", ""),
        looked_at,
        ("act.intended", ""),
        looked_at,
        ("act.intended", ""),
        ("act.observed", "installing"),
    ]
    assert not book.state(node).open_acts
