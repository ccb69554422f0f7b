"""Changes that are seen: asked for as this BMC wants it, then read back until they are there or time is over.

An answer proves nothing, neither a good one (some revert what they accepted) nor a lost one. So after each the machine
is looked at, and only then decided. Each look proves that it is still the right machine.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from clusterctl.edges.redfish.connection import BUSY, Body, Method, Reply, explanation, refusal, retry_after
from clusterctl.edges.redfish.quirks import Quirks
from clusterctl.edges.redfish.session import Session
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UnreachableError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.etag import rungs
from clusterctl.formats.redfish.power import read_power
from clusterctl.ports import Deadline

_WRONG_BODY = frozenset({400, 405, 415, 422})
_ETAG = frozenset({412, 428})
_STUMBLED = frozenset({401, 406, 500})
"""The session ended, our encoding is not liked, the BMC tripped: worth another request."""
_STUMBLES = 2
_MOST = 40
"""Requests for one change: no order of answers leads to more."""


class NotDoneError(EdgeError):
    """A change was asked for and is not there."""


class RefusedError(NotDoneError):
    """The BMC refuses it."""


class NotSeenError(NotDoneError):
    """The BMC accepted it and does not show it."""


def telling(before: NotDoneError | None, error: NotDoneError) -> NotDoneError:
    """Of two that came one after the other: the first, but that a BMC does not do what it accepted tells more."""
    if before is None or (isinstance(error, NotSeenError) and not isinstance(before, NotSeenError)):
        return error
    return before


class Told(enum.Enum):
    """What a reply to a write says."""

    TAKEN = enum.auto()
    STUMBLED = enum.auto()
    BUSY = enum.auto()
    ETAG = enum.auto()
    WRONG = enum.auto()
    REFUSED = enum.auto()


@dataclass(slots=True)
class Attempt:
    """One change on its way. `bodies`: the same wish as different BMCs take it, the likeliest first.

    After each answer that did not bring it about, one of `accepted`, `lost` and `answered` says what is next, by
    setting `body` and `if_match`; or raises what went wrong.
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
        return self.bodies[self._index]

    def begin(self, etag: str) -> None:
        """Before each request: what the resource's ETag is now."""
        self._sent += 1
        if self._sent > _MOST:
            raise RefusedError(f"the BMC was asked {_MOST} times for {self.doing}, and it is still not there")
        ladder = rungs(etag, self._status) if self.matches else ("",)
        self.if_match = next((rung for rung in ladder if rung not in self._tried), ladder[-1])

    def told(self, reply: Reply) -> Told:
        words = explanation(reply)
        if reply.status in range(200, 300):
            return Told.TAKEN
        if reply.status in _STUMBLED:
            return Told.STUMBLED
        if reply.status in _ETAG and self.matches:
            return Told.ETAG
        if reply.status in BUSY or self.quirks.means_later(words):
            return Told.BUSY
        return Told.WRONG if reply.status in _WRONG_BODY else Told.REFUSED

    def accepted(self, found: str) -> None:
        """It was accepted and is not seen: asked for in other words, where there are any."""
        message = f"the BMC accepted {self.doing} but then shows: {found}"
        self._other_body(NotSeenError(message, remedy=self.remedy))

    def lost(self, error: OutcomeUnknownError) -> None:
        """No answer, and it is not seen: asked for once more."""
        self._losses += 1
        if self._losses > 1 or not self.again:
            raise OutcomeUnknownError(f"{self.doing}: {error.message}", remedy=error.remedy) from error

    def rest(self, reply: Reply) -> float:
        """Seconds to leave the BMC alone before it is looked at again; 0 where it is not busy, or not waited for."""
        if self.told(reply) is not Told.BUSY or not self.patient or self._refusals + 1 >= self.timing.refusals:
            return 0.0
        asked = retry_after(reply, self.timing.refused_max)
        return min(self.timing.refused * 2**self._refusals, self.timing.refused_max) if asked is None else asked

    def answered(self, reply: Reply, etag: str) -> None:
        """Another answer than "taken", and it is not seen; `etag` is what a look has told since."""
        self._status = reply.status
        error = RefusedError(
            f"the BMC refuses {self.doing}: {refusal(reply)}", remedy=self.quirks.remedy(explanation(reply))
        )
        match self.told(reply):
            case Told.BUSY:
                self._again_later(error)
            case Told.ETAG:
                self._next_rung(error, etag)
            case Told.STUMBLED:
                self._once_more(error)
            case Told.WRONG:
                self._other_body(error)
            case _:
                raise error

    def _again_later(self, error: RefusedError) -> None:
        self._refusals += 1
        if not self.patient or self._refusals >= self.timing.refusals:
            raise error

    def _next_rung(self, error: RefusedError, etag: str) -> None:
        """What was sent is not to be sent again; with nothing else left, the BMC's word stands."""
        self._tried.add(self.if_match)
        if self._tried.issuperset(rungs(etag, self._status)):
            raise error

    def _once_more(self, error: RefusedError) -> None:
        self._stumbles += 1
        unsure = self._status == 500 and not self.again
        if unsure or self._stumbles > max(_STUMBLES, self.quirks.login_tries):
            raise error

    def _other_body(self, error: NotDoneError) -> None:
        """The next one; after the last, the error that tells most."""
        self._worst = telling(self._worst, error)
        if self._index + 1 >= len(self.bodies):
            raise self._worst
        self._index += 1
        self._tried.clear()


_PROOFS = 3
"""So often the machine is proven again whose session was renewed amid a look, and amid the proof itself."""


@dataclass(frozen=True, slots=True)
class Sight:
    """What a look found: whose machine, whether the change is there, in words what is; and the ETag to change it by."""

    serial: Serial
    seen: bool
    found: str
    etag: str = ""


Look = Callable[[Deadline], Sight]


@dataclass(frozen=True, slots=True)
class Change:
    """What shall be different. `bodies`: the same wish in other words, see `Attempt`.

    seconds   how long it may take to be seen once it was accepted; None: until the deadline
    looks     so often in a row it must be seen: twice where BMCs are known to revert
    patient   whether a refusal for now is waited for
    remedy    what a person is to do where it was accepted and is not seen
    again     whether it may be asked for twice, where nobody knows what became of the first time
    """

    doing: str
    method: Method
    path: str
    bodies: tuple[Body, ...]
    look: Look
    seconds: float | None = None
    looks: int = 1
    patient: bool = True
    again: bool = True
    remedy: str = "do it by hand at the BMC; if it keeps doing so, update the BMC's firmware"


class Writer:
    """Changes machine `serial` through one session. `steps` records what was asked and seen, for the evidence."""

    def __init__(self, session: Session, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._serial = serial
        self.steps: list[str] = []

    def make(self, change: Change, deadline: Deadline, first: Sight | None = None) -> Sight:
        """Make it so. Raises `NotDoneError` in the BMC's words, `OutcomeUnknownError` where nobody can tell.

        `first`: what `look` has just told, where the caller knows already.
        """
        sight = first or self.look(change.look, deadline)
        if sight.seen:
            return sight
        attempt = Attempt(
            change.doing,
            change.remedy,
            change.bodies,
            change.method == "PATCH",
            self._session.quirks,
            self._timing,
            patient=change.patient,
            again=change.again,
        )
        while True:
            attempt.begin(sight.etag)
            sight = self._try(change, attempt, deadline)
            if sight.seen:
                return sight

    def look(self, look: Look, deadline: Deadline) -> Sight:
        """What is there; `EdgeError` unless it is the right machine, proven in the session that is open now."""
        logins = self._session.logins
        sight = look(deadline)
        self._prove(sight.serial)
        self._note(sight.found)
        for _ in range(_PROOFS):
            if logins == self._session.logins:
                return sight
            logins = self._session.logins
            self._prove(self._session.walk(read_power, deadline)[0].serial)
        raise EdgeError("the BMC ends each session before anything is read", remedy="reset the BMC")

    def _prove(self, serial: Serial) -> None:
        if serial != self._serial:
            raise EdgeError(
                f"this BMC belongs to machine {serial}, not to {self._serial}: it was not touched",
                remedy="find out which address the machine's BMC has now, and correct the site file",
            )

    def _note(self, words: str) -> None:
        """What is seen again and again is written once."""
        if self.steps[-1:] != [words]:
            self.steps.append(words)

    def _try(self, change: Change, attempt: Attempt, deadline: Deadline) -> Sight:
        """Send once, and look. A sight that is not `seen` leaves the next step with `attempt`."""
        try:
            reply = self._session.write(
                change.path, attempt.body, deadline, method=change.method, if_match=attempt.if_match
            )
        except OutcomeUnknownError as error:
            self.steps.append(f"{change.doing}: {error.message}")
            sight = self._watch(change, deadline, self._timing.unknown)
            if not sight.seen:
                attempt.lost(error)
            return sight
        self.steps.append(f"{change.doing}: {refusal(reply)}")
        return self._judge(change, attempt, reply, deadline)

    def _judge(self, change: Change, attempt: Attempt, reply: Reply, deadline: Deadline) -> Sight:
        if attempt.told(reply) is Told.TAKEN:
            seconds = deadline.remaining if change.seconds is None else change.seconds
            sight = self._watch(change, deadline, seconds)
            if not sight.seen:
                attempt.accepted(sight.found)
            return sight
        rest = attempt.rest(reply)
        if rest:
            deadline.sleep(rest, f"waiting until the BMC takes {change.doing}")
        sight = self.look(change.look, deadline)
        if not sight.seen:
            attempt.answered(reply, sight.etag)
        return sight

    def _watch(self, change: Change, deadline: Deadline, seconds: float) -> Sight:
        """Look until it is there, as often in a row as the change wants it; the last sight when `seconds` are over.

        A slow BMC may be amid an answer then; what it told before stands.
        """
        limit = deadline.within(seconds)
        row = 0
        last: Sight | None = None
        while True:
            try:
                sight = last = self.look(change.look, deadline)
            except UnreachableError:
                if last is None or deadline.remaining > 0:
                    raise
                return last
            row = row + 1 if sight.seen else 0
            if row >= change.looks:
                return sight
            if not sight.seen and limit.remaining <= self._timing.poll:
                return sight
            deadline.sleep(self._timing.poll, f"waiting to see {change.doing}")
