"""Event logs of BMCs: keep all their entries in the journal, then clear them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.permissions import require_serial
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Failure, Outcome
from clusterctl.operations.runner import NodeOperation, Work
from clusterctl.ports import Deadline
from clusterctl.steps.event_log import ClearResult, EventLogClearer
from clusterctl.steps.executor.intent_log import IntentLog

CLEAR_S = 600.0
"""Seconds for one machine: a full log of a slow BMC has hundreds of entries, each read by itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearLogRequest:
    """`nodes`: names and patterns."""

    nodes: tuple[str, ...]
    reason: str


def _question(_request: ClearLogRequest, names: Sequence[str]) -> str:
    return f"Keep the event logs of {len(names)} machines ({', '.join(names)}) in the journal and clear them?"


def _check(_context: SiteContext, request: ClearLogRequest, nodes: Sequence[NodeState]) -> None:
    checked_reason(request.reason)
    for node in nodes:
        require_serial(node)


def _act(work: Work[ClearLogRequest]) -> Iterator[Outcome]:
    context = work.context
    batch = context.site.settings.batch.discover
    deadline = Deadline.after(CLEAR_S * -(-len(work.nodes) // batch), work.cancelled)
    clearing = EventLogClearer(work.adapters.bmcs, context.site.bmc_address, context.journal, batch)
    permits = [(node, require_serial(node)) for node in work.nodes]
    acts = IntentLog(context.journal, work.claims)
    return map(_outcome, clearing.clear(permits, checked_reason(work.request.reason), acts, deadline))


def _outcome(item: ClearResult) -> Outcome:
    text = f"{item.entries} entries kept and cleared" if item.entries else "the log is empty"
    return Outcome(
        node=item.name,
        text="" if item.error else text,
        failure=Failure.of(item.error) if item.error else None,
        values={"entries": item.entries, "evidence": list(item.kept)},
    )


OPERATION: NodeOperation[ClearLogRequest] = NodeOperation(
    name="clear-log",
    question=_question,
    check=_check,
    effect=lambda _request, _node: "keep the event log in the journal, then clear it",
    act=_act,
)
preview, run = OPERATION.preview, OPERATION.run
