"""Whether a submitted attempt can begin, and whether enough nodes are left for the next one.

A node may be drained between the choice of nodes and the job's start: the job then waits for it without end. What
decides is the scheduler's code for why the job waits, and the states of its nodes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.scheduled_job import ScheduledJob
from clusterctl.jobs.supervision import SupervisedRun
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl.operations.site_facts import require_scheduler
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import RESERVED, Occupancy

_FOR_NODES = frozenset({"", "Priority", "Resources", "ReqNodeNotAvail"})
"""Codes of a job that waits for nodes, or for its turn. With no code the nodes alone decide."""
MOST_NAMED = 3
MOST_REASON = 60


def waits_for_nodes(job: ScheduledJob) -> bool:
    """Return whether nodes may be what a job waits for: not an order, a time, another job or a limit."""
    return job.state == "PENDING" and not job.held and job.reason in _FOR_NODES


def closed_nodes(nodes: Sequence[str], seen: Mapping[str, Occupancy]) -> tuple[str, ...]:
    """Return the nodes on which no job begins: out, about to be, or unknown to the scheduler."""
    return tuple(name for name in nodes if name not in seen or seen[name].closed)


def described(nodes: Iterable[str], seen: Mapping[str, Occupancy]) -> str:
    """Return the first of these nodes with their states and reasons, as text."""
    names = list(nodes)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(_described(name, seen.get(name)) for name in names[:MOST_NAMED]) + more


def _described(name: str, one: Occupancy | None) -> str:
    if one is None:
        return f"{name} is unknown to the scheduler"
    reason = visible_line(one.reason, MOST_REASON)
    return f"{name} is {one.state}{f' ({reason})' if reason else ''}"


def shortage(context: SiteContext, adapters: Adapters, found: SupervisedRun, deadline: Deadline) -> str:
    """Return why too few nodes are left for the next attempt, and what to do; empty where there are enough.

    A node counts where work may begin on it, now or later: also one that is busy, one that a run of clusterctl has
    drained for its own work, and the run's own spares.
    """
    seen = require_scheduler(context.site, adapters.scheduler).look(deadline).value
    now = current_time()
    gold = sorted(node.name for node in context.journal.summaries() if node.in_pool(now))
    own = found.last.spares if found.last is not None else ()
    lacking = [name for name in gold if name in found.suspects or not _returns(name, seen, own)]
    left = len(gold) - len(lacking)
    if left >= found.ordered.nodes:
        return ""
    out = described([name for name in lacking if name not in found.suspects], seen)
    blamed = f"; blamed by this run: {', '.join(found.suspects)}" if found.suspects else ""
    return (
        f"{found.ordered.nodes} gold nodes are needed, work can begin on {left}: {out or 'no other is gold'}{blamed}. "
        "Give nodes back to the scheduler, then order the run again"
    )


def _returns(name: str, seen: Mapping[str, Occupancy], own: Collection[str]) -> bool:
    one = seen.get(name)
    return one is not None and (not one.closed or one.returnable or (name in own and one.state == RESERVED))
