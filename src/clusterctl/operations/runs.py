"""Detached runs: which there are, what each does, and cancelling one. The journal's stream `run` is their record.

The order of the run's events decides what it is: only the first `run.begun` counts, `run.abandoned` only before it, and
`run.ended` only after it. Whether its process lives is looked up: number, start time and boot id are its identity.
A run of a pool is begun under a claim on it, perhaps several times: the last `run.begun` counts, and it runs as long as
that claim does.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from clusterctl.edges import detached as processes
from clusterctl.edges.journal.claims import Owner
from clusterctl.edges.run_log import last_lines, log_file
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.event import Event, Kind, NewEvent, Stream
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.payloads.node import NodeHeld, NodeQuarantined, StageAdvanced, StepStarted
from clusterctl.fleet.payloads.runs import (
    ProcessIdentity,
    RunAbandoned,
    RunBegun,
    RunCancelOrdered,
    RunEnded,
    RunHandedBack,
    RunOrdered,
)
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Effect, Outcome, Preview, Result
from clusterctl.operations.run_log import FOLDER

NAME = "cancel"
LISTED = 50
"""Runs that a list shows by default, the newest."""
_PROGRESS = (Kind.STEP_STARTED, Kind.STAGE_ADVANCED, Kind.NODE_HELD, Kind.NODE_QUARANTINED)


class RunState(enum.Enum):
    """Where a detached run stands. `LOST`: its process is gone and wrote no end."""

    WAITING = "waiting"
    RUNNING = "running"
    ENDED = "ended"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A detached run.

    operation     module of `clusterctl.operations`, and its `request` as JSON
    approved      digest of the approved preview
    command       of the order (`burnin nightly`), by the user `actor`
    earlier       id of the run that it repeats
    process       None before it begins
    text          the error, or why it stopped
    cancelled_by  the user who asked it to stop
    pool          whose workers carry it out, by `priority`; empty for a process of its own
    needs         what a worker must reach: addresses and networks of its nodes
    worker        that began it last, for the time number `begins`
    parent        of a run that is one of several of one order
    """

    name: str
    operation: str
    command: str
    request: Mapping[str, Any]
    actor: str
    ordered: datetime
    state: RunState
    approved: str = ""
    earlier: str = ""
    process: ProcessIdentity | None = None
    began: datetime | None = None
    ended: datetime | None = None
    exit_code: int | None = None
    text: str = ""
    cancelled_by: str = ""
    pool: str = ""
    priority: int = 0
    needs: tuple[str, ...] = ()
    worker: str = ""
    begins: int = 0
    parent: str = ""

    @property
    def active(self) -> bool:
        """True while it waits or runs."""
        return self.state in (RunState.WAITING, RunState.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeProgress:
    """What a run did last to one node, in one clause, and when."""

    node: str
    text: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelRequest:
    """`run`: the id, or its beginning where that is clear; or the id that several runs of one order share."""

    run: str


@dataclass(slots=True)
class _Story:
    """The events of one run, as far as they count."""

    ordered: Event | None = None
    begun: Event | None = None
    closed: Event | None = None
    cancelled: Event | None = None
    begins: int = 0

    @property
    def queued(self) -> bool:
        return (
            self.ordered is not None
            and isinstance(self.ordered.payload, RunOrdered)
            and self.ordered.payload.pool != ""
        )

    def add(self, event: Event) -> None:
        if self.queued:
            self._add_queued(event)
        else:
            self._add(event)

    def _add_queued(self, event: Event) -> None:
        """Add an event of a pool's run: each was written under the claim on it, but for a request to stop."""
        match event.payload:
            case RunBegun() if self.closed is None:
                self.begun, self.begins = event, self.begins + 1
            case RunEnded() if self.closed is None:
                self.closed = event
            case RunHandedBack():
                self.begins -= 1
            case RunCancelOrdered():
                self.cancelled = event
            case _:
                pass

    def _add(self, event: Event) -> None:
        match event.payload:
            case RunOrdered() if self.ordered is None:
                self.ordered = event
            case RunBegun() if self.begun is None and self.closed is None:
                self.begun = event
            case RunAbandoned() if self.begun is None and self.closed is None:
                self.closed = event
            case RunEnded() if self.begun is not None and self.closed is None:
                self.closed = event
            case RunCancelOrdered():
                self.cancelled = event
            case _:
                pass


def read(context: SiteContext, most: int = LISTED) -> tuple[RunRecord, ...]:
    """Return the newest detached runs, the newest first."""
    ordered = [event.subject for event in context.journal.latest(Stream.RUN, Kind.RUN_ORDERED)]
    found = (_record(context, run) for run in sorted(ordered, reverse=True)[:most])
    return tuple(record for record in found if record is not None)


def find(context: SiteContext, name: str = "") -> RunRecord:
    """Return the run with this id, or the only one whose id begins so; the newest one for no name.

    Raises `UsageError` where there is none, or several.
    """
    if (exact := _record(context, name)) is not None:
        return exact
    known = sorted(event.subject for event in context.journal.latest(Stream.RUN, Kind.RUN_ORDERED))
    matching = [run for run in known if run.startswith(name)] if name else known[-1:]
    remedy = "clusterctl runs list prints their ids; --detach begins one"
    if not matching:
        raise UsageError(f"there is no detached run {name}".rstrip(), where="RUN", remedy=remedy)
    if len(matching) > 1:
        raise UsageError(f"{len(matching)} runs begin with {name}", where="RUN", remedy="give more of the id")
    record = _record(context, matching[0])
    if record is None:
        raise UsageError(f"the journal has no order of {matching[0]}", where="RUN", remedy=remedy)
    return record


def _record(context: SiteContext, run: str) -> RunRecord | None:
    """Return a run as its events have it; None where none orders it."""
    story = _Story()
    for event in context.journal.history(Stream.RUN, run) if run else ():
        story.add(event)
    if story.ordered is None or not isinstance(story.ordered.payload, RunOrdered):
        return None
    order = story.ordered.payload
    record = RunRecord(
        name=run,
        operation=order.operation,
        command=order.command,
        request=order.request,
        actor=story.ordered.actor,
        ordered=story.ordered.at,
        state=RunState.LOST if owner(order.by).dead else RunState.WAITING,
        approved=order.approved,
        earlier=order.earlier,
        cancelled_by=story.cancelled.actor if story.cancelled else "",
        pool=order.pool,
        priority=order.priority,
        needs=order.needs,
        parent=order.parent,
    )
    return _closed(_taken(context, record, story) if order.pool else _begun(record, story), story)


def claim_on(run: str) -> NodeId:
    """Return the subject of the claim on a run of a pool."""
    return NodeId(f"run {run}")


def _taken(context: SiteContext, record: RunRecord, story: _Story) -> RunRecord:
    """Return a pool's run as its claim has it."""
    live = any(
        one.live and one.subject == claim_on(record.name) for one in context.journal.owners(claim_on(record.name))
    )
    record = replace(record, state=RunState.WAITING, begins=story.begins)
    if story.begun is None or not isinstance(story.begun.payload, RunBegun):
        return record
    begun = story.begun.payload
    state = RunState.RUNNING if live else RunState.WAITING
    return replace(record, state=state, process=begun.process, began=story.begun.at, worker=begun.worker)


def _begun(record: RunRecord, story: _Story) -> RunRecord:
    if story.begun is None or not isinstance(story.begun.payload, RunBegun):
        return record
    process = story.begun.payload.process
    state = RunState.LOST if owner(process).dead else RunState.RUNNING
    return replace(record, state=state, process=process, began=story.begun.at)


def _closed(record: RunRecord, story: _Story) -> RunRecord:
    if story.closed is None:
        return record
    match story.closed.payload:
        case RunEnded(exit_code=code, text=text) | RunAbandoned(exit_code=code, reason=text):
            return replace(record, state=RunState.ENDED, ended=story.closed.at, exit_code=code, text=text)
        case _:
            return record


def owner(process: ProcessIdentity) -> Owner:
    """Return a process as the journal's claims know it."""
    return Owner(process.host, process.pid, process.started, process.boot, process.machine)


def this_process() -> ProcessIdentity:
    """Return the identity of this process."""
    return ProcessIdentity(**asdict(Owner.this()))


def progress(context: SiteContext, record: RunRecord) -> tuple[NodeProgress, ...]:
    """Return what the run did last to each node, by node name."""
    names: dict[str, str] = {node.id: node.name for node in context.journal.summaries()}
    last: dict[str, NodeProgress] = {}
    for event in context.journal.recent(_PROGRESS, record.began or record.ordered):
        if event.run == record.name and event.stream is Stream.NODE and event.subject in names:
            name = names[event.subject]
            last[name] = NodeProgress(node=name, text=_text(event), at=event.at)
    return tuple(last[name] for name in sorted(last))


def _text(event: Event) -> str:
    match event.payload:
        case StepStarted(step=step):
            return f"{step.value} runs"
        case StageAdvanced(to=stage):
            return stage.value
        case NodeHeld(step=step, cause=cause):
            return f"held at {step.value}: {cause}"
        case NodeQuarantined(step=step, cause=cause):
            return f"quarantined at {step.value}: {cause}"
        case other:
            return str(other)


def log_path(context: SiteContext, run: str) -> Path:
    """Return where the log of a run is, on the controller that runs it."""
    return log_file(context.site.folder.resolve() / "state" / FOLDER, run)


def log_lines(context: SiteContext, run: str, lines: int) -> tuple[str, ...]:
    """Return the last lines of a run's log; nothing where this controller has none."""
    return last_lines(log_path(context, run), lines)


def preview(context: SiteContext, request: CancelRequest) -> Preview:
    """Return what cancelling does. Raises `UsageError` where the run has ended, or its process is gone."""
    return _preview(_active(context, request))


def children(context: SiteContext, name: str) -> tuple[RunRecord, ...]:
    """Return the runs of one order over several pools, by the id that they share; none for the id of a run."""
    found = context.journal.latest(Stream.RUN, Kind.RUN_ORDERED) if name else ()
    mine = [one.subject for one in found if isinstance(one.payload, RunOrdered) and one.payload.parent == name]
    records = (_record(context, run) for run in sorted(mine))
    return tuple(record for record in records if record is not None)


def _active(context: SiteContext, request: CancelRequest) -> tuple[RunRecord, ...]:
    """Return the run to cancel, or those of an order over several pools that have not ended."""
    several = children(context, request.run)
    if not several:
        return (_active_one(find(context, request.run)),)
    active = tuple(record for record in several if record.active)
    if not active:
        remedy = f"clusterctl runs show {request.run} prints how"
        raise UsageError("all of its runs have ended", where=request.run, remedy=remedy)
    return active


def _active_one(record: RunRecord) -> RunRecord:
    if record.state is RunState.LOST:
        remedy = f"clusterctl runs retry {record.name} goes on where it was"
        raise UsageError("its process is gone: there is nothing to cancel", where=record.name, remedy=remedy)
    if not record.active:
        remedy = f"clusterctl runs show {record.name} prints how"
        raise UsageError(f"it has ended with exit code {record.exit_code}", where=record.name, remedy=remedy)
    return record


def _preview(records: Sequence[RunRecord]) -> Preview:
    question = "Cancel this run?" if len(records) == 1 else f"Cancel these {len(records)} runs?"
    return Preview(operation=NAME, question=question, effects=tuple(map(_effect, records)))


def _effect(record: RunRecord) -> Effect:
    begun = record.state is RunState.RUNNING if record.pool else record.process is not None
    text = "is asked to stop; what is done is kept" if begun else "does not begin"
    return Effect(node="", text=f"{record.name} ({record.command}, by {record.actor}) {text}")


def run(context: SiteContext, request: CancelRequest, control: Control) -> Result:
    """Ask the run's own process to stop; a run that has not begun never begins. The same for each of several."""
    records = _active(context, request)
    control.require(_preview(records))
    return Result(operation=NAME, outcomes=tuple(_cancel(context, record) for record in records))


def _cancel(context: SiteContext, record: RunRecord) -> Outcome:
    if record.pool:
        return _cancel_queued(context, record)
    if record.process is None:
        record = abandon(context, record, "it was cancelled before it began", CancelledError.exit_code)
        if record.process is None:
            return Outcome(node=record.name, text="it does not begin")
    context.journal.append([NewEvent(Stream.RUN, record.name, RunCancelOrdered())])
    asked = processes.interrupt(owner(record.process or this_process()))
    return Outcome(node=record.name, text="it was asked to stop" if asked else "it has ended meanwhile")


def _cancel_queued(context: SiteContext, record: RunRecord) -> Outcome:
    """Close a run that no worker has; ask the worker that has it."""
    subject = claim_on(record.name)
    order = NewEvent(Stream.RUN, record.name, RunCancelOrdered())
    claim = context.journal.claim([subject], context.run).granted.get(subject)
    if claim is None:
        context.journal.append([order])
        return Outcome(node=record.name, text="its worker was asked to stop it")
    try:
        if not find(context, record.name).active:
            return Outcome(node=record.name, text="it has ended meanwhile")
        text = "it was cancelled while it waited for a worker"
        ended = RunEnded(exit_code=CancelledError.exit_code, text=text)
        context.journal.append([order, NewEvent(Stream.RUN, record.name, ended)], claim=claim)
    finally:
        context.journal.release([claim])
    return Outcome(
        node=record.name, text="it does not begin" if record.process is None else "no worker goes on with it"
    )


def abandon(context: SiteContext, record: RunRecord, reason: str, exit_code: int) -> RunRecord:
    """Keep a run that has not begun from beginning; return it as it stands then: it may have begun meanwhile."""
    context.journal.append([NewEvent(Stream.RUN, record.name, RunAbandoned(reason=reason, exit_code=exit_code))])
    return find(context, record.name)
