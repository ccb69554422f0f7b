"""How a supervised run goes on after a failure, as its user ordered it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class JobPolicy:
    """The limits of a supervised run.

    retries         attempts after the first one
    backoff_s       seconds before the second attempt; doubled for each further one, at most an hour
    drain           drain hosts that are to blame for certain or likely by their hardware
    quarantine      quarantine those whose hardware is proven to blame, which files a work order
    setup_s         seconds without progress before the first steps; `hang_s` the least later
    slower_percent, slower_batches  abort after so many steps, each so much slower than the median; 0: never
    """

    retries: int = 3
    backoff_s: int = 60
    drain: bool = True
    quarantine: bool = False
    setup_s: int = 1800
    hang_s: int = 300
    slower_percent: int = 0
    slower_batches: int = 0

    def pause(self, attempt: int) -> int:
        """Return the seconds to wait after the attempt of this number, the first being 1."""
        return min(3600, self.backoff_s << min(attempt - 1, 10))
