"""Orders a detached run and carries it out: in a process of its own, which outlives what ordered it.

order     the request and the approved preview's digest into the journal, then the process; it waits for its begin
execute   called by that process: begins the run, once, acts as the one who ordered it, writes how it ended
again     the request of an earlier run, to be previewed and ordered again: steps go on where each node stands
"""

from __future__ import annotations

import importlib
import logging
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from clusterctl.edges import detached as processes
from clusterctl.fleet.errors import (
    ClusterctlError,
    ConflictError,
    EnvironmentBrokenError,
    JournalUnavailableError,
    UsageError,
)
from clusterctl.fleet.event import Kind, NewEvent, Stream
from clusterctl.fleet.payloads.runs import RunBegun, RunEnded, RunOrdered
from clusterctl.fleet.reach import collapsed, host_of
from clusterctl.operations import runs
from clusterctl.operations.context import Invocation, SiteContext, new_run_id, open_site
from clusterctl.operations.operation import Control, Preview
from clusterctl.operations.run_log import run_log
from clusterctl.operations.runs import RunRecord, RunState, this_process
from clusterctl.operations.serial import from_data, to_data
from clusterctl.operations.site_facts import state_dir
from clusterctl.ports import Claim

log = logging.getLogger(__name__)

REQUESTS = {
    "bootstrap": "RunRequest",
    "job_watchers": "WatcherRequest",
    "maintain": "MaintainRequest",
    "night": "NightRequest",
    "power": "PowerRequest",
    "reinstall": "ReinstallRequest",
    "revalidate": "RevalidateRequest",
}
"""Module of `clusterctl.operations` → its request. None of these requests holds a secret: the journal keeps them."""
BEGIN_S = 120.0
"""Seconds to wait for the process to begin; it may begin later, too."""
POLL_S = 0.1
VERBOSE = "CLUSTERCTL_VERBOSE"
"""Not inherited: what the process logs is in its log file already."""


class Operation(Protocol):
    """A module of `clusterctl.operations` that may run detached."""

    def preview(self, context: SiteContext, request: Any, /) -> Preview: ...
    def run(self, context: SiteContext, request: Any, control: Control, /) -> Any: ...


def operation_of(name: str) -> Operation:
    """Return the module of an operation that may run detached. Raises `UsageError` for another one."""
    if name not in REQUESTS:
        raise UsageError("this operation has no detached run", where=name, remedy="leave out --detach")
    module: Any = importlib.import_module(f"clusterctl.operations.{name}")
    found: Operation = module
    return found


def operation_for(request: Any) -> Operation:
    """Return the module whose request this is. Raises `UsageError` where it has no detached run."""
    return operation_of(_operation_with(request))


def name_of(operation: Any) -> str:
    """Return the name of an operation's module."""
    return str(operation.__name__).rpartition(".")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where an order comes from.

    command   what the run is listed as (`burnin nightly`)
    approved  digest of the approved preview; empty: any preview is approved
    earlier   id of the run that it repeats
    key       of the one who orders: a second order with the same key returns the first one's run; empty for none
    pool      of workers that carry it out, by `priority`; empty for a process of its own
    nodes     that it acts on, for a pool: their networks decide which of its workers can
    """

    command: str
    approved: str = ""
    earlier: str = ""
    key: str = ""
    pool: str = ""
    priority: int = 0
    nodes: tuple[str, ...] = ()


def order(context: SiteContext, request: Any, origin: Origin) -> RunRecord:
    """Order a detached run and wait until it has begun, or for a pool of workers; return it.

    It acts as the journal's user. Raises `EnvironmentBrokenError` where its process ended before it began.
    """
    if origin.key and (before := _with_key(context, origin.key)) is not None:
        return before
    run = new_run_id()
    needed = needs(context, origin.nodes) if origin.pool else ()
    state_dir(context.site)
    context.journal.append([NewEvent(Stream.RUN, run, ordered(request, origin, needed))])
    if origin.pool:
        return runs.find(context, run)
    file = runs.log_path(context, run)
    program = (sys.executable, "-P", "-m", "clusterctl_cli.main", "runs", "execute", run)
    process = processes.start((*program, "--site", str(context.site.folder.resolve())), file, without=(VERBOSE,))
    return _begun(context, run, process, file)


def ordered(request: Any, origin: Origin, needed: tuple[str, ...], parent: str = "") -> RunOrdered:
    """Return the order of a run. `needed`: what a worker of its pool must reach."""
    return RunOrdered(
        operation=_operation_with(request),
        command=origin.command,
        request=to_data(request),
        by=this_process(),
        approved=origin.approved,
        earlier=origin.earlier,
        key=origin.key,
        pool=origin.pool,
        priority=origin.priority,
        needs=needed,
        parent=parent,
    )


def needs(context: SiteContext, nodes: Collection[str]) -> tuple[str, ...]:
    """Return what a worker must reach to act on these nodes, as few networks as hold no other address."""
    return collapsed(text for texts in addresses(context, nodes).values() for text in texts)


def addresses(context: SiteContext, nodes: Collection[str]) -> Mapping[str, tuple[str, ...]]:
    """Return each node's BMC, and its host by the addresses that it has or gets."""
    from clusterctl.edges.site.host_networks import host_networks

    planned = host_networks(context.site).address
    bmcs, chosen = {node.name: node.bmc for node in context.site.nodes}, frozenset(nodes)
    found = {
        one.name: (host_of(bmcs.get(one.name, one.bmc)), one.address, planned(one.name))
        for one in context.nodes()
        if one.name in chosen
    }
    return {name: tuple(dict.fromkeys(filter(None, texts))) for name, texts in found.items()}


def _with_key(context: SiteContext, key: str) -> RunRecord | None:
    """Return the run that was ordered with this key; None where there is none."""
    for event in context.journal.latest(Stream.RUN, Kind.RUN_ORDERED):
        if isinstance(event.payload, RunOrdered) and event.payload.key == key:
            return runs.find(context, event.subject)
    return None


def _operation_with(request: Any) -> str:
    for name, kind in REQUESTS.items():
        if type(request).__name__ == kind:
            return name
    raise UsageError("this operation has no detached run", where=type(request).__name__, remedy="leave out --detach")


def _begun(context: SiteContext, run: str, process: subprocess.Popen[bytes], file: Path) -> RunRecord:
    """Return the run once it has begun, or `BEGIN_S` have passed."""
    until = time.monotonic() + BEGIN_S
    while True:
        status = process.poll()
        record = runs.find(context, run)
        if record.state is not RunState.WAITING or time.monotonic() > until:
            return record
        if status is not None:
            runs.abandon(context, record, "its process ended before it began", EnvironmentBrokenError.exit_code)
            remedy = "read the log, correct what it reports, and repeat the command"
            raise EnvironmentBrokenError("the run's process ended before it began", where=str(file), remedy=remedy)
        time.sleep(POLL_S)


def again(context: SiteContext, name: str) -> tuple[RunRecord, Any]:
    """Return an earlier run and its request. Raises `UsageError` where it still runs; closes one that never began."""
    record = runs.find(context, name)
    if record.active:
        remedy = f"wait for its end, or clusterctl runs cancel {record.name}"
        raise UsageError(f"it is {record.state.value}", where=record.name, remedy=remedy)
    return record, request_of(record)


def close_lost(context: SiteContext, record: RunRecord) -> None:
    """Keep a lost run that never began from beginning late. Raises `ConflictError` where it has begun meanwhile."""
    if record.state is RunState.LOST and record.process is None:
        now = runs.abandon(context, record, "it was lost before it began", EnvironmentBrokenError.exit_code)
        if now.process is not None:
            raise ConflictError("it has begun meanwhile", where=record.name, remedy="clusterctl runs show prints it")


def request_of(record: RunRecord) -> Any:
    """Return the request of a run. Raises `UsageError` where this version does not know it."""
    return from_data(getattr(operation_of(record.operation), REQUESTS[record.operation]), record.request)


def execute(folder: Path, run: str, cancelled: threading.Event, on_event: Callable[[Any], None]) -> int:
    """Carry out an ordered run in this process; return its exit code, which the journal then holds.

    Raises `ConflictError` where it has begun already, or must not begin any more.
    """
    record = _ordered(folder, run)
    context = open_site(folder, Invocation(record.actor, record.command, run), thorough=False)
    try:
        _begin(context, run)
        with run_log(context):
            control = Control(record.approved or None, on_event, cancelled)
            try:
                code, text = carry_out(record, control, partial(open_site, folder, thorough=True))
            except JournalUnavailableError as error:
                code, text = error.exit_code, str(error)
            log.info("the run has ended with exit code %d%s", code, f": {text}" if text else "")
        context.journal.append([NewEvent(Stream.RUN, run, RunEnded(exit_code=code, text=text))])
        return code
    finally:
        context.journal.close()


def _ordered(folder: Path, run: str) -> RunRecord:
    context = open_site(folder)
    try:
        return runs.find(context, run)
    finally:
        context.journal.close()


def _begin(context: SiteContext, run: str) -> None:
    """Write that the run begins here; raise `ConflictError` where another process was first, or it was abandoned."""
    me = this_process()
    context.journal.append([NewEvent(Stream.RUN, run, RunBegun(process=me))])
    record = runs.find(context, run)
    if record.process != me or record.state is not RunState.RUNNING:
        remedy = f"clusterctl runs retry {run} orders it again"
        raise ConflictError("it has begun already, or was abandoned: nothing was done", where=run, remedy=remedy)


def carry_out(
    record: RunRecord, control: Control, opened: Callable[[Invocation], SiteContext], under: Claim | None = None
) -> tuple[int, str]:
    """Run the operation on a site that `opened` opens; return the exit code and, where there is one, the error as text.

    Raises `JournalUnavailableError`: the run has not ended then, it goes on once the journal takes its events.
    `under`: the claim on the run, without which the journal takes nothing of it.
    """
    try:
        context = opened(Invocation(record.actor, record.command, record.name, under))
        try:
            result = operation_of(record.operation).run(context, request_of(record), control)
        finally:
            context.journal.close()
    except Exception as error:  # noqa: BLE001 — whatever it is, the run ends with it
        return ending(error)
    return int(result.exit_code), str(getattr(result, "stopped", ""))


def ending(error: Exception) -> tuple[int, str]:
    """Return the exit code of a run that the error ends, and the error as text. Raises it where it ends no run: the
    journal takes no event.
    """
    if isinstance(error, JournalUnavailableError):
        raise error
    if isinstance(error, ClusterctlError):
        return error.exit_code, str(error)
    log.error("the run failed", exc_info=error)
    return 1, f"{type(error).__name__}: the log has it"
