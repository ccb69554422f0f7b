"""Certificates of BMCs against the site's rule: `bmc certificates check`, `bmc certificates renew`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.certificate_record import write_certificates
from clusterctl.fleet.acts import Act
from clusterctl.fleet.bmc.certificates import SeenCertificate
from clusterctl.fleet.decisions.permissions import require_no_open_act, require_serial
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.node import Serial, Stage
from clusterctl.fleet.state import NodeState
from clusterctl.fleet.waves import Ending, Machine, WavePolicy
from clusterctl.formats.certificate_pin import with_colons
from clusterctl.operations.adapters import Access, Adapters
from clusterctl.operations.bmc_authority import (
    authority,
    certificate_settings,
    reading_authority,
    require_movable,
    wish_of,
)
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Failure, Outcome, Result
from clusterctl.operations.runner import NodeOperation, Work, result
from clusterctl.operations.selection import selected
from clusterctl.operations.site_facts import state_dir
from clusterctl.operations.trust import notices
from clusterctl.ports import Deadline
from clusterctl.ports.certificates import CertificateAuthority
from clusterctl.steps.bmc_certificates import CertificateRenewer, CertificateResult
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.waves import Waves

LOOK_S, RENEW_S = 120.0, 1500.0
"""Seconds for one BMC. A new key may take ten minutes, a restart of the BMC five."""
UNKNOWN_SERIAL = "its serial is not known: clusterctl discover --limit {name} first"


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificatesRequest:
    """Which BMCs, and how many at a time.

    nodes         names and patterns
    force         renew also what is not due
    wave          BMCs at a time, after one alone
    max_failures  the next wave begins with at most so many failed BMCs
    """

    nodes: tuple[str, ...]
    force: bool = False
    wave: int = 16
    max_failures: int = 0


def _renewer(
    context: SiteContext, adapters: Adapters, signed: CertificateAuthority, workers: int
) -> CertificateRenewer:
    return CertificateRenewer(
        adapters.certificates,
        signed,
        context.site.bmc_address,
        partial(wish_of, context.site),
        context.journal,
        CLOCK,
        certificate_settings(context.site).renew_days,
        workers,
    )


def _deadline(seconds: float, nodes: int, workers: int, control: Control) -> Deadline:
    return Deadline.after(seconds * -(-max(nodes, 1) // workers), control.cancelled)


def check(context: SiteContext, patterns: Sequence[str], control: Control) -> Result:
    """Return what each BMC presents, why it is due, and whether it could be renewed; all nodes without patterns.

    Nodes whose serial is unknown are skipped. Changes nothing but the record that the metrics read.
    """
    certificate_settings(context.site)
    names = set(selected(context, patterns or ("*",))) & {node.name for node in context.site.with_bmc}
    chosen = [node for node in context.nodes() if node.name in names and node.stage is not Stage.RETIRED]
    machines: list[tuple[str, Serial]] = [(node.name, node.serial) for node in chosen if node.serial is not None]
    skipped = {node.name: UNKNOWN_SERIAL.format(name=node.name) for node in chosen if node.serial is None}
    workers = context.site.settings.batch.discover
    with closing(context.adapters(Access.READ)) as adapters:
        renewer = _renewer(context, adapters, reading_authority(context.site), workers)
        found = list(renewer.look(machines, _deadline(LOOK_S, len(machines), workers, control)))
    _keep(context, found)
    done = result("bmc certificates check", [_checked(item) for item in found], control)
    return Result(operation=done.operation, outcomes=done.outcomes, skipped=skipped, cancelled=done.cancelled)


def seen_due(
    context: SiteContext, adapters: Adapters, machines: Sequence[tuple[str, Serial]], deadline: Deadline
) -> Mapping[str, str]:
    """Return why the certificates of BMCs are due, by node; empty texts where they are not, nothing where unknown.

    One handshake each, and no login. Nothing at all for a site without `bmc.certificates`.
    """
    if context.site.settings.bmc.certificates is None:
        return {}
    renewer = _renewer(context, adapters, reading_authority(context.site), context.site.settings.batch.discover)
    found = list(renewer.glance([name for name, _ in machines], deadline))
    _keep(context, found)
    return {item.name: item.due for item in found if item.shown is not None}


def _keep(context: SiteContext, found: Iterable[CertificateResult]) -> None:
    now = CLOCK.now()
    seen = {
        item.name: SeenCertificate(not_after=item.shown.not_after, seen=now, due=bool(item.due))
        for item in found
        if item.shown is not None
    }
    retired = {node.name for node in context.journal.summaries() if node.stage is Stage.RETIRED}
    listed = frozenset(node.name for node in context.site.with_bmc) - retired
    write_certificates(state_dir(context.site), seen, listed)


def _checked(item: CertificateResult) -> Outcome:
    error = item.error
    if error is None and item.due:
        error = EdgeError(item.due, remedy=f"clusterctl bmc certificates renew {item.name}")
    elif error is not None and item.due:
        error = EdgeError(f"{item.due}; it cannot be renewed: {error.message}", where=error.where, remedy=error.remedy)
    return _outcome(item, error, "as the site wants it")


def _outcome(item: CertificateResult, error: ClusterctlError | None, text: str) -> Outcome:
    shown = item.shown
    until = f", valid until {shown.not_after:%Y-%m-%d}" if shown is not None else ""
    values: dict[str, object] = {"changed": item.changed, "due": item.due}
    if shown is not None:
        values["certificate"] = {
            "fingerprint": with_colons(shown.fingerprint),
            "issuer": shown.issuer,
            "not_after": shown.not_after.isoformat(),
            "names": list(shown.names),
        }
    failure = Failure.of(error) if error is not None else None
    return Outcome(node=item.name, text="" if error else f"{text}{until}", failure=failure, values=values)


def _check(context: SiteContext, _request: CertificatesRequest, nodes: Sequence[NodeState]) -> None:
    authority(context.site)
    for node in nodes:
        require_serial(node)
        require_no_open_act(node, (Act.BMC_CERTIFICATE,))
        require_movable(context.site, context.site.bmc_address(node.name), node.name)


def _act(work: Work[CertificatesRequest]) -> Iterator[Outcome]:
    """Renew one BMC alone, then waves; stop where too many fail. What was not touched has an outcome, too."""
    request, control = work.request, Control(cancelled=work.cancelled)
    renewer = _renewer(work.context, work.adapters, authority(work.context.site), request.wave)
    intents = IntentLog(work.context.journal, work.claims)
    waiting = {node.id: node for node in work.nodes}
    waves = Waves(WavePolicy.counted(request.wave, request.max_failures), len(waiting))
    while (chosen := waves.next(Machine(one) for one in waiting)) and not work.cancelled.is_set():
        wave = [(node, require_serial(node)) for node in (waiting.pop(one) for one in chosen)]
        deadline = _deadline(RENEW_S, len(wave), request.wave, control)
        found = []
        for item in renewer.renew(wave, intents, deadline, force=request.force):
            found.append(item)
            yield _outcome(item, item.error, "renewed" if item.changed else "not due")
        _keep(work.context, found)
        failed = {item.name for item in found if item.error is not None}
        for node, _ in wave:
            waves.end(Machine(node.id), Ending.FAILED if node.name in failed else Ending.GOOD)
    for node in waiting.values():
        reason = waves.stopped or "the run was interrupted"
        error = EdgeError(f"not touched: {reason}", where=node.name, remedy="repair that, then run the command again")
        yield Outcome(node=node.name, failure=Failure.of(error))


OPERATION: NodeOperation[CertificatesRequest] = NodeOperation(
    name="bmc certificates renew",
    question=lambda _request, names: f"Renew the certificates of {len(names)} BMCs ({', '.join(names)})?",
    check=_check,
    effect=lambda request, _node: (
        "a new key and certificate for its BMC, "
        + ("in any case" if request.force else "where due")
        + "; its web service restarts, the machine itself is not touched"
    ),
    act=_act,
    warnings=lambda context: notices(context.site),
)
preview, run = OPERATION.preview, OPERATION.run
