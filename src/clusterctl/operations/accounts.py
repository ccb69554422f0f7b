"""Passwords of BMC accounts: give each BMC a new one by the site's rule; ask which one each BMC accepts."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site.kept_passwords import PasswordVault
from clusterctl.edges.site.logins import ROTATED
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import NodeId, Stage
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Access, AccountAdapters
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Event, Failure, Outcome, Result
from clusterctl.operations.runner import NodeOperation, Work, result
from clusterctl.operations.selection import selected
from clusterctl.operations.trust import notices
from clusterctl.ports import Claim, Deadline
from clusterctl.site.bmc import RotationSettings
from clusterctl.steps.accounts.check import AccountCheck, AccountChecker, AccountQuery
from clusterctl.steps.accounts.rotation import PasswordRotation, RotationPolicy, RotationResult
from clusterctl.steps.executor.intent_log import IntentLog

ROTATE_S = 300.0
"""Seconds for one machine; the wait for a busy BMC is part of it."""
CHECK_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RotateRequest:
    """`nodes`: names and patterns."""

    nodes: tuple[str, ...]


def rotator(context: SiteContext, adapters: AccountAdapters) -> PasswordRotation:
    """Return the rotator by the site's rule; without one, by the shipped rule, to finish what was begun under one."""
    site = context.site
    rotation = site.settings.bmc.rotation or RotationSettings()
    return PasswordRotation(
        adapters.accounts,
        site.bmc_address,
        PasswordVault(site.logins.kept, rotation.rule),
        lambda: adapters.power_logins,
        context.journal,
        RotationPolicy(rotation.user, rotation.rule, site.own_logins()),
        site.settings.batch.discover,
    )


def _check(context: SiteContext, _request: RotateRequest, nodes: Sequence[NodeState]) -> None:
    for node in nodes:
        if node.stage is Stage.RETIRED:
            raise UsageError(f"{node.name} is retired", where=node.name, remedy="leave it out")
    if context.site.settings.bmc.rotation is None:
        raise UsageError(
            "the site has no rule for the passwords of its BMCs",
            where=context.site.where("bmc", "rotation"),
            remedy="write one below bmc, such as rotation: {length: 16} (docs/how-to/accounts.md)",
        )
    context.site.check_secrets()


def _act(work: Work[RotateRequest]) -> Iterator[Outcome]:
    changer = rotator(work.context, work.adapters)
    deadline = _deadline(changer, len(work.nodes), work.cancelled)
    return map(_outcome, changer.rotate(work.nodes, IntentLog(work.context.journal, work.claims), deadline))


def _deadline(changer: PasswordRotation, nodes: int, cancelled: threading.Event) -> Deadline:
    return Deadline.after(ROTATE_S * -(-nodes // changer.workers), cancelled)


def _outcome(item: RotationResult) -> Outcome:
    text = f"{'finished' if item.finished else 'changed'} (password {item.number})" if item.number else "not changed"
    return Outcome(
        node=item.name,
        text=text,
        failure=Failure.of(item.error) if item.error else None,
        values={"number": item.number, "finished": item.finished, "installer": item.installer},
    )


OPERATION: NodeOperation[RotateRequest] = NodeOperation(
    name="accounts rotate",
    question=lambda _request, names: f"Change the BMC's password of {len(names)} machines ({', '.join(names)})?",
    check=_check,
    effect=lambda _request, _node: "change the password of its BMC",
    act=_act,
    warnings=lambda context: notices(context.site),
)
preview, run = OPERATION.preview, OPERATION.run


def finish(context: SiteContext, adapters: AccountAdapters, claims: Iterable[Claim], control: Control) -> None:
    """Finish rotations that earlier runs began on nodes that this run has claimed and no operator holds.

    A bootstrap begins with it: passwords that are in doubt, and those that the installer does not have yet.
    """
    if context.site.logins.kept.empty:
        return
    owned: Mapping[NodeId, Claim] = {claim.node: claim for claim in claims}
    changer = rotator(context, adapters)
    states = [context.journal.state(node) for node in owned]
    nodes = [node for node in states if not node.held(CLOCK.now()) and changer.unfinished(node)]
    if nodes:
        deadline = _deadline(changer, len(nodes), control.cancelled)
        for outcome in map(_outcome, changer.rotate(nodes, IntentLog(context.journal, owned), deadline)):
            control.on_event(Event(node=outcome.node, text=outcome.text, failure=outcome.failure))


def check(context: SiteContext, patterns: Sequence[str], control: Control) -> Result:
    """Ask each BMC which password it accepts: the rule's, the site's or neither; all nodes without patterns."""
    context.site.logins.check()
    queries = _queries(context, patterns)
    rotation = context.site.settings.bmc.rotation or RotationSettings()
    workers = context.site.settings.batch.discover
    with closing(context.adapters(Access.READ)) as adapters:
        checker = AccountChecker(
            adapters.accounts, context.site.bmc_address, context.site.bmc_login, ROTATED, rotation.user, workers
        )
        deadline = Deadline.after(CHECK_S * -(-len(queries) // workers), control.cancelled)
        done = list(checker.check(queries, deadline))
    changed = _changed(context)
    return result("accounts check", [_checked(item, changed.get(item.name)) for item in done], control)


def _queries(context: SiteContext, patterns: Sequence[str]) -> list[AccountQuery]:
    """Return the selected nodes of the site; all of them without patterns."""
    listed = {node.name for node in context.site.with_bmc}
    known = {node.name: node.serial or node.expected_serial or "" for node in context.nodes()}
    return [AccountQuery(name, known[name]) for name in selected(context, patterns or ("*",)) if name in listed]


def _changed(context: SiteContext) -> dict[str, datetime]:
    """Return when the journal last saw the password of each node changed."""
    names = {str(node.id): node.name for node in context.journal.summaries()}
    events = context.journal.latest(Stream.NODE, Kind.BMC_PASSWORD_CHANGED)
    return {names[event.subject]: event.at for event in events if event.subject in names}


def _checked(item: AccountCheck, changed: datetime | None) -> Outcome:
    account = item.sight.account if item.sight is not None else None
    return Outcome(
        node=item.name,
        text=item.takes.value,
        failure=Failure.of(item.error) if item.error else None,
        values={
            "takes": item.takes.name.lower(),
            "login": item.login,
            "since": changed.isoformat() if changed is not None else None,
            "min_length": account.shortest if account is not None else None,
            "max_length": account.longest if account is not None else None,
        },
    )
