"""What to send next, by what a BMC answered so far: pure, so that every order of answers can be tried in a test."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field

from clusterctl.edges.redfish.answers import explanation, refusal
from clusterctl.edges.redfish.asking import BUSY, retry_after
from clusterctl.edges.redfish.library import Body, Reply
from clusterctl.edges.redfish.pace import Pace
from clusterctl.edges.redfish.quirks import Quirks
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.formats.redfish.etag import rungs

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
    pace: Pace
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
        if self.told(reply) is not Told.BUSY or not self.patient or self._refusals + 1 >= self.pace.refusals:
            return 0.0
        asked = retry_after(reply, self.pace.refused_max)
        return min(self.pace.refused * 2**self._refusals, self.pace.refused_max) if asked is None else asked

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
        if not self.patient or self._refusals >= self.pace.refusals:
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
