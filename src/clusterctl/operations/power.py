"""Power of machines: switch them on, off, or off and on; ask whether they are on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.decisions.decision import checked_reason
from clusterctl.fleet.decisions.permissions import PowerOrder, power_permitted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.stagger import interleaved
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.compose import reboot_cap
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Failure, Outcome, Result
from clusterctl.operations.runner import NodeOperation, Work, result
from clusterctl.operations.selection import selected
from clusterctl.operations.site_facts import stagger, stagger_group
from clusterctl.ports import Deadline
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.power import PowerResult, PowerSwitch

STATUS_S = 120.0
SWITCH_S = 900.0
"""Seconds for one machine: a shutdown has its grace time, and a BMC in POST refuses for minutes."""
BOOT_S = 600.0
"""Seconds for which a machine counts as rebooting, where more are ordered than may reboot at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PowerRequest:
    """`nodes`: names and patterns. `at_most`: how many may go off at once; None: the site's budget."""

    order: PowerOrder
    nodes: tuple[str, ...]
    reason: str
    at_most: int | None = None


_QUESTION = {
    PowerOrder.ON: "Switch on",
    PowerOrder.OFF: "Switch off, by force where the OS does not shut down,",
    PowerOrder.CYCLE: "Switch off, by force where the OS does not shut down, and on again,",
    PowerOrder.AC_CYCLE: "Switch off, cut all power (of the BMC, too), and switch on again",
}


def _question(request: PowerRequest, names: Sequence[str]) -> str:
    return f"{_QUESTION[request.order]} {len(names)} machines ({', '.join(names)})?"


def _check(context: SiteContext, request: PowerRequest, nodes: Sequence[NodeState]) -> None:
    """Raise `UsageError` for the first node that may not be switched, and for more nodes than the budget allows."""
    checked_reason(request.reason)
    for node in nodes:
        power_permitted(node, request.order, CLOCK.now())
    most = context.site.settings.power.at_most if request.at_most is None else request.at_most
    if request.order is not PowerOrder.ON and len(nodes) > most:
        raise UsageError(
            f"{len(nodes)} machines would go off at once; the budget is {most}",
            where="--at-most",
            remedy=f"name fewer nodes, or pass --at-most {len(nodes)}",
        )


def _act(work: Work[PowerRequest]) -> Iterator[Outcome]:
    context, request = work.context, work.request
    permits = [
        (node, power_permitted(node, request.order, CLOCK.now())) for node in interleaved(work.nodes, _group(context))
    ]
    spread = stagger(context.site)
    cap = context.site.settings.fabric.reboots
    turns = -(-len(permits) // min(spread.at_once, cap))  # each turn lasts as long as its slowest machine
    deadline = Deadline.after(SWITCH_S * turns + spread.shortest(len(permits)), work.cancelled)
    acts = IntentLog(context.journal, work.claims)
    pool = reboot_cap(context)
    crowded = len(permits) > cap and request.order is not PowerOrder.OFF
    boot_s = BOOT_S if crowded else 0.0
    switcher = replace(_switcher(context, work.adapters), permits=pool.taken, boot_s=boot_s)
    switched = switcher.switch(permits, request.order, checked_reason(request.reason), acts, deadline)
    return map(_outcome, switched)


def _group(context: SiteContext) -> Callable[[NodeState], str]:
    group = stagger_group(context.site)
    return lambda node: group(node.bmc)


def _outcome(item: PowerResult) -> Outcome:
    return Outcome(
        node=item.name,
        text=item.power.value,
        failure=Failure.of(item.error) if item.error else None,
        values={"power": item.power.value},
    )


def _switcher(context: SiteContext, adapters: Adapters) -> PowerSwitch:
    return PowerSwitch(adapters.bmcs, context.site.bmc_address, context.journal, context.site.settings.batch.discover)


OPERATION: NodeOperation[PowerRequest] = NodeOperation(
    name="power",
    question=_question,
    check=_check,
    effect=lambda request, _node: f"power {request.order.value}",
    act=_act,
)
preview, run = OPERATION.preview, OPERATION.run


def status(context: SiteContext, patterns: Sequence[str], control: Control) -> Result:
    """Ask each machine's BMC whether it is on."""
    names = selected(context, patterns)
    with closing(context.adapters(Access.READ)) as adapters:
        asked = _switcher(context, adapters).status(names, Deadline.after(STATUS_S, control.cancelled))
        return result("power status", map(_outcome, asked), control)
