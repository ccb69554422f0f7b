"""Timing of the Redfish client: how long it waits and how often it tries. Tests make all of it small."""

from __future__ import annotations

from dataclasses import dataclass

_ANSWERS_PER_LOGOUT = 4


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, and counts of tries.

    expand                        for a collection with its members in it: some BMCs never answer that question
    attempts, busy, busy_max      a busy BMC: tries of one request, and pauses that grow from try to try
    asked_max                     the longest pause that a busy BMC may ask for (Retry-After)
    poll                          between two readings while a change is awaited
    settle                        until an accepted change is visible
    refused, refused_max, refusals   pauses after a refusal for now, and the number of such refusals
    unknown                       until a change with a lost answer is visible, before it is sent again
    grace                         for an OS to shut down before power is cut
    rest                          without power, in a power cycle
    gone                          until a BMC that loses its own power is away, and is back
    look                          for one reading of a BMC that may be away
    logout, logout_max            for closing the session, at least and at most: see `logout_seconds`; a cancelled run
                                  waits as long for the answer to a login
    """

    expand: float = 30.0
    attempts: int = 4
    busy: float = 0.5
    busy_max: float = 10.0
    asked_max: float = 60.0
    poll: float = 1.0
    settle: float = 60.0
    refused: float = 5.0
    refused_max: float = 60.0
    refusals: int = 6
    unknown: float = 30.0
    grace: float = 60.0
    rest: float = 10.0
    switch_off: float = 120.0
    look: float = 30.0
    logout: float = 5.0
    logout_max: float = 30.0

    def logout_seconds(self, slowest: float) -> float:
        """Return the time for closing the session at a BMC with a slowest answer of `slowest` seconds.

        The request may need a new connection and a second try.
        """
        return min(max(self.logout, _ANSWERS_PER_LOGOUT * slowest), max(self.logout, self.logout_max))

    def refusal_pause(self, refusals: int, retry_after: float | None) -> float:
        """Return the pause after so many refusals for now: what the BMC asks for, else longer each time."""
        longer = min(self.refused * 2 ** (refusals - 1), self.refused_max)
        return longer if retry_after is None else min(retry_after, self.refused_max)
