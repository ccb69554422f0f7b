"""Reboots of gold nodes through Slurm, for repairs that a reboot makes: pending row remaps, GPUs that want a reset."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import Site
from clusterctl.fleet.acts import Act
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.permissions import require_no_hold, require_no_open_act, require_serial
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.state import NodeState
from clusterctl.operations.check import CheckedNode, CheckRequest
from clusterctl.operations.check import run as check_nodes
from clusterctl.operations.compose import reboot_cap
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Failure, Outcome
from clusterctl.operations.runner import NodeOperation, Work
from clusterctl.ports import Deadline
from clusterctl.site.scheduling import SlurmSettings
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NodePermits
from clusterctl.steps.scheduler_reboot import BOOT_S, RebootedNode, RebootServices, SchedulerReboots

NAME = "power reboot"
DRAIN_MINUTES = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class RebootRequest:
    """`nodes`: names and patterns. `drain_minutes`: how long their jobs may still run."""

    nodes: tuple[str, ...]
    reason: str
    drain_minutes: int = DRAIN_MINUTES


def _question(_request: RebootRequest, names: Sequence[str]) -> str:
    return f"Reboot {len(names)} nodes ({', '.join(names)}), each once its jobs have ended?"


def _check(context: SiteContext, request: RebootRequest, nodes: Sequence[NodeState]) -> None:
    """Raise `UsageError` where the site has no Slurm, and for the first node that may not serve afterwards."""
    checked_reason(request.reason)
    _require_slurm(context)
    now = CLOCK.now()
    for node in nodes:
        require_serial(node)
        require_no_open_act(node, (Act.SCHEDULER_REBOOT,))
        require_no_hold(node, now)
        if not node.in_pool(now):
            remedy = "clusterctl power cycle reboots it through its BMC; clusterctl revalidate proves it again"
            raise UsageError(f"it is {node.stage.value}: Slurm must not give it work", where=node.name, remedy=remedy)


def _require_slurm(context: SiteContext) -> None:
    if not isinstance(context.site.settings.scheduler, SlurmSettings):
        raise _no_slurm(context.site)


def _no_slurm(site: Site) -> UsageError:
    remedy = "clusterctl hold, then clusterctl power cycle; or add scheduler: {kind: slurm}"
    return UsageError("the site's scheduler is not Slurm", where=site.where("scheduler"), remedy=remedy)


def _act(work: Work[RebootRequest]) -> Iterator[Outcome]:
    context, request = work.context, work.request
    scheduler, reboots = work.adapters.scheduler, work.adapters.reboots
    if scheduler is None or reboots is None:
        raise _no_slurm(context.site)
    pool = reboot_cap(context)
    services = RebootServices(
        scheduler=scheduler,
        reboots=reboots,
        permits=NodePermits(pool),
        checks=partial(_troubles, context, work.cancelled),
        drain_s=request.drain_minutes * 60.0,
    )
    turns = -(-len(work.nodes) // pool.at_most)
    deadline = Deadline.after(services.drain_s + BOOT_S * (turns + 1), work.cancelled)
    acts = IntentLog(context.journal, work.claims)
    rebooting = SchedulerReboots(services, acts, checked_reason(request.reason), context.run)
    return map(_outcome, rebooting.reboot([(node, require_serial(node)) for node in work.nodes], deadline))


def _troubles(context: SiteContext, cancelled: threading.Event, names: Sequence[str]) -> Mapping[str, str]:
    """Return for each node what its checks found; empty where it passed all that could be asked of an idle node."""
    result = check_nodes(context, CheckRequest(nodes=tuple(names), idle=True), Control(cancelled=cancelled))
    found = {node.node: _trouble(node) for node in result.nodes}
    return {name: found.get(name, "it was not checked") for name in names}


def _trouble(node: CheckedNode) -> str:
    if node.verdict not in (Verdict.FAIL, Verdict.INCONCLUSIVE):
        return ""
    worst = next(one for one in node.findings if one.verdict is node.verdict)
    return f"{worst.check} is {worst.verdict.value}: {worst.cause}"


def _outcome(item: RebootedNode) -> Outcome:
    return Outcome(node=item.name, text=item.text, failure=Failure.of(item.error) if item.error else None)


OPERATION: NodeOperation[RebootRequest] = NodeOperation(
    name=NAME,
    question=_question,
    check=_check,
    effect=lambda _request, _node: "drain, reboot through Slurm, check, return to work",
    act=_act,
    needs_bmc=False,
)
preview, run = OPERATION.preview, OPERATION.run
