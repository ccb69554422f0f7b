"""Chooses the cause of a failure among the candidates of `causes`, `hangs` and `processes`.

1. What came after the job was ended by an order, or long before the job's last step, is no cause. A cancelled step of
   which nothing else is known is no such order: srun cancels it once a rank has failed.
2. The surest candidate wins: proven, likely, unknown. Within `AROUND` the order of two errors means nothing.
3. Of equally sure candidates the first wins; all others follow from it, or have nothing to do with it.
4. An exception of the program is no cause by itself where a part, a link, a node or the storage failed at that time:
   ranks that lose a peer raise exceptions of all kinds.
5. An order of the scheduler wins only where nothing else came before it.
6. An unknown suspect that earlier failures blame, too, is likely.
7. A job that completed has failed only by a cause that is likely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from clusterctl.fleet.blame import Certainty, Failure, Layer
from clusterctl.jobs.attribution import Attribution, Candidate, JobAction
from clusterctl.jobs.case import AROUND, TOGETHER, Case
from clusterctl.jobs.causes import CAUSES
from clusterctl.jobs.evidence import JobEvidence
from clusterctl.jobs.hangs import HANGS
from clusterctl.jobs.processes import PROCESSES

WENT_ON = timedelta(minutes=10)
"""A job that made a step so long after an error did not fail with it."""
_AFTER_ORDER = timedelta(seconds=5)
_LAST = datetime.max.replace(tzinfo=UTC)
_ENDED_WELL = frozenset({"COMPLETED"})
_RUNS = frozenset({"RUNNING", "SUSPENDED"})
_OF_HOSTS = (Layer.HARDWARE, Layer.FABRIC, Layer.UNKNOWN)
_OF_PARTS = (Layer.HARDWARE, Layer.FABRIC)
_BELOW = (Layer.HARDWARE, Layer.FABRIC, Layer.STORAGE)
_EXCEPTION, _LOST_NODE = "exception", "lost_node"
_NOTICED = timedelta(minutes=15)
"""So late the scheduler may notice that it lost a node: slurm.conf(5), SlurmdTimeout."""


def attribute(evidence: JobEvidence) -> Attribution:
    """Return the cause of the failure, what else it may be, and what follows from it."""
    case = Case(evidence)
    found = [candidate for rule in (*CAUSES, *HANGS, *PROCESSES) for candidate in rule(case)]
    found = _before_the_order([_repeated(evidence, one) for one in found if not _went_on(evidence, one)])
    ranked = sorted(_without_cascades(found), key=_order)
    ranked = _with_its_host(ranked)
    cause = ranked[0] if ranked and not _completed_all_the_same(evidence, ranked[0]) else _nothing(evidence)
    return Attribution(
        job=evidence.job,
        cause=cause,
        others=_others(cause, [one for one in ranked if one is not cause]),
        consequences=_consequences(case, cause),
        unmeasured=evidence.missing,
    )


def _order(candidate: Candidate) -> tuple[int, int, datetime]:
    """Sort by certainty, then orders of the scheduler last, then by time."""
    return candidate.certainty.rank, candidate.failure is Failure.ENDED, candidate.at or _LAST


def _with_its_host(ranked: list[Candidate]) -> list[Candidate]:
    """Return the candidates; where the first one names no host, an equally sure one of its layer that names one leads.

    A rank reports a GPU's error in the job's log, and the kernel of its host does, too. Several such hosts: none leads.
    """
    if not ranked or ranked[0].layer not in _OF_PARTS or _named(ranked[0]):
        return ranked
    first = ranked[0]
    alike = [one for one in ranked if _named(one) and (one.layer, one.certainty) == (first.layer, first.certainty)]
    near = [one for one in alike if one.at is None or first.at is None or abs(one.at - first.at) <= AROUND]
    if len({host for one in near for host in _named(one)}) != 1:
        return ranked
    return [near[0], *(one for one in ranked if one is not near[0])]


def _named(candidate: Candidate) -> set[str]:
    return {suspect.host for suspect in candidate.suspects} - {""}


def _completed_all_the_same(evidence: JobEvidence, cause: Candidate) -> bool:
    return evidence.scheduler.state in _ENDED_WELL and cause.certainty is Certainty.UNKNOWN


def _without_cascades(found: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates; an exception near the failure of something below the program is of unknown cause."""
    candidates = list(found)
    below = [one for one in candidates if one.layer in _BELOW and one.certainty is not Certainty.UNKNOWN]
    return [
        replace(one, certainty=Certainty.UNKNOWN)
        if one.rule == _EXCEPTION and any(_may_follow(one, other) for other in below)
        else one
        for one in candidates
    ]


def _may_follow(exception: Candidate, other: Candidate) -> bool:
    """Return whether an exception may follow from another failure: clocks differ, and lost nodes are noticed late."""
    if exception.at is None or other.at is None:
        return True
    late = _NOTICED if other.rule == _LOST_NODE else TOGETHER
    return other.at - late <= exception.at <= other.at + AROUND


def _went_on(evidence: JobEvidence, candidate: Candidate) -> bool:
    progress = evidence.progress
    if progress is None or progress.at is None or candidate.at is None or candidate.failure is Failure.ENDED:
        return False
    return progress.at - candidate.at > WENT_ON


def _before_the_order(found: Iterable[Candidate]) -> list[Candidate]:
    """Return the candidates without what came after an order of the scheduler: processes that end log errors."""
    candidates = list(found)
    orders = [one for one in candidates if one.failure is Failure.ENDED]
    if not orders:
        return candidates
    first = min(orders, key=lambda one: one.at or _LAST)
    before = [one for one in candidates if one.failure is Failure.ENDED or _is_in_time(one, first)]
    return [one for one in before if _is_known_cause(one)] or before


def _is_in_time(candidate: Candidate, order: Candidate) -> bool:
    """Return whether a candidate may have led to the end, rather than followed from the order.

    Lines of one log are in the order in which they stand there: a line without a time has only the time of one above.
    An order that is not proven, a cancelled step, may itself follow from what stands below it: the output of ranks and
    of slurmstepd comes on different ways.
    """
    proven = order.certainty is Certainty.PROVEN
    here, there = _position(candidate), _position(order)
    if here is not None and there is not None and here[0] == there[0]:
        return here[1] < there[1] or not proven
    if candidate.at is None:
        return not proven
    return order.at is None or candidate.at <= order.at + _AFTER_ORDER


def _position(candidate: Candidate) -> tuple[str, int] | None:
    return candidate.first.position if candidate.first is not None else None


def _is_known_cause(candidate: Candidate) -> bool:
    return candidate.failure is not Failure.ENDED and candidate.certainty is not Certainty.UNKNOWN


def _repeated(evidence: JobEvidence, candidate: Candidate) -> Candidate:
    """Return the candidate with what earlier failures of its suspects add."""
    hosts = {suspect.host for suspect in candidate.suspects} - {""}
    past = sorted({one.job for one in evidence.earlier if hosts & {*one.hosts}})
    if not past or candidate.layer not in _OF_HOSTS:
        return candidate
    because = (*candidate.because, f"the suspect was blamed before: job {', '.join(past[:3])}")
    sure = Certainty.LIKELY if candidate.certainty is Certainty.UNKNOWN else candidate.certainty
    return replace(candidate, because=because, certainty=sure)


def _nothing(evidence: JobEvidence) -> Candidate:
    """Return the answer where no rule has found anything."""
    facts = evidence.scheduler
    if facts.state in _ENDED_WELL:
        return Candidate(
            rule="completed",
            failure=Failure.ENDED,
            layer=Layer.SCHEDULER,
            certainty=Certainty.PROVEN,
            cause="the job completed",
            action=JobAction.NOTHING,
            remedy="nothing is to be done",
            at=facts.ended,
        )
    if facts.state in _RUNS:
        return Candidate(
            rule="running",
            failure=Failure.ENDED,
            layer=Layer.UNKNOWN,
            certainty=Certainty.UNKNOWN,
            cause="the job runs, and no line of the evidence is known to end one",
            action=JobAction.INVESTIGATE,
            remedy="where it makes no progress, read its stacks: clusterctl job stacks JOBID",
        )
    code = f", exit code {facts.exit_code}" if facts.exit_code is not None else ""
    unread = f"; not read: {evidence.missing[0]}" if evidence.missing else ""
    unread += f", and {len(evidence.missing) - 1} more" if len(evidence.missing) > 1 else ""
    return Candidate(
        rule="no_evidence",
        failure=Failure.CRASH,
        layer=Layer.UNKNOWN,
        certainty=Certainty.UNKNOWN,
        cause=f"no line of the evidence is known to end a job (state {facts.state or 'unknown'}{code}){unread}",
        action=JobAction.INVESTIGATE,
        remedy="read the last lines of each rank's log, and collect what is missing",
        at=facts.ended,
    )


def _others(cause: Candidate, rest: Iterable[Candidate]) -> tuple[Candidate, ...]:
    """Return the other causes that the evidence may have: without what the cause explains."""
    hosts = {suspect.host for suspect in cause.suspects}
    kept = []
    for one in rest:
        same_host = bool(hosts & {suspect.host for suspect in one.suspects} - {""})
        near = cause.at is None or one.at is None or abs(one.at - cause.at) <= AROUND
        explained = same_host or (one.certainty is Certainty.UNKNOWN and cause.failure is not Failure.ENDED)
        if not (near and explained):
            kept.append(one)
    return tuple(kept[:5])


def _consequences(case: Case, cause: Candidate) -> dict[str, int]:
    """Return how many lines of each rule follow from the cause."""
    counts: Counter[str] = Counter()
    for one in case.consequences:
        if one is not cause.first:
            counts[one.rule] += one.times
    return dict(counts.most_common(8))
