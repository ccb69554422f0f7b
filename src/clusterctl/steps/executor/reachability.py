"""How nodes are reached, over SSH and through their BMCs, and the findings where they are not."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.errors import (
    AuthenticationError,
    BusyError,
    ClusterctlError,
    EdgeError,
    NoBmcError,
    ParseError,
    PasswordChangeError,
    PrivilegeError,
    SshFailure,
    UnreachableError,
    UntrustedError,
    UsageError,
)
from clusterctl.fleet.finding import Evidence, Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcAddress, BmcClient, Bmcs, Deadline, HostAddress, Power
from clusterctl.ports.isolation import peer_error
from clusterctl.steps.executor.step import StepOutcome
from clusterctl_burnin.bmc_log.judge import weighs


@dataclass(frozen=True, slots=True)
class SshAccess:
    """The controller's login on all hosts."""

    user: str
    key_file: str

    def address(self, node: NodeState) -> HostAddress | None:
        """Return where the node is reached; None without an address or a pinned host key: no key is trusted on use."""
        if not (node.address and node.host_key):
            return None
        return HostAddress(node.name, node.address, self.user, node.host_key, self.key_file)

    def split(self, nodes: Iterable[NodeState], step: Step) -> tuple[dict[str, HostAddress], list[StepOutcome]]:
        """Return addresses by node name, and an outcome for each node that has none."""
        hosts, lost = {}, []
        for node in nodes:
            host = self.address(node)
            if host is not None:
                hosts[node.name] = host
            else:
                cause, remedy = "its address or host key is unknown", "run clusterctl install on it"
                finding = Finding(
                    check=step.value, verdict=Verdict.INCONCLUSIVE, code=Code.HOST_UNKNOWN, cause=cause, remedy=remedy
                )
                lost.append(StepOutcome(node.id, (finding,)))
        return hosts, lost


BMC_S = 20.0
"""Seconds for a BMC to report the power state and the event log."""
SCREEN_S = 15.0
"""Seconds for a BMC to show the machine's screen."""


@dataclass(frozen=True, slots=True)
class BmcState:
    """What a BMC reports about its machine, `summary` as text; `error`: why it could not be read.

    `entries`: its event log, the newest first.
    """

    summary: str
    power: Power = Power.UNKNOWN
    evidence: tuple[Evidence, ...] = ()
    error: ClusterctlError | None = None
    entries: tuple[LogEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class BmcProbe:
    """Reads the BMC of a node with a silent host; never raises for what the BMC does wrong."""

    bmcs: Bmcs
    address_of: Callable[[str], BmcAddress]

    def read(self, name: str, deadline: Deadline) -> BmcState:
        """Return power and errors of the node's machine, in a time of its own: the step's may be over."""
        limit = Deadline.after(BMC_S, deadline.cancelled)
        try:
            with self.bmcs.open(self.address_of(name), limit) as bmc:
                power, entries = bmc.power(limit), bmc.event_log(limit)
                screen = screen_of(bmc, deadline) if power.value is Power.ON else ()
        except NoBmcError as error:
            return BmcState("it has no BMC that could be asked", error=error)
        except Exception as error:  # noqa: BLE001 — peer_error raises what is not the peer's
            broken = peer_error(error, name)
            return BmcState(f"its BMC could not be read ({broken.message})", error=broken)
        bad = [entry for entry in entries.value if entry.severity.lower() != "ok" and weighs(entry)]
        logged = f", its BMC logged: {bad[0].message}" if bad else ", its BMC logged no error"
        words = f"power is {power.value.value}{logged}"
        evidence = (*power.evidence, *entries.evidence, *screen)
        return BmcState(words, power.value, evidence, entries=tuple(entries.value))


def screen_of(bmc: BmcClient, deadline: Deadline) -> tuple[Evidence, ...]:
    """Return what the machine shows, in a time of its own, where its BMC gives that; nothing depends on it."""
    try:
        return bmc.screen(Deadline.after(SCREEN_S, deadline.cancelled)).evidence
    except (EdgeError, ParseError):
        return ()


def bmc_unreadable(node: NodeState, error: ClusterctlError) -> Finding:
    """Return the finding on a BMC that cannot be read.

    Rejected credentials are deterministic, silence may pass, a malformed answer is unmeasured.
    """
    where = f"{node.bmc} ({node.location})"
    match error:
        case PasswordChangeError():
            code, verdict, deterministic = Code.BMC_PASSWORD_EXPIRED, Verdict.FAIL, True
            remedy = f"give the BMC at {where} a password of the site's: clusterctl accounts rotate {node.name}"
        case UsageError():
            code, verdict, deterministic = Code.BMC_MISCONFIGURED, Verdict.FAIL, True
            remedy = f"BMC at {where}: {error.remedy}"
        case PrivilegeError():
            code, verdict, deterministic = Code.BMC_PRIVILEGE, Verdict.FAIL, True
            remedy = f"BMC at {where}: {error.remedy}"
        case BusyError():
            code, verdict, deterministic = Code.BMC_BUSY, Verdict.INCONCLUSIVE, False
            remedy = f"wait until the BMC at {where} has started or ended its update; if it stays busy, reset it"
        case AuthenticationError():
            code, verdict, deterministic = Code.BMC_LOGIN_REFUSED, Verdict.FAIL, True
            remedy = f"set the BMC's password at {where} to the site's, or give its factory password in the sheet"
        case UntrustedError():
            code, verdict, deterministic = Code.BMC_UNTRUSTED, Verdict.FAIL, True
            remedy = f"BMC at {where}: {error.remedy}"
        case UnreachableError():
            code, verdict, deterministic = Code.BMC_UNREACHABLE, Verdict.FAIL, False
            remedy = f"BMC at {where}: {error.remedy or 'check its power, its cable and its address'}"
        case ParseError():
            code, verdict, deterministic = Code.OUTPUT_UNREADABLE, Verdict.INCONCLUSIVE, False
            remedy = f"update the firmware of the BMC at {where}, or report what it answered"
        case _:
            code, verdict, deterministic = Code.BMC_BROKEN, Verdict.FAIL, False
            remedy = f"reset the BMC at {where}; if that does not help, update its firmware"
    return Finding(
        check="bmc",
        verdict=verdict,
        code=code,
        subject="bmc",
        cause=error.message,
        remedy=remedy,
        deterministic=deterministic,
        where=error.where,
    )


REACHABLE = "reachable"
"""The check's name."""

_CAUSES = {
    SshFailure.REFUSED: "the host answers, but its port 22 refuses connections: sshd does not run",
    SshFailure.NO_ANSWER: "nothing answers at its address: its network is cut, or it is down",
    SshFailure.NO_GREETING: "its kernel takes the connection, but sshd does not answer: the host hangs",
    SshFailure.BROKEN: "the connection broke: the host has gone down, or its network",
    SshFailure.UNKNOWN: "it cannot be logged in to",
}
_CODES = {
    SshFailure.REFUSED: Code.SSH_REFUSED,
    SshFailure.NO_ANSWER: Code.SSH_NO_ANSWER,
    SshFailure.NO_GREETING: Code.SSH_NO_GREETING,
    SshFailure.BROKEN: Code.SSH_BROKEN,
    SshFailure.UNKNOWN: Code.SSH_UNKNOWN,
}
_REMEDIES = {
    SshFailure.REFUSED: "attach a console, start sshd and see why it ended (systemctl status ssh)",
    SshFailure.NO_ANSWER: "check its management cable and switch port; attach a console and see that its address is up",
    SshFailure.NO_GREETING: "attach a console, note what its kernel prints, then power it off and on through its BMC",
    SshFailure.BROKEN: "attach a console: does it run, and does its management link come and go?",
    SshFailure.UNKNOWN: "attach a console: does it run, and does its sshd let clusterctl's key in?",
}


def host_unreachable(node: NodeState, words: str, kind: SshFailure, bmc: BmcState, *, remedy: str = "") -> Finding:
    """Return the finding on a host that gave no session. `words`: the error; `remedy`: the error's own, if any."""
    place = f"{node.location}, {node.name}"
    todo = remedy or _REMEDIES[kind]
    if bmc.power is Power.OFF:
        todo = "power it on; if it stays off, check its PSUs and cords"
    return Finding(
        check=REACHABLE,
        verdict=Verdict.FAIL,
        code=_CODES[kind],
        cause=f"{_CAUSES[kind]} ({words}); {bmc.summary}",
        measured=kind.value,
        expected="an SSH session",
        remedy=f"{place}: {todo}",
        deterministic=False,
        evidence=tuple(item.digest for item in bmc.evidence),
    )
