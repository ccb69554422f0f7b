"""Rules that find the rank that is kept off the processor: by a signal, or by the quota of its cgroup."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.jobs.attribution import Candidate, JobAction, Suspect
from clusterctl.jobs.case import Case
from clusterctl.jobs.evidence import RankProcess

HELD_BACK = 0.25
"""A rank that its quota stops in this share of the periods is held back."""
_SMALL = 0.5
"""Where more ranks than this share are held, no host is to blame: the job was suspended, or has this quota."""


def stopped_ranks(case: Case) -> Iterator[Candidate]:
    """Blame the hosts whose ranks are stopped by a signal: the others wait for them."""
    found = [one for one in case.evidence.processes if one.stopped]
    if _few(case, found):
        yield Candidate(
            rule="stopped_rank",
            failure=Failure.HANG,
            layer=Layer.SYSTEM_SOFTWARE,
            certainty=Certainty.PROVEN,
            cause=f"rank {_listed(found)} is stopped by a signal (state T)",
            action=JobAction.RESTART_WITHOUT,
            remedy="look for who sends SIGSTOP on the host: a debugger, a suspended session, a watchdog",
            suspects=_suspects(found),
            because=(f"{len(found)} of {len(case.evidence.processes)} ranks are stopped",),
        )


def throttled_ranks(case: Case) -> Iterator[Candidate]:
    """Blame the hosts whose ranks a processor quota holds back, where it does not hold back the others."""
    found = [one for one in case.evidence.processes if one.throttled >= HELD_BACK]
    if _few(case, found):
        most = max(one.throttled for one in found)
        yield Candidate(
            rule="throttled_rank",
            failure=Failure.SLOW,
            layer=Layer.SYSTEM_SOFTWARE,
            certainty=Certainty.LIKELY,
            cause=f"a processor quota holds back rank {_listed(found)}",
            action=JobAction.RESTART_WITHOUT,
            remedy="compare cpu.max (cpu.cfs_quota_us) of the cgroup of the ranks with that of other hosts",
            suspects=_suspects(found),
            because=(f"in {most:.0%} of the quota's periods; {len(case.evidence.processes) - len(found)} are not",),
        )


def _few(case: Case, found: Sequence[RankProcess]) -> bool:
    return bool(found) and len(found) <= len(case.evidence.processes) * _SMALL


def _suspects(found: Sequence[RankProcess]) -> tuple[Suspect, ...]:
    return tuple(Suspect(host=one.host, rank=one.rank) for one in found[:64])


def _listed(found: Sequence[RankProcess]) -> str:
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return ", ".join(str(one.rank) for one in found[:8]) + more


PROCESSES: tuple[Callable[[Case], Iterator[Candidate]], ...] = (stopped_ranks, throttled_ranks)
