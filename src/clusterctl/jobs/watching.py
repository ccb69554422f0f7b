"""When a running attempt has failed although the scheduler still runs it: it hangs, or it is too slow.

hang  no sign of progress for five times the longest time between two of them, at least for the policy's floor; before
      the first steps, and while a checkpoint is saved, for the time that the policy gives for loading
slow  the last steps, so many or more, each slower than the median of the steps before them by so many percent; single
      steps, no mean
"""

from __future__ import annotations

import re
import statistics
from dataclasses import dataclass
from datetime import datetime

from clusterctl.fleet.blame import Failure
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.job_policy import JobPolicy
from clusterctl.jobs.progress import WARM_UP, JobProgress

TIMES_LONGEST = 5.0
_SLOWER = re.compile(r"\s*(\d{1,3})\s*% for (\d{1,4}) (?:batches|steps)\s*")


@dataclass(frozen=True, slots=True)
class WatchVerdict:
    """How the attempt fails, in one clause."""

    failure: Failure
    text: str


def parse_slower(text: str) -> tuple[int, int]:
    """Return percent and number of batches of `30% for 10 batches`. Raises `UsageError`."""
    match = _SLOWER.fullmatch(text)
    if match is None or not int(match[1]) or not int(match[2]):
        remedy = "write it as '30% for 10 batches'"
        raise UsageError(f"{text!r} is not understood", where="--abort-if-slower-than", remedy=remedy)
    return int(match[1]), int(match[2])


def judge(progress: JobProgress, policy: JobPolicy, started: datetime, now: datetime) -> WatchVerdict | None:
    """Return how a running attempt fails; None where it makes progress."""
    return _hang(progress, policy, started, now) or _slow(progress, policy)


def _hang(progress: JobProgress, policy: JobPolicy, started: datetime, now: datetime) -> WatchVerdict | None:
    if progress.steps <= WARM_UP:
        limit = float(policy.setup_s)
    else:
        limit = max(float(policy.hang_s), TIMES_LONGEST * progress.longest)
    if progress.saving_since is not None:
        limit = max(limit, float(policy.setup_s))
    silent = (now - (progress.active_at or started)).total_seconds()
    if silent <= limit:
        return None
    last = f"after step {progress.last}" if progress.last is not None else "and no step was seen"
    return WatchVerdict(Failure.HANG, f"no progress for {silent:.0f} s {last} (limit {limit:.0f} s)")


def _slow(progress: JobProgress, policy: JobPolicy) -> WatchVerdict | None:
    percent, batches = policy.slower_percent, policy.slower_batches
    known = list(progress.seconds)[WARM_UP:]
    if not percent or not batches or len(known) < 2 * batches:
        return None
    for slow in range(batches, len(known) - batches + 1):  # many steps may be made between two looks
        usual = statistics.median(known[:-slow])
        if min(known[-slow:]) > usual * (1 + percent / 100):
            text = f"{slow} steps in a row took more than {percent} % longer than the median of {usual:.3g} s"
            return WatchVerdict(Failure.SLOW, text)
    return None
