"""Which password each BMC takes, told to a person."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import closing
from datetime import datetime
from typing import Any

import click

from clusterctl.edges.site.logins import ROTATED
from clusterctl.fleet.errors import CancelledError
from clusterctl.fleet.event import Kind
from clusterctl.operations.adapters import Edges
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, chosen
from clusterctl.ports import Deadline
from clusterctl.site.bmc import RotationSettings
from clusterctl.steps.accounts.check import AccountCheck, AccountChecker, AccountQuery
from clusterctl_cli import render
from clusterctl_cli.complaints import error_json
from clusterctl_cli.stopping import stoppable

CHECK_S = 120.0


def check(office: Office, patterns: Sequence[str], manner: Manner) -> int:
    """Ask each machine's BMC, all of the site's where none is named; the exit code."""
    office.site.logins.check()
    listed = {node.name for node in office.site.nodes}
    known = {node.name: node.serial or node.expected_serial or "" for node in office.nodes()}
    names = [name for name in chosen(office, patterns or ("*",)) if name in listed]
    said = office.site.settings.bmc.rotation or RotationSettings()
    workers = office.site.settings.batch.discover
    cancelled = threading.Event()
    with closing(Edges(office.site, read_only=True)) as outside, stoppable(cancelled):
        checker = AccountChecker(
            outside.accounts, office.site.bmc_address, office.site.bmc_login, ROTATED, said.user, workers
        )
        deadline = Deadline.after(CHECK_S * -(-len(names) // workers), cancelled)
        done = list(checker.check([AccountQuery(name, known[name]) for name in names], deadline))
    _tell(sorted(done, key=lambda item: item.name), _since(office), manner)
    if cancelled.is_set():
        return CancelledError.exit_code
    return 1 if any(item.error for item in done) else 0


def _since(office: Office) -> dict[str, datetime]:
    """When the journal saw the password of each node changed last."""
    names = {str(node.id): node.name for node in office.journal.summaries()}
    events = office.journal.latest("node", Kind.BMC_PASSWORD_CHANGED)
    return {names[event.subject]: event.at for event in events if event.subject in names}


def _tell(done: Sequence[AccountCheck], since: dict[str, datetime], manner: Manner) -> None:
    """`{"accounts": [{"name":…, "takes":…, "login":…, "since":…, "min_length":…, "max_length":…, "error":…}]}`, or a
    line a node.
    """
    if manner.as_json:
        click.echo(json.dumps({"accounts": [_json(item, since.get(item.name)) for item in done]}))
        return
    now = CLOCK.now()
    rows = [_row(item, since.get(item.name), now) for item in done]
    click.echo(render.columns(("NAME", "TAKES", "LOGIN", "CHANGED", "LENGTH", "TROUBLE"), rows))


def _row(item: AccountCheck, since: datetime | None, now: datetime) -> tuple[str, ...]:
    account = item.sight.account if item.sight is not None else None
    limits = length_limits(account.shortest, account.longest) if account is not None else ""
    changed = render.ago(since, now) if since is not None else "never"
    error = item.error.message if item.error is not None else ""
    return item.name, item.takes.value, item.login, changed, limits, error


def length_limits(shortest: int | None, longest: int | None) -> str:
    """How long a password may be, in words; empty where the BMC tells no limit."""
    if shortest and longest:
        return f"{shortest} to {longest}"
    return f"at least {shortest}" if shortest else f"at most {longest}" if longest else ""


def _json(item: AccountCheck, since: datetime | None) -> dict[str, Any]:
    account = item.sight.account if item.sight is not None else None
    return {
        "name": item.name,
        "takes": item.takes.name.lower(),
        "login": item.login,
        "since": since.isoformat() if since is not None else None,
        "min_length": account.shortest if account is not None else None,
        "max_length": account.longest if account is not None else None,
        "error": error_json(item.error) if item.error is not None else None,
    }
