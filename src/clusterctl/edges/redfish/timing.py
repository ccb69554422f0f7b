"""How long to wait for what, and how often to ask: for tests, which have no time, all of it is small."""

from __future__ import annotations

from dataclasses import dataclass

_LEAVING = 4


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, and counts of tries.

    attempts, busy, busy_max      for a BMC that is busy: how often, and pauses that grow from try to try
    poll                          between two looks at what shall change
    settle                        for a change that was accepted to be seen
    refused, refused_max, refusals   pauses after a refusal that means "not now", and how many such refusals
    unknown                       for a change whose answer was lost to be seen, before it is asked for again
    grace                         for an OS to shut down before power is cut
    rest                          without power, in a power cycle
    gone                          for a BMC to go away that shall lose its own power, and come back changed
    look                          for one look at a BMC that may be away
    logout, logout_max            for closing the session, at least and at most: see `leaving`
    """

    attempts: int = 4
    busy: float = 0.5
    busy_max: float = 10.0
    poll: float = 1.0
    settle: float = 60.0
    refused: float = 5.0
    refused_max: float = 60.0
    refusals: int = 6
    unknown: float = 30.0
    grace: float = 60.0
    rest: float = 10.0
    gone: float = 120.0
    look: float = 30.0
    logout: float = 5.0
    logout_max: float = 30.0

    def leaving(self, slowest: float) -> float:
        """Seconds for closing the session at a BMC that has taken up to `slowest` seconds for an answer: it may have to
        connect anew, and be asked once more.
        """
        return min(max(self.logout, _LEAVING * slowest), max(self.logout, self.logout_max))
