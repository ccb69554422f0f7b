"""Clock, name servers and syslog target of BMCs against what the site wants: `bmc check`, `bmc apply`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from clusterctl.fleet.acts import Act
from clusterctl.fleet.bmc.services import ServiceState, WantedServices
from clusterctl.fleet.decisions.permissions import require_no_open_act, require_serial
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.node import Serial, Stage
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.bmc_certificates import seen_due
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Failure, Outcome, Result
from clusterctl.operations.runner import NodeOperation, Work, result
from clusterctl.operations.selection import selected
from clusterctl.operations.trust import notices
from clusterctl.ports import Deadline
from clusterctl.steps.bmc_services import BmcServiceSetter, ServicesResult, by_hand
from clusterctl.steps.executor.intent_log import IntentLog

BMC_S = 300.0
"""Seconds for one BMC."""
UNKNOWN_SERIAL = "its serial is not known: clusterctl discover --limit {name} first"


@dataclass(frozen=True, slots=True, kw_only=True)
class BmcServicesRequest:
    """`nodes`: names and patterns."""

    nodes: tuple[str, ...]


def wanted_services(context: SiteContext) -> WantedServices:
    """Return what the site wants. Raise `UsageError` where it names nothing."""
    services = context.site.settings.bmc.services
    if services is None:
        raise UsageError(
            "the site does not name what is set on its BMCs",
            where=context.site.where("bmc", "services"),
            remedy="write it below bmc, such as services: {ntp: [10.20.0.2]} (docs/how-to/bmc-services.md)",
        )
    return services.wanted


def _setter(context: SiteContext, adapters: Adapters) -> BmcServiceSetter:
    workers = context.site.settings.batch.discover
    wanted = wanted_services(context)
    return BmcServiceSetter(adapters.services, context.site.bmc_address, context.journal, wanted, workers)


def _deadline(context: SiteContext, nodes: int, control: Control) -> Deadline:
    return Deadline.after(BMC_S * -(-max(nodes, 1) // context.site.settings.batch.discover), control.cancelled)


def check(context: SiteContext, patterns: Sequence[str], control: Control) -> Result:
    """Return how each BMC stands; all nodes without patterns. Nothing is changed.

    Nodes whose serial is unknown are skipped: nothing would show that it is the right machine.
    """
    wanted_services(context)
    machines: list[tuple[str, Serial]] = []
    skipped: dict[str, str] = {}
    names = set(selected(context, patterns or ("*",)))
    listed = {node.name for node in context.site.with_bmc}
    for node in context.nodes():
        if node.name in names & listed and node.stage is not Stage.RETIRED:
            if node.serial is None:
                skipped[node.name] = UNKNOWN_SERIAL.format(name=node.name)
            else:
                machines.append((node.name, node.serial))
    with closing(context.adapters(Access.READ)) as adapters:
        deadline = _deadline(context, len(machines), control)
        looked = [_outcome(item) for item in _setter(context, adapters).look(machines, deadline)]
        certificates = seen_due(context, adapters, machines, deadline)
        done = result("bmc check", [_with_certificate(one, certificates) for one in looked], control)
    return Result(operation=done.operation, outcomes=done.outcomes, skipped=skipped, cancelled=done.cancelled)


def _with_certificate(outcome: Outcome, due: Mapping[str, str]) -> Outcome:
    """Return the outcome, and a failure where its services are right and its certificate is due."""
    why = due.get(outcome.node)
    if why is None:
        return outcome
    values = {**outcome.values, "certificate_due": why}
    if outcome.failure is not None or not why:
        return replace(outcome, values=values)
    error = EdgeError(f"certificate: {why}", remedy=f"clusterctl bmc certificates renew {outcome.node}")
    return replace(outcome, text="", failure=Failure.of(error), values=values)


def _check(context: SiteContext, _request: BmcServicesRequest, nodes: Sequence[NodeState]) -> None:
    wanted_services(context)
    for node in nodes:
        require_serial(node)
        require_no_open_act(node, (Act.BMC_SERVICES,))


def _act(work: Work[BmcServicesRequest]) -> Iterator[Outcome]:
    control = Control(cancelled=work.cancelled)
    setter = _setter(work.context, work.adapters)
    nodes = [(node, require_serial(node)) for node in work.nodes]
    intents = IntentLog(work.context.journal, work.claims)
    return map(_outcome, setter.set(nodes, intents, _deadline(work.context, len(nodes), control)))


def _outcome(item: ServicesResult) -> Outcome:
    error = item.error or (by_hand(item.wrong) if item.wrong else None)
    text = "set, and read back" if item.changed else "as the site wants it"
    return Outcome(
        node=item.name,
        text="" if error else text,
        failure=Failure.of(error) if error else None,
        values={"services": {one.service.value: _state(one) for one in item.states}, "changed": item.changed},
    )


def _state(one: ServiceState) -> dict[str, object]:
    return {"right": one.right, "found": one.found, "wanted": one.wanted}


OPERATION: NodeOperation[BmcServicesRequest] = NodeOperation(
    name="bmc apply",
    question=lambda _request, names: f"Set clock, name servers and syslog of {len(names)} BMCs ({', '.join(names)})?",
    check=_check,
    effect=lambda _request, _node: "set what differs on its BMC; the machine itself is not touched",
    act=_act,
    warnings=lambda context: notices(context.site),
)
preview, run = OPERATION.preview, OPERATION.run
