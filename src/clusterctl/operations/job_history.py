"""What the journal holds of failed jobs: attributions of earlier attempts, and the record of a new one."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.payloads.jobs import JobAttributed
from clusterctl.jobs.attribution import Attribution
from clusterctl.jobs.evidence import EarlierFailure
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time

LOOKED_BACK = timedelta(days=28)
"""Attributions that are older mean little for a host: Meta's window for bad nodes."""
MAX_HOSTS = 64


def earlier_failures(context: SiteContext, found: Attribution) -> tuple[EarlierFailure, ...]:
    """Return the failures that were recorded in the last weeks, oldest first, without the record of `found` itself."""
    events = context.journal.recent((Kind.JOB_ATTRIBUTED,), current_time() - LOOKED_BACK)
    itself = attributed(found)
    return tuple(
        EarlierFailure(
            job=event.subject,
            rule=event.payload.error or event.payload.rule,
            hosts=event.payload.hosts,
            iteration=event.payload.iteration,
            rank=event.payload.ranks[0] if event.payload.ranks else None,
        )
        for event in events
        if isinstance(event.payload, JobAttributed) and not (event.subject == found.job and same(event.payload, itself))
    )


def record(context: SiteContext, found: Attribution, user: str = "") -> bool:
    """Add an attribution of a job of `user` to the journal; return False where it holds the same one already."""
    if not found.job:
        raise UsageError(
            "the job has no id, so its failure cannot be recorded", where="job.json: job", remedy='add "job": "123"'
        )
    payload = replace(attributed(found), user=user)
    for event in context.journal.history(Stream.JOB, found.job):
        if isinstance(event.payload, JobAttributed) and same(event.payload, payload):
            return False
    context.journal.append([NewEvent(Stream.JOB, found.job, payload)])
    return True


def same(one: JobAttributed, other: JobAttributed) -> bool:
    """Return True where both are of one attempt: the same error at the same time."""
    return (one.error, one.at) == (other.error, other.at)


def attributed(found: Attribution) -> JobAttributed:
    """Return an attribution as the payload that the journal holds."""
    cause = found.cause
    return JobAttributed(
        failure=cause.failure,
        layer=cause.layer,
        certainty=cause.certainty,
        persistence=cause.persistence,
        rule=cause.rule,
        error=cause.error,
        cause=cause.cause,
        action=cause.action.value,
        at=cause.at,
        hosts=tuple(dict.fromkeys(suspect.host for suspect in cause.suspects if suspect.host))[:MAX_HOSTS],
        ranks=tuple(suspect.rank for suspect in cause.suspects if suspect.rank is not None)[:MAX_HOSTS],
        iteration=cause.iteration,
        from_host=cause.from_host,
    )
