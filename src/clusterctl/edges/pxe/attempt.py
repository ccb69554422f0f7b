"""One machine's install as it stands on the desk, and the moves that it can make. Pure: the time is an argument."""

from __future__ import annotations

import enum
import unicodedata
from dataclasses import dataclass, field, replace
from datetime import datetime

from clusterctl.edges.pxe.report import MachineReport, Refusal, judge
from clusterctl.fleet.errors import ConflictError
from clusterctl.fleet.hardware.disk_contract import DiskContract, SeenDrive, same_identity
from clusterctl.fleet.node import Mac, Serial
from clusterctl.fleet.secret import NeverPickled
from clusterctl.ports import Milestone

MOST_MILESTONES = 256
LONGEST_WORDS = 300


class AttemptState(enum.Enum):
    """READY: known, nothing begun. ARMED: the next boot over the network gets the installer. SEEN: it has fetched it.
    WRITING: its report was accepted. The last three rest, and their token is dead.
    """

    READY = "ready"
    ARMED = "armed"
    SEEN = "seen"
    WRITING = "writing"
    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


RUNNING = frozenset({AttemptState.ARMED, AttemptState.SEEN, AttemptState.WRITING})
ENDED = frozenset({AttemptState.DONE, AttemptState.FAILED, AttemptState.REFUSED})


@dataclass(frozen=True, slots=True)
class BootFiles:
    """What iPXE loads: paths below `/files/`; `arguments` is the kernel's command line, where `{mac}` and `{bootif}`
    stand for the booting card's address (`aa:bb:…`, `01-aa-bb-…`).
    """

    kernel: str
    initrd: str
    arguments: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Payload:
    """The image that is written: its path below `/files/`, SHA-256 and size in bytes; empty with other methods."""

    path: str = ""
    sha256: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True)
class Attempt(NeverPickled):
    """One attempt, or READY: none yet.

    token      what the machine proves with that it is meant, a secret while the attempt runs
    started    whether the BMC was seen to start the machine for this attempt
    documents  what was prepared for the machine to fetch, by name
    drives     what it saw before anything was written; `root` is the one that it was told to write
    address    from which it spoke to us last; `card` is the one by which it booted
    asked      when it asked for its image last, which it may do for long, in a queue
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
    payload: Payload = Payload()
    documents: tuple[str, ...] = ()
    started: bool = False
    at: datetime | None = None
    milestones: tuple[Milestone, ...] = ()
    host_key: str = ""
    drives: tuple[SeenDrive, ...] | None = None
    root: str = ""
    address: str = ""
    card: Mac | None = None
    asked: datetime | None = None
    reason: str = ""

    @property
    def running(self) -> bool:
        return self.state in RUNNING

    @property
    def last_heard(self) -> datetime | None:
        """When it, or we about it, said anything last."""
        told = self.milestones[-1].at if self.milestones else self.at
        return max((at for at in (told, self.asked) if at is not None), default=None)


def told(attempt: Attempt, words: str, now: datetime, address: str = "") -> Attempt:
    """With another milestone; a machine that talks too much overwrites its last one."""
    kept = attempt.milestones[: MOST_MILESTONES - 1]
    return replace(attempt, milestones=(*kept, Milestone(now, plain(words))), address=address or attempt.address)


def booted(attempt: Attempt, mac: Mac, serial: str, now: datetime) -> Attempt:
    """It asks for its boot script. Another serial than the BMC's is refused; a boot in the midst of writing ends the
    attempt, whose disk is half-written then. Who tells no serial may look, and changes nothing.
    """
    if not attempt.running or not serial:
        return attempt
    if not same_identity(serial, attempt.serial):
        return ended(
            attempt, AttemptState.REFUSED, f"the machine with {mac} says that its serial is {plain(serial)}", now
        )
    if attempt.state is AttemptState.WRITING:
        why = "it started over the network again in the midst of writing: its power was cut, or its installer crashed"
        return ended(attempt, AttemptState.FAILED, why, now)
    seen = told(attempt, f"its firmware booted over the network, by {mac}", now)
    return replace(seen, state=AttemptState.SEEN, card=mac)


def reported(attempt: Attempt, report: MachineReport, address: str, now: datetime) -> Attempt:
    """Its report, judged: WRITING with the root disk that it may overwrite, or REFUSED. A repeated one changes nothing,
    and one of another root disk than the first is refused.
    """
    verdict = judge(report, attempt.serial, attempt.disk)
    if isinstance(verdict, Refusal):
        return ended(replace(attempt, drives=report.drives), AttemptState.REFUSED, verdict.why, now)
    if attempt.state is AttemptState.WRITING:
        if attempt.root == verdict.path:
            return attempt
        why = f"it reports its root disk as {verdict.path} now, and as {attempt.root} before"
        return ended(attempt, AttemptState.REFUSED, why, now)
    seen = told(attempt, f"its serial is right; the OS goes to {verdict}", now, address)
    return replace(seen, state=AttemptState.WRITING, drives=report.drives, root=verdict.path)


def host_key_told(attempt: Attempt, key: str, now: datetime) -> Attempt:
    """Raises `ConflictError` where it told another one before."""
    if attempt.host_key == key:
        return attempt
    if attempt.host_key:
        raise ConflictError("another host key was told in this attempt", where=attempt.node)
    return replace(told(attempt, "it made its SSH host key", now), host_key=key)


def ended(attempt: Attempt, state: AttemptState, reason: str, now: datetime) -> Attempt:
    """The attempt is over, with words for why; its token is dead."""
    words = {AttemptState.DONE: "the OS is on its disk", AttemptState.REFUSED: "refused: "}.get(state, "failed: ")
    over = told(attempt, words if state is AttemptState.DONE else f"{words}{reason}", now)
    return replace(over, state=state, reason=plain(reason))


def plain(words: str) -> str:
    """One line of printable text, cut to a length: foreign words are kept, never obeyed."""
    shown = "".join(
        " " if char.isspace() else char for char in words if char.isspace() or unicodedata.category(char)[0] != "C"
    )
    text = " ".join(shown.split())
    return text if len(text) <= LONGEST_WORDS else f"{text[: LONGEST_WORDS - 1]}…"
