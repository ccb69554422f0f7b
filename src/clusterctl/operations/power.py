"""Switching machines by a person's word: planned, asked, done under the nodes' claims, told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click

from clusterctl.edges.site import Site
from clusterctl.fleet.decisions.decision import said
from clusterctl.fleet.decisions.permissions import PowerOrder, power_permitted
from clusterctl.fleet.errors import CancelledError, UsageError
from clusterctl.fleet.stagger import interleaved
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Edges
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, chosen, claimed
from clusterctl.operations.stagger import group_of, stagger
from clusterctl.ports import Deadline
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.power import PowerResult, PowerSwitch
from clusterctl_cli import render
from clusterctl_cli.complaints import error_json
from clusterctl_cli.stopping import stoppable

STATUS_S = 120.0
SWITCH_S = 900.0
"""Seconds for one machine: a shutdown has its grace, and a BMC in POST refuses for minutes."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the person said. `at_most`: None where the site's budget holds."""

    order: PowerOrder
    patterns: Sequence[str]
    reason: str
    at_most: int | None


def switch(office: Office, wanted: Wanted, manner: Manner) -> int:
    """Plan, ask, switch, tell; the exit code."""
    reason = said(wanted.reason)
    names = chosen(office, wanted.patterns)
    nodes = office.named(names)
    _check(office, nodes, wanted)
    words = f"{wanted.order.value}: {', '.join(names)}"
    if manner.dry_run:
        _tell([], manner, words=f"{words}\n\nNothing was changed.")
        return 0
    if not manner.yes:
        click.confirm(f"{_PROMPT[wanted.order]} {len(names)} machines ({', '.join(names)})?", abort=True, err=True)
    cancelled = threading.Event()
    with closing(Edges(office.site)) as outside, claimed(office, nodes) as claims, stoppable(cancelled):
        fresh = [office.journal.state(node.id) for node in nodes]
        in_turns = interleaved(fresh, _group(office.site))
        permits = [(node, power_permitted(node, wanted.order, CLOCK.now())) for node in in_turns]
        deadline = _deadline(office, len(permits), cancelled)
        switcher, acts = _switcher(office, outside), IntentLog(office.journal, claims)
        done = _followed(switcher.switch(permits, wanted.order, reason, acts, deadline))
    _tell(done, manner)
    return _exit_code(done, cancelled)


def status(office: Office, patterns: Sequence[str], manner: Manner) -> int:
    """Ask each machine's BMC; the exit code."""
    names = chosen(office, patterns)
    cancelled = threading.Event()
    with closing(Edges(office.site, read_only=True)) as outside, stoppable(cancelled):
        done = list(_switcher(office, outside).status(names, Deadline.after(STATUS_S, cancelled)))
    _tell(done, manner)
    return _exit_code(done, cancelled)


def _switcher(office: Office, outside: Edges) -> PowerSwitch:
    return PowerSwitch(outside.bmcs, office.site.bmc_address, office.journal, office.site.settings.batch.discover)


def _exit_code(done: Sequence[PowerResult], cancelled: threading.Event) -> int:
    if cancelled.is_set():
        return CancelledError.exit_code
    return 1 if any(item.error for item in done) else 0


_PROMPT = {
    PowerOrder.ON: "Switch on",
    PowerOrder.OFF: "Switch off, by force where the OS does not shut down,",
    PowerOrder.CYCLE: "Switch off, by force where the OS does not shut down, and on again,",
    PowerOrder.AC_CYCLE: "Switch off, take all power from (their BMCs' too), and switch on again",
}


def _check(office: Office, nodes: Sequence[NodeState], wanted: Wanted) -> None:
    """Raises `UsageError` for the first node that it may not be done to, and for more nodes than the budget has."""
    listed = {node.name for node in office.site.nodes}
    for node in nodes:
        power_permitted(node, wanted.order, CLOCK.now())
        if node.name not in listed:
            remedy = "put it back into the sheet, so that its BMC can be asked"
            raise UsageError("the sheet no longer names it", where=node.name, remedy=remedy)
    most = office.site.settings.power.at_most if wanted.at_most is None else wanted.at_most
    if wanted.order is not PowerOrder.ON and len(nodes) > most:
        raise UsageError(
            f"{len(nodes)} machines would go off at once; the budget is {most}",
            where="--at-most",
            remedy=f"name fewer, or say --at-most {len(nodes)} if it is meant",
        )


def _deadline(office: Office, machines: int, cancelled: threading.Event) -> Deadline:
    """Enough for the last of them: each turn of a group may last as long as its slowest machine takes to come on."""
    said_ = stagger(office.site)
    turns = -(-machines // said_.at_once)
    return Deadline.after(SWITCH_S * turns + said_.shortest(machines), cancelled)


def _group(site: Site) -> Callable[[NodeState], str]:
    """By the machine that it is, those with which it takes turns."""
    of = group_of(site)
    return lambda node: of(node.bmc)


def _followed(outcomes: Iterable[PowerResult]) -> list[PowerResult]:
    """With a line on stderr for each, as it comes."""
    done = []
    for item in outcomes:
        click.echo(_line(item), err=True)
        done.append(item)
    return done


def _line(item: PowerResult) -> str:
    return f"{item.name}: {item.error or item.power.value}"


def _tell(done: Sequence[PowerResult], manner: Manner, words: str = "") -> None:
    """`{"dry_run":…, "power": [{"name":…, "power":…, "error": null | {…}}]}`, or a line a node."""
    ordered = sorted(done, key=lambda item: item.name)
    if manner.as_json:
        click.echo(json.dumps({"dry_run": manner.dry_run, "power": [_json(item) for item in ordered]}))
        return
    rows = [(item.name, item.power.value, item.error.message if item.error else "") for item in ordered]
    click.echo(words or render.columns(("NAME", "POWER", "TROUBLE"), rows))


def _json(item: PowerResult) -> dict[str, Any]:
    error = error_json(item.error) if item.error is not None else None
    return {"name": item.name, "power": item.power.value, "error": error}
