"""Replacement of the OS of one node: proven to be the machine, written into the journal, then done as any install."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.reinstall import check_same, ordered, reinstallable
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations import bootstrap
from clusterctl.operations.bootstrap import RunRequest, RunResult
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.operation import Control, Effect, Preview
from clusterctl.operations.runner import claimed
from clusterctl.operations.selection import require_listed
from clusterctl.operations.site_facts import never_installed, other_drives
from clusterctl.ports import Deadline

BMC_S = 300.0
"""Seconds for a BMC to return its inventory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReinstallRequest:
    """`from_pool`: even where the node is gold."""

    node: str
    reason: str = ""
    from_pool: bool = False


def preview(context: SiteContext, request: ReinstallRequest) -> Preview:
    """Return what would be overwritten. Raises `UsageError` where that may not be."""
    return _preview(context, _listed(context, request), request)


def _listed(context: SiteContext, request: ReinstallRequest) -> NodeState:
    node = context.node(request.node)
    require_listed(context, [node.name])
    if never_installed(context.site, node):
        remedy = f"install it by hand, then clusterctl adopt {node.name} --new-host-key"
        raise UsageError("clusterctl did not install it, and never writes to its disks", where=node.name, remedy=remedy)
    return node


def _preview(context: SiteContext, node: NodeState, request: ReinstallRequest) -> Preview:
    text = _effect(node, request, other_drives(context.site, node.name))
    effects = (Effect(node=node.name, text=text),)
    return Preview(operation="reinstall", question="Go on?", effects=effects).of(request)


def run(context: SiteContext, request: ReinstallRequest, control: Control) -> RunResult:
    """Order the replacement and carry it out, once in a run; a node that is ordered already is carried on with."""
    node = _listed(context, request)
    if not context.ordered_here((node.id,), Kind.REINSTALL_ORDERED):
        control.require(_preview(context, node, request))
        if not node.reinstall:
            _order(context, node, request, control)
    steps = RunRequest(steps=(Step.INSTALL,), limit=(node.name,))
    return bootstrap.run(context, steps, Control(None, control.on_event, control.cancelled))


def _effect(node: NodeState, request: ReinstallRequest, others: str) -> str:
    """Return what is done to the node; `others`: what is done to its other drives."""
    if node.reinstall and node.stopped_at is not None:
        remedy = f"repair that, clusterctl release {node.name} --reason '…', then repeat this command"
        raise UsageError(f"its OS was to be replaced, and it was stopped: {node.cause}", where=node.name, remedy=remedy)
    if node.reinstall:
        return f"its OS is to be replaced already ({node.reinstall}); this goes on with it"
    reinstallable(node, CLOCK.now(), from_pool=request.from_pool)
    _reason(request)
    pool = "; it leaves the gold pool" if node.in_pool(CLOCK.now()) else ""
    return (
        f"{node.location}, serial {node.serial}, {node.stage.value}: the OS on its disk {node.root_disk} is "
        f"overwritten, {f'which {others}, ' if others else ''}and all steps from install on run again{pool}"
    )


def _reason(request: ReinstallRequest) -> str:
    return checked_reason(request.reason) if request.reason else "no reason was given"


def _order(context: SiteContext, node: NodeState, request: ReinstallRequest, control: Control) -> None:
    """Write the order once the BMC has proven the machine's serial; from then on every run goes on with it."""
    with closing(context.adapters()) as adapters, claimed(context, [node]) as claims:
        fresh = context.journal.state(node.id)
        reinstallable(fresh, CLOCK.now(), from_pool=request.from_pool)
        deadline = Deadline.after(BMC_S, control.cancelled)
        with adapters.bmcs.open(context.site.bmc_address(node.name), deadline) as bmc:
            seen = bmc.inventory(deadline)
        check_same(fresh, seen.value)
        context.journal.store(seen.evidence)
        event = ordered(fresh, _reason(request), tuple(item.digest for item in seen.evidence))
        context.journal.append([event], claim=claims[node.id])
        publish(context.journal, adapters.pool)
