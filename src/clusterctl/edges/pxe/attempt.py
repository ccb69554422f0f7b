"""The install attempt of one machine, and its state changes. Pure: the time is an argument."""

from __future__ import annotations

import enum
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime
from ipaddress import ip_address

from clusterctl.edges.pxe.report import MachineReport, ReportRefusal, judge, judge_erase
from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.hardware.disk_contract import DiskContract, KernelDrive, same_identity
from clusterctl.fleet.node import Mac, Serial
from clusterctl.fleet.secret import NeverPickled
from clusterctl.ports import Milestone

MAX_MILESTONES = 256
MAX_TEXT = 300


class AttemptState(enum.Enum):
    """The states of an attempt.

    READY    the machine is known, and no attempt has begun
    ARMED    the next boot over the network gets the installer
    SEEN     the machine has fetched the installer
    WRITING  its report was accepted
    DONE, FAILED, REFUSED  the attempt has ended, and its token is invalid
    """

    READY = "ready"
    ARMED = "armed"
    SEEN = "seen"
    WRITING = "writing"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


_BOOTED_AGAIN = (
    "it booted over the network again while its disk was written: its power was cut, or its installer crashed"
)
RUNNING = frozenset({AttemptState.ARMED, AttemptState.SEEN, AttemptState.WRITING})
ENDED = frozenset({AttemptState.DONE, AttemptState.FAILED, AttemptState.REFUSED})


@dataclass(frozen=True, slots=True)
class BootFiles:
    """What iPXE loads: paths below `/files/`; `arguments` is the kernel's command line, where `{mac}` and `{bootif}`
    stand for the booting card's address (`aa:bb:…`, `01-aa-bb-…`).

    With a `stub` firmware loads all three as one EFI program over HTTPS, and iPXE gets nothing.
    """

    kernel: str
    initrd: str
    arguments: str = field(repr=False)
    stub: str = ""


@dataclass(frozen=True, slots=True)
class InstallPayload:
    """The image that is written: its path below `/files/`, SHA-256 and size in bytes; empty with other methods."""

    path: str = ""
    sha256: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class InstallAttempt(NeverPickled):
    """One attempt, or READY: none yet.

    token      authenticates the machine; a secret while the attempt runs
    started    whether the BMC has started the machine for this attempt
    documents  names of the documents prepared for the machine
    drives     the drives that it reported before anything was written; `root` is the one that it writes
    address    from which it sent its last post; `card` is the one by which it booted
    asked      when it asked for its image last; it may wait in a queue for long
    decide     what an operator has to decide before the machine can be written; empty: nothing
    erase      serials of all drives of a machine that is to be erased; empty for an install
    only_from  the address that our DHCP reserves for the machine: from no other one it gets the token; empty: from any
    """

    node: str
    state: AttemptState
    serial: Serial
    macs: tuple[Mac, ...]
    disk: DiskContract
    id: str = ""
    token: str = field(default="", repr=False)
    method: str = ""
    boot: BootFiles | None = None
    payload: InstallPayload = InstallPayload()
    documents: tuple[str, ...] = ()
    started: bool = False
    at: datetime | None = None
    milestones: tuple[Milestone, ...] = ()
    host_key: str = ""
    drives: tuple[KernelDrive, ...] | None = None
    root: str = ""
    address: str = ""
    card: Mac | None = None
    asked: datetime | None = None
    reason: str = ""
    decide: str = ""
    erase: tuple[Serial, ...] = ()
    only_from: str = ""

    def is_allowed(self, host: str) -> bool:
        """Return whether a request from this address may start the installer."""
        return not self.only_from or same_address(host, self.only_from)

    def may_use_token(self, host: str) -> bool:
        """Return whether a request from this address may use the token. A distribution's installer may have taken the
        address that the host will have; the deployer keeps the reserved one.
        """
        return self.is_allowed(host) or not (self.payload.path or self.erase)

    @property
    def running(self) -> bool:
        return self.state in RUNNING

    @property
    def last_contact(self) -> datetime | None:
        """Return the time of the last sign of life, or of the last change."""
        last_report = self.milestones[-1].at if self.milestones else self.at
        return max((at for at in (last_report, self.asked) if at is not None), default=None)


def with_milestone(attempt: InstallAttempt, words: str, now: datetime, address: str = "") -> InstallAttempt:
    """Return the attempt with another milestone. Beyond `MAX_MILESTONES` the last one is replaced."""
    kept = attempt.milestones[: MAX_MILESTONES - 1]
    return replace(attempt, milestones=(*kept, Milestone(now, plain(words))), address=address or attempt.address)


def with_boot(attempt: InstallAttempt, mac: Mac, serial: str, now: datetime) -> InstallAttempt:
    """Return the attempt after the machine has asked for its boot script.

    The request has the attempt's ticket. A serial other than the BMC's is refused. A boot while the disk is written
    ends the attempt: the disk is incomplete. A request without a serial changes nothing.
    """
    if not attempt.running or not serial:
        return attempt
    if not same_identity(serial, attempt.serial):
        return finished(attempt, AttemptState.REFUSED, f"the machine with {mac} reports serial {plain(serial)}", now)
    if attempt.state is AttemptState.WRITING:
        return finished(attempt, AttemptState.FAILED, _BOOTED_AGAIN, now)
    seen = with_milestone(attempt, f"its firmware booted over the network, by {mac}", now)
    return replace(seen, state=AttemptState.SEEN, card=mac)


def with_https_boot(attempt: InstallAttempt, now: datetime) -> InstallAttempt:
    """Return the attempt after firmware has asked for its EFI program, by the ticket that only its BMC was given."""
    if not attempt.running:
        return attempt
    if attempt.state is AttemptState.WRITING:
        return finished(attempt, AttemptState.FAILED, _BOOTED_AGAIN, now)
    return replace(with_milestone(attempt, "its firmware booted over HTTPS", now), state=AttemptState.SEEN)


def with_report(attempt: InstallAttempt, report: MachineReport, address: str, now: datetime) -> InstallAttempt:
    """Judge the report: WRITING with the root disk that the machine may overwrite, or REFUSED.

    A repeated report changes nothing. A report with another root disk than the first one is refused.
    """
    if attempt.card is None and report.booted in attempt.macs:
        attempt = replace(attempt, card=Mac(report.booted))
    if attempt.erase:
        return _with_erase_report(attempt, report, address, now)
    verdict = judge(report, attempt.serial, attempt.disk)
    if isinstance(verdict, ReportRefusal):
        seen = replace(attempt, drives=report.drives, decide=plain(verdict.decide))
        return finished(seen, AttemptState.REFUSED, verdict.why, now)
    if attempt.state is AttemptState.WRITING:
        if attempt.root == verdict.path:
            return attempt
        why = f"it reports its root disk as {verdict.path} now, and as {attempt.root} before"
        return finished(attempt, AttemptState.REFUSED, why, now)
    seen = with_milestone(attempt, f"its serial is right; the OS goes to {verdict}", now, address)
    disk = attempt.disk.named(verdict)
    return replace(seen, state=AttemptState.WRITING, drives=report.drives, root=verdict.path, disk=disk)


def _with_erase_report(attempt: InstallAttempt, report: MachineReport, address: str, now: datetime) -> InstallAttempt:
    """Judge the report of a machine that is to be erased. A report after the first accepted one changes nothing."""
    refusal = judge_erase(report, attempt.serial, attempt.erase)
    if refusal is not None:
        return finished(replace(attempt, drives=report.drives), AttemptState.REFUSED, refusal.why, now)
    if attempt.state is AttemptState.WRITING:
        return attempt
    words = f"its serial and its {len(report.drives)} drives are right; they are erased now"
    seen = with_milestone(attempt, words, now, address)
    return replace(seen, state=AttemptState.WRITING, drives=report.drives)


def with_host_key(attempt: InstallAttempt, key: str, now: datetime) -> InstallAttempt:
    """Return the attempt with its host key. Raises `ConflictError` where it has another one already."""
    if attempt.host_key == key:
        return attempt
    if attempt.host_key:
        raise ConflictError("this attempt has reported another host key already", where=attempt.node)
    return replace(with_milestone(attempt, "it made its SSH host key", now), host_key=key)


def finished(attempt: InstallAttempt, state: AttemptState, reason: str, now: datetime) -> InstallAttempt:
    """Return the attempt, ended with this reason; its token is invalid."""
    done = "all its drives are erased" if attempt.erase else "the OS is on its disk"
    words = {AttemptState.DONE: done, AttemptState.REFUSED: "refused: "}.get(state, "failed: ")
    over = with_milestone(attempt, words if state is AttemptState.DONE else f"{words}{reason}", now)
    return replace(over, state=state, reason=plain(reason))


def same_address(one: str, other: str) -> bool:
    """Return whether both texts are the same IP address; what is none is no address."""
    try:
        return ip_address(one) == ip_address(other)
    except ValueError:
        return False


def plain(words: str) -> str:
    """Return one line of printable text of limited length: text from machines is shown, never interpreted."""
    shown = "".join(
        " " if char.isspace() else char for char in words if char.isspace() or unicodedata.category(char)[0] != "C"
    )
    text = " ".join(shown.split())
    return text if len(text) <= MAX_TEXT else f"{text[: MAX_TEXT - 1]}…"
