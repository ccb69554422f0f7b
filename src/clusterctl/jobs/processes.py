"""Rules that find a process that does not run: a signal, a cgroup's quota, or a wait in the kernel holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.jobs.attribution import Candidate, JobAction, Suspect
from clusterctl.jobs.case import TOGETHER, Case, when
from clusterctl.jobs.evidence import Observation, RankProcess
from clusterctl.jobs.kernel_lines import HUNG_TASK, STORAGE_FRAME

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


def hung_tasks(case: Case) -> Iterator[Candidate]:
    """Blame the storage where the kernel of a host reports a hung process, and its stack is in a file system's client.

    On several hosts it is their common storage, and no host is to blame.
    """
    waiting: dict[str, Observation] = {}
    for hung in (one for one in case.observations if one.rule == HUNG_TASK):
        if any(_is_of_its_stack(frame, hung) for frame in case.observations):
            waiting.setdefault(hung.host, hung)
    if not waiting:
        return
    first = min(waiting.values(), key=when)
    several = len(waiting) > 1
    yield Candidate(
        rule="hung_task",
        error=HUNG_TASK,
        failure=Failure.HANG,
        layer=Layer.STORAGE,
        certainty=Certainty.LIKELY,
        cause=f"{first.meaning.parts['program']} waits in the client of a file system",
        action=JobAction.WAIT if several else JobAction.RESTART_WITHOUT,
        remedy="check the storage servers and the network to them" + ("; drain no host for it" if several else ""),
        suspects=() if several or not first.host else (Suspect(host=first.host),),
        at=first.at,
        because=(f"the kernels of {len(waiting)} hosts report hung processes with such a stack",) if several else (),
        first=first,
    )


def _is_of_its_stack(frame: Observation, hung: Observation) -> bool:
    """Return whether a frame may be of the stack that the kernel printed below the message of a hung process."""
    return frame.rule == STORAGE_FRAME and frame.host == hung.host and abs(when(frame) - when(hung)) <= TOGETHER


def _few(case: Case, found: Sequence[RankProcess]) -> bool:
    return bool(found) and len(found) <= len(case.evidence.processes) * _SMALL


def _suspects(found: Sequence[RankProcess]) -> tuple[Suspect, ...]:
    return tuple(Suspect(host=one.host, rank=one.rank) for one in found[:64])


def _listed(found: Sequence[RankProcess]) -> str:
    more = f" and {len(found) - 8} more" if len(found) > 8 else ""
    return ", ".join(str(one.rank) for one in found[:8]) + more


PROCESSES: tuple[Callable[[Case], Iterator[Candidate]], ...] = (stopped_ranks, throttled_ranks, hung_tasks)
