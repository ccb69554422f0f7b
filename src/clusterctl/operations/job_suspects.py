"""What becomes of a drained host whose hardware is proven to blame for a job's failure, as the site has decided.

`jobs.proven_fault` of the site file: `drain` leaves it to operators; `quarantine` files a work order; `revalidate`
burns the host in again without an operator, so many times a day over all hosts, and each host once in `AGAIN`: a host
that passed and is to blame once more is quarantined.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from clusterctl.fleet.event import Event, Kind
from clusterctl.fleet.payloads.runs import RunOrdered
from clusterctl.operations import detached
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl.operations.revalidate import RevalidateRequest
from clusterctl.operations.runs import RunRecord

COMMAND = "job revalidate"
"""What the runs are listed as; by this they are counted."""
DAY = timedelta(days=1)
AGAIN = timedelta(days=7)

Order = Callable[[SiteContext, RevalidateRequest, detached.Origin], RunRecord]


class FollowUp(enum.Enum):
    """What follows for the host."""

    DRAIN = "drain"
    QUARANTINE = "quarantine"
    REVALIDATE = "revalidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """`because` is why it is less, or more, than the site's rule; empty where it is that rule."""

    follow_up: FollowUp
    because: str = ""


def decide(context: SiteContext, host: str) -> Decided:
    """Return what follows for a host by the site's rule and its budgets, as the journal has them used."""
    settings = context.site.settings.jobs
    wanted = FollowUp(settings.proven_fault)
    if wanted is not FollowUp.REVALIDATE:
        return Decided(follow_up=wanted)
    now = current_time()
    ordered = [one for one in context.journal.recent((Kind.RUN_ORDERED,), now - AGAIN) if _is_of_a_job(one)]
    if any(host in _nodes(one) for one in ordered):
        because = f"it was revalidated in the last {AGAIN.days} days for another job"
        return Decided(follow_up=FollowUp.QUARANTINE, because=because)
    today = sum(now - one.at < DAY for one in ordered)
    if today >= settings.revalidations_a_day:
        because = f"{today} hosts were revalidated in a day (jobs.revalidations_a_day)"
        return Decided(follow_up=FollowUp.DRAIN, because=because)
    return Decided(follow_up=FollowUp.REVALIDATE)


def revalidate(context: SiteContext, host: str, reason: str, drain: str, order: Order = detached.order) -> RunRecord:
    """Order a host's burn-in as a detached run, once for each drain; return it.

    No disk is written: nothing was repaired, so that it begins with the burn-in. `drain`: the reason of the drain,
    which is lifted once the host is gold again.
    """
    request = RevalidateRequest(nodes=(host,), reason=reason, lifts=drain)
    return order(context, request, detached.Origin(command=COMMAND, key=f"{drain}:{host}"))


def _is_of_a_job(event: Event) -> bool:
    return isinstance(event.payload, RunOrdered) and event.payload.command == COMMAND


def _nodes(event: Event) -> tuple[str, ...]:
    payload = event.payload
    return tuple(payload.request.get("nodes", ())) if isinstance(payload, RunOrdered) else ()
