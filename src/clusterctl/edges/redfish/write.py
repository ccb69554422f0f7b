"""Changes that are seen: asked for as this BMC wants it, then read back until they are there or time is over.

An answer proves nothing, neither a good one (some revert what they accepted) nor a lost one. So after each the machine
is looked at, and only then decided. Each look proves that it is still the right machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.edges.redfish.answers import refusal
from clusterctl.edges.redfish.attempt import Attempt, Told
from clusterctl.edges.redfish.library import Body, Method, Reply
from clusterctl.edges.redfish.pace import Pace
from clusterctl.edges.redfish.session import Session
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, UnreachableError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.power import read_power
from clusterctl.ports import Deadline

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

    def __init__(self, session: Session, pace: Pace, serial: Serial) -> None:
        self._session = session
        self._pace = pace
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
            self._pace,
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
            sight = self._watch(change, deadline, self._pace.unknown)
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
            if not sight.seen and limit.remaining <= self._pace.poll:
                return sight
            deadline.sleep(self._pace.poll, f"waiting to see {change.doing}")
