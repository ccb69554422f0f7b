"""An order over nodes that no single worker reaches: one run for each group of workers, all ordered at once.

split   nodes go to the live workers that reach them: those with the fewest addresses first
order   all runs of it, in one transaction; they share an id, `parent`
fold    several runs of one order as one, to be listed, shown and followed
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_network
from typing import Any, Protocol

from clusterctl.fleet.errors import ConflictError, UsageError
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.payloads.runs import RunOrdered
from clusterctl.fleet.reach import collapsed, unreached
from clusterctl.operations import runs, workers
from clusterctl.operations.context import SiteContext, new_run_id
from clusterctl.operations.detached import Origin, addresses, ordered
from clusterctl.operations.operation import Effect, Preview
from clusterctl.operations.runs import RunRecord, RunState
from clusterctl.operations.site_facts import state_dir
from clusterctl.operations.workers import WorkerRecord

AUTO = "auto"
"""Instead of a pool: the workers that reach the nodes."""
_CHOOSES = {"RunRequest": "limit", "RevalidateRequest": "nodes"}
"""Request → its field with the names of nodes. Another request is not split: its nodes belong together."""
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerGroup:
    """The live workers of one pool with the same reach; no networks: they reach all."""

    pool: str
    reach: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[bool, int, str, tuple[str, ...]]:
        """Sort those with the fewest addresses first, and those that reach all last."""
        return not self.reach, sum(ip_network(one).num_addresses for one in self.reach), self.pool, self.reach


@dataclass(frozen=True, slots=True)
class RunPart:
    """What one group of workers is to do. `approved`: the digest of its own preview."""

    pool: str
    nodes: tuple[str, ...]
    request: Any
    approved: str


class Previewed(Protocol):
    """A module of `clusterctl.operations` that previews its request."""

    def preview(self, context: SiteContext, request: Any, /) -> Preview: ...


def split(context: SiteContext, operation: Previewed, request: Any, preview: Preview) -> tuple[RunPart, ...]:
    """Return the parts of an approved order, one for each group of workers.

    Raises `UsageError` where no live worker reaches a node, or the operation cannot be split.
    """
    names = tuple(dict.fromkeys(effect.node for effect in preview.effects))
    groups = grouped(addresses(context, names), _live(context))
    if len(groups) == 1:
        (group,) = groups
        return (RunPart(group.pool, names, request, preview.digest),)
    chooses = _CHOOSES.get(type(request).__name__)
    if chooses is None:
        remedy = "name a pool whose workers reach all of its nodes, or order it once for each pool"
        raise UsageError(f"its nodes are those of {len(groups)} groups of workers", where="--queue", remedy=remedy)
    parts: list[RunPart] = []
    effects: set[Effect] = set()
    for group, nodes in groups.items():
        part = replace(request, **{chooses: nodes})
        found = operation.preview(context, part)
        effects.update(found.effects)
        parts.append(RunPart(group.pool, nodes, part, found.digest))
    if effects != set(preview.effects):
        remedy = "read the new preview; where it stays so, order it once for each pool"
        raise ConflictError("the parts of the order would not do what was approved", where="--queue", remedy=remedy)
    return tuple(parts)


def _live(context: SiteContext) -> tuple[WorkerRecord, ...]:
    return tuple(one for one in workers.read(context).workers if one.alive)


def grouped(
    needed: Mapping[str, Collection[str]], live: Sequence[WorkerRecord]
) -> Mapping[WorkerGroup, tuple[str, ...]]:
    """Return the nodes of each group of workers, in their order. `needed`: the addresses of each node, by its name.

    Raises `UsageError` that names the nodes that no worker reaches.
    """
    groups = sorted({WorkerGroup(pool=one.pool, reach=one.reach) for one in live}, key=lambda group: group.order)
    found: dict[WorkerGroup, list[str]] = {}
    missed: dict[str, tuple[str, ...]] = {}
    for name, texts in needed.items():
        wants = collapsed(texts)
        group = next((one for one in groups if not unreached(wants, one.reach)), None)
        if group is None:
            missed[name] = wants
        else:
            found.setdefault(group, []).append(name)
    if missed:
        raise _unreached(missed, any_live=bool(groups))
    return {group: tuple(found[group]) for group in groups if group in found}


def _unreached(missed: Mapping[str, tuple[str, ...]], *, any_live: bool) -> UsageError:
    remedy = "begin a worker there: clusterctl worker --pool NAME --reach CIDR; or let the run wait: --queue NAME"
    if not any_live:
        return UsageError("no worker works", where="--queue", remedy=remedy)
    shown = "; ".join(f"{name} ({', '.join(texts)})" for name, texts in list(missed.items())[:_NAMED])
    more = f"; and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
    return UsageError(f"no worker that works reaches {shown}{more}", where="--queue", remedy=remedy)


def order(context: SiteContext, parts: Sequence[RunPart], origin: Origin) -> str:
    """Order all parts, in one transaction; return the id that their runs share."""
    parent = new_run_id()
    digits = len(str(len(parts)))
    events = []
    known = addresses(context, [name for part in parts for name in part.nodes])
    for number, part in enumerate(parts, start=1):
        own = replace(origin, pool=part.pool, approved=part.approved, nodes=part.nodes)
        needed = collapsed(text for name in part.nodes for text in known.get(name, ()))
        payload = ordered(part.request, own, needed, parent)
        events.append(NewEvent(Stream.RUN, f"{parent}.{number:0{digits}}", payload))
    state_dir(context.site)
    context.journal.append(events)
    return parent


@dataclass(frozen=True, slots=True, kw_only=True)
class RunGroup:
    """The runs of one order over several groups of workers. `name`: the id that they share."""

    name: str
    runs: tuple[RunRecord, ...]

    @property
    def first(self) -> RunRecord:
        return self.runs[0]

    @property
    def ended(self) -> tuple[RunRecord, ...]:
        return tuple(run for run in self.runs if run.state is RunState.ENDED)

    @property
    def active(self) -> bool:
        return len(self.ended) < len(self.runs)

    @property
    def state(self) -> RunState:
        """Running where one runs, else waiting where one waits, else ended."""
        states = {run.state for run in self.runs}
        ranked: tuple[RunState, ...] = (RunState.RUNNING, RunState.WAITING, RunState.LOST, RunState.ENDED)
        return next(state for state in ranked if state in states)

    @property
    def exit_code(self) -> int | None:
        """The highest exit code once all have ended."""
        return None if self.active else max(run.exit_code or 0 for run in self.runs)

    @property
    def end(self) -> datetime | None:
        """When the last one ended, once all have."""
        return None if self.active else max(run.ended or run.ordered for run in self.runs)


def read(context: SiteContext, most: int = runs.LISTED) -> tuple[RunRecord | RunGroup, ...]:
    """Return the newest orders, the newest first: runs, and groups of runs."""
    members: dict[str, list[str]] = {}
    for event in context.journal.latest(Stream.RUN, Kind.RUN_ORDERED):
        parent = event.payload.parent if isinstance(event.payload, RunOrdered) else ""
        members.setdefault(parent or event.subject, []).append(event.subject)
    newest = sorted(members, reverse=True)[:most]
    return tuple(_order(context, name, members[name]) for name in newest)


def _order(context: SiteContext, name: str, members: Sequence[str]) -> RunRecord | RunGroup:
    if list(members) == [name]:
        return runs.find(context, name)
    return RunGroup(name=name, runs=tuple(runs.find(context, member) for member in sorted(members)))


def find(context: SiteContext, name: str = "") -> RunRecord | RunGroup:
    """Return the run or the group of runs of this id, or the only one that begins so; the newest order for no name."""
    if not name:
        newest = read(context, 1)
        return newest[0] if newest else runs.find(context)
    if members := runs.children(context, name):
        return RunGroup(name=name, runs=members)
    events = context.journal.latest(Stream.RUN, Kind.RUN_ORDERED)
    meant = [
        event.payload.parent
        for event in events
        if isinstance(event.payload, RunOrdered) and event.subject.startswith(name)
    ]
    if len(meant) > 1 and meant[0] and len(set(meant)) == 1:
        return RunGroup(name=meant[0], runs=runs.children(context, meant[0]))
    return runs.find(context, name)


def require_one(context: SiteContext, name: str) -> None:
    """Raise `UsageError` where the name means several runs of one order: each is retried by itself."""
    found = find(context, name)
    if isinstance(found, RunGroup):
        failed = [run.name for run in found.ended if run.exit_code]
        remedy = f"retry one of {', '.join(failed[:_NAMED])}" if failed else "none of its runs has failed"
        raise UsageError(f"it is an order of {len(found.runs)} runs", where=found.name, remedy=remedy)
