"""Changing BMCs' passwords by a person's word: planned, asked, done under the nodes' claims, told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Sequence
from contextlib import closing
from typing import Any

import click

from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.node import Stage
from clusterctl.operations.account_rotator import rotator
from clusterctl.operations.adapters import AccountsOutside, Edges
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, chosen, claimed
from clusterctl.operations.trust import notices
from clusterctl.ports import Deadline
from clusterctl.ports.journal import Claim
from clusterctl.steps.accounts.rotation import RotationResult
from clusterctl.steps.executor.step import IntentLog
from clusterctl_cli import render
from clusterctl_cli.complaints import error_json
from clusterctl_cli.options import say_notices
from clusterctl_cli.stopping import stoppable

ROTATE_S = 300.0
"""Seconds for one machine: BMCs that are busy are waited for."""


def rotate(office: Office, patterns: Sequence[str], manner: Manner) -> int:
    """Plan, ask, change, tell; the exit code."""
    if office.site.settings.bmc.rotation is None:
        raise UsageError(
            "the site has no rule for the passwords of its BMCs",
            where=office.site.where("bmc", "rotation"),
            remedy="write one below bmc, such as rotation: {length: 16} (docs/accounts.md)",
        )
    office.site.check_secrets()
    names = _living(office, chosen(office, patterns))
    say_notices(notices(office.site))
    words = f"the BMC's password of {', '.join(names)}"
    if manner.dry_run:
        _tell([], manner, words=f"would change {words}\n\nNothing was changed.")
        return 0
    if not manner.yes:
        click.confirm(f"Change {words} ({len(names)} machines)?", abort=True, err=True)
    office.describe()
    nodes = office.named(names)
    cancelled = threading.Event()
    with closing(Edges(office.site)) as outside, claimed(office, nodes) as claims, stoppable(cancelled):
        fresh = [office.journal.state(node.id) for node in nodes]
        changer = rotator(office, outside)
        turns = -(-len(fresh) // changer.workers)
        deadline = Deadline.after(ROTATE_S * turns, cancelled)
        done = _followed(changer.rotate(fresh, IntentLog(office.journal, claims), deadline))
    _tell(done, manner)
    if cancelled.is_set():
        return CancelledError.exit_code
    return 1 if any(item.error for item in done) else 0


def finish(office: Office, outside: AccountsOutside, claims: Iterable[Claim], cancelled: threading.Event) -> None:
    """What earlier runs began and did not end, of the nodes that are this run's and that no person holds; a line on
    stderr for each.

    A bootstrap begins with it: passwords that are in doubt, and those that the installer does not have yet.
    """
    if office.site.logins.kept.empty:
        return
    held = {claim.node: claim for claim in claims}
    changer = rotator(office, outside)
    states = [office.journal.state(node) for node in held]
    nodes = [node for node in states if not node.held(CLOCK.now()) and changer.unfinished(node)]
    if nodes:
        deadline = Deadline.after(ROTATE_S * -(-len(nodes) // changer.workers), cancelled)
        _followed(changer.rotate(nodes, IntentLog(office.journal, held), deadline))


def _living(office: Office, names: Sequence[str]) -> list[str]:
    """Raises `UsageError` for the first that has left, or that the sheet no longer names."""
    stages = {node.name: node.stage for node in office.nodes()}
    listed = {node.name for node in office.site.nodes}
    for name in names:
        if stages[name] is Stage.RETIRED:
            raise UsageError(f"{name} is out of the site's life", where=name, remedy="leave it out")
        if name not in listed:
            remedy = "put it back into the sheet, so that its BMC can be asked"
            raise UsageError("the sheet no longer names it", where=name, remedy=remedy)
    return list(names)


def _followed(outcomes: Iterable[RotationResult]) -> list[RotationResult]:
    """With a line on stderr for each, as it comes."""
    done = []
    for item in outcomes:
        click.echo(f"{item.name}: {_outcome(item)}{f': {item.error}' if item.error else ''}", err=True)
        done.append(item)
    return done


def _outcome(item: RotationResult) -> str:
    if not item.number:
        return "not changed"
    return f"{'finished' if item.finished else 'changed'} (password {item.number})"


def _tell(done: Sequence[RotationResult], manner: Manner, words: str = "") -> None:
    """`{"dry_run":…, "accounts": [{"name":…, "number":…, "finished":…, "installer":…, "error": null | {…}}]}`, or a
    line a node.
    """
    ordered = sorted(done, key=lambda item: item.name)
    if manner.as_json:
        click.echo(json.dumps({"dry_run": manner.dry_run, "accounts": [_json(item) for item in ordered]}))
        return
    rows = [(item.name, _outcome(item), item.installer, item.error.message if item.error else "") for item in ordered]
    click.echo(words or render.columns(("NAME", "PASSWORD", "INSTALLER", "TROUBLE"), rows))


def _json(item: RotationResult) -> dict[str, Any]:
    return {
        "name": item.name,
        "number": item.number,
        "finished": item.finished,
        "installer": item.installer,
        "error": error_json(item.error) if item.error is not None else None,
    }
