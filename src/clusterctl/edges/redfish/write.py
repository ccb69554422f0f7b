"""Changes that are verified: sent as this BMC accepts them, then read back until they are visible or time is over.

An answer proves nothing, neither a good one (some BMCs revert what they accepted) nor a lost one. So the machine is
read after each request, and only then decided. Each reading proves that it is still the right machine.

`WriteAttempt` decides what to send next, by the answers so far. It is pure, so that every order of answers can be
tested. `Writer` sends and reads.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clusterctl.edges.redfish.connection import BUSY, Body, Method, Reply
from clusterctl.edges.redfish.quirks import Quirks
from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UnreachableError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.power import read_power
from clusterctl.ports import Deadline

_WRONG_BODY = frozenset({400, 405, 415, 422})
_ETAG = frozenset({412, 428})
_STUMBLED = frozenset({401, 406, 500})
"""The session ended, our encoding is refused, the BMC failed internally: worth another request."""
_STUMBLES = 2
_MOST_REQUESTS = 40
"""For one change: no order of answers leads to more."""
_PROOFS = 3
"""Renewals of the session during one reading after which the machine is proven again."""


class NotDoneError(EdgeError):
    """A change was requested and is not visible."""


class RefusedError(NotDoneError):
    """The BMC refuses the change."""


class NotAppliedError(NotDoneError):
    """The BMC accepted the change and does not show it."""


def more_specific(first: NotDoneError | None, second: NotDoneError) -> NotDoneError:
    """Return the first of two errors, but prefer one that shows that the BMC does not do what it accepted."""
    if first is None or (isinstance(second, NotAppliedError) and not isinstance(first, NotAppliedError)):
        return second
    return first


class ReplyKind(enum.Enum):
    """What a reply to a write means."""

    ACCEPTED = enum.auto()
    STUMBLED = enum.auto()
    BUSY = enum.auto()
    ETAG = enum.auto()
    WRONG_BODY = enum.auto()
    REFUSED = enum.auto()


@dataclass(slots=True)
class WriteAttempt:
    """One change under way. `bodies`: the same change in the forms that different BMCs accept, the likeliest first.

    After each answer without the change visible, `not_visible`, `lost` or `refused` sets the next `body` and
    `if_match`, or raises the error.
    """

    doing: str
    remedy: str
    bodies: Sequence[Body]
    matches: bool
    quirks: Quirks
    timing: Timing
    patient: bool = True
    again: bool = True
    if_match: str = ""
    _index: int = 0
    _sent: int = 0
    _refusals: int = 0
    _losses: int = 0
    _stumbles: int = 0
    _tried: set[str] = field(default_factory=set)
    _status: int = 0
    _worst: NotDoneError | None = None

    @property
    def body(self) -> Body:
        """The body to send."""
        return self.bodies[self._index]

    def begin(self, etag: str) -> None:
        """Prepare the next request; `etag` is the resource's ETag now."""
        self._sent += 1
        if self._sent > _MOST_REQUESTS:
            raise RefusedError(f"{self.doing} was requested {_MOST_REQUESTS} times and is still not visible")
        ladder = if_match_values(etag, self._status) if self.matches else ("",)
        self.if_match = next((rung for rung in ladder if rung not in self._tried), ladder[-1])

    def kind(self, reply: Reply) -> ReplyKind:
        """Return what a reply means."""
        if reply.ok:
            return ReplyKind.ACCEPTED
        if reply.status in _STUMBLED:
            return ReplyKind.STUMBLED
        if reply.status in _ETAG and self.matches:
            return ReplyKind.ETAG
        if reply.status in BUSY or self.quirks.means_later(reply.messages):
            return ReplyKind.BUSY
        return ReplyKind.WRONG_BODY if reply.status in _WRONG_BODY else ReplyKind.REFUSED

    def not_visible(self, found: str) -> None:
        """Try the next form, where there is one, of a change that was accepted and is not visible."""
        message = f"the BMC accepted {self.doing} but then shows: {found}"
        self._next_body(NotAppliedError(message, remedy=self.remedy))

    def lost(self, error: OutcomeUnknownError) -> None:
        """Request a change once more that has a lost answer and is not visible."""
        self._losses += 1
        if self._losses > 1 or not self.again:
            raise OutcomeUnknownError(f"{self.doing}: {error.message}", remedy=error.remedy) from error

    def pause(self, reply: Reply) -> float:
        """Return the seconds to wait before the next reading; 0 where the BMC is not busy, or not waited for."""
        if self.kind(reply) is not ReplyKind.BUSY or not self.patient or self._refusals + 1 >= self.timing.refusals:
            return 0.0
        return self.timing.refusal_pause(self._refusals + 1, reply.retry_after)

    def refused(self, reply: Reply, etag: str) -> None:
        """Handle a reply that accepts nothing; the change is not visible. `etag` is the resource's ETag since."""
        self._status = reply.status
        error = RefusedError(
            f"the BMC refuses {self.doing}: {reply.summary}", remedy=self.quirks.remedy(reply.messages)
        )
        match self.kind(reply):
            case ReplyKind.BUSY:
                self._again_later(error)
            case ReplyKind.ETAG:
                self._next_etag(error, etag)
            case ReplyKind.STUMBLED:
                self._once_more(error)
            case ReplyKind.WRONG_BODY:
                self._next_body(error)
            case _:
                raise error

    def _again_later(self, error: RefusedError) -> None:
        self._refusals += 1
        if not self.patient or self._refusals >= self.timing.refusals:
            raise error

    def _next_etag(self, error: RefusedError, etag: str) -> None:
        """Choose the next ETag; never repeat an `If-Match`; after the last one, the refusal stands."""
        self._tried.add(self.if_match)
        if self._tried.issuperset(if_match_values(etag, self._status)):
            raise error

    def _once_more(self, error: RefusedError) -> None:
        self._stumbles += 1
        unsure = self._status == 500 and not self.again
        if unsure or self._stumbles > max(_STUMBLES, self.quirks.login_tries):
            raise error

    def _next_body(self, error: NotDoneError) -> None:
        """Take the next form; after the last, raise the most specific error."""
        self._worst = more_specific(self._worst, error)
        if self._index + 1 >= len(self.bodies):
            raise self._worst
        self._index += 1
        self._tried.clear()


@dataclass(frozen=True, slots=True)
class WriteReading:
    """The machine that was read, whether the change is visible, the state as text, and the ETag to change it by."""

    serial: Serial
    done: bool
    found: str
    etag: str = ""


Read = Callable[[Deadline], WriteReading]


@dataclass(frozen=True, slots=True)
class RedfishChange:
    """A change to make. `bodies`: the same change in other forms, see `WriteAttempt`.

    seconds    time until it is visible once it was accepted; None: until the deadline
    readings   readings in a row that must show it: two where BMCs are known to revert
    patient    whether a refusal for now is waited for
    again      whether it may be requested twice, where the outcome of the first time is unknown
    remedy     remedy where it was accepted and is not visible
    """

    doing: str
    method: Method
    path: str
    bodies: tuple[Body, ...]
    read: Read
    seconds: float | None = None
    readings: int = 1
    patient: bool = True
    again: bool = True
    remedy: str = "make the change by hand at the BMC; if the error persists, update the BMC's firmware"


class Writer:
    """Changes machine `serial` through one session. `steps` records requests and readings, for the evidence."""

    def __init__(self, session: RedfishSession, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._serial = serial
        self.steps: list[str] = []

    def make(self, change: RedfishChange, deadline: Deadline, first: WriteReading | None = None) -> WriteReading:
        """Make the change and return the reading that shows it. Raises `NotDoneError` with the BMC's messages, and
        `OutcomeUnknownError` where the outcome cannot be determined.

        `first`: a reading of this moment, where the caller has one.
        """
        reading = first or self.read(change.read, deadline)
        if reading.done:
            return reading
        attempt = WriteAttempt(
            change.doing,
            change.remedy,
            change.bodies,
            change.method == "PATCH",
            self._session.quirks,
            self._timing,
            patient=change.patient,
            again=change.again,
        )
        while not reading.done:
            attempt.begin(reading.etag)
            reading = self._try(change, attempt, deadline)
        return reading

    def read(self, read: Read, deadline: Deadline) -> WriteReading:
        """Read; raise `EdgeError` unless it is the right machine, proven in the session that is open now."""
        logins = self._session.logins
        reading = read(deadline)
        require_machine(reading.serial, self._serial)
        if self.steps[-1:] != [reading.found]:  # a state that is read again and again is recorded once
            self.steps.append(reading.found)
        for _ in range(_PROOFS):
            if logins == self._session.logins:
                return reading
            logins = self._session.logins
            require_machine(self._session.walk(read_power, deadline)[0].serial, self._serial)
        raise EdgeError("the BMC ends each session before anything is read", remedy="reset the BMC")

    def _try(self, change: RedfishChange, attempt: WriteAttempt, deadline: Deadline) -> WriteReading:
        """Send once, and read. Where the change is not visible, `attempt` has the next request."""
        try:
            reply = self._session.write(
                change.path, attempt.body, deadline, method=change.method, if_match=attempt.if_match
            )
        except OutcomeUnknownError as error:
            self.steps.append(f"{change.doing}: {error.message}")
            reading = self._wait(change, deadline, self._timing.unknown)
            if not reading.done:
                attempt.lost(error)
            return reading
        self.steps.append(f"{change.doing}: {reply.summary}")
        if attempt.kind(reply) is ReplyKind.ACCEPTED:
            seconds = deadline.remaining if change.seconds is None else change.seconds
            reading = self._wait(change, deadline, seconds)
            if not reading.done:
                attempt.not_visible(reading.found)
            return reading
        pause = attempt.pause(reply)
        if pause:
            deadline.sleep(pause, f"waiting until the BMC accepts {change.doing}")
        reading = self.read(change.read, deadline)
        if not reading.done:
            attempt.refused(reply, reading.etag)
        return reading

    def _wait(self, change: RedfishChange, deadline: Deadline, seconds: float) -> WriteReading:
        """Read until the change is visible in as many readings as it requires; return the last reading when `seconds`
        are over.

        Where the deadline ends in the middle of an answer or of a pause, the reading before stands.
        """
        limit = deadline.within(seconds)
        row = 0
        last: WriteReading | None = None
        while True:
            try:
                reading = self.read(change.read, deadline)
                row = row + 1 if reading.done else 0
                last = reading
                if row >= change.readings or (not reading.done and limit.remaining <= self._timing.poll):
                    return reading
                deadline.sleep(self._timing.poll, f"waiting until the BMC shows {change.doing}")
            except UnreachableError:
                if last is None or last.done or deadline.remaining > 0:
                    raise
                return last


def require_machine(found: Serial, serial: Serial) -> None:
    """Raise `EdgeError` where the BMC belongs to another machine."""
    if found != serial:
        raise EdgeError(
            f"this BMC belongs to machine {found}, not to {serial}: nothing was changed",
            remedy="find the address of the machine's BMC, and correct the site file",
        )


ANY = "*"
_WEAK = "W/"


def if_match_values(etag: str, status: int = 0) -> tuple[str, ...]:
    """Return the `If-Match` values for a resource with this `etag` (empty: none), the best first; empty: no header.

    BMCs differ in what they accept and in what they call an ETag (DSP0266 §6.5). A weak ETag is followed by its strong
    form: some BMCs give the one and compare with the other. `ANY` comes last, and only for a BMC that demands a header
    (`status` 428, or 412 without an ETag): it waives the protection.
    """
    if not etag:
        return ("", ANY) if status in (412, 428) else ("",)
    strong = (etag.removeprefix(_WEAK),) if etag.startswith(_WEAK) else ()
    return (etag, *strong, "", *((ANY,) if status == 428 else ()))
