"""Retiring a machine with its drives erased: shown, typed by a person, proven, done."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import click

from clusterctl.fleet.decisions.decision import living, said
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Drive
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Edges
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, claimed
from clusterctl.operations.pool import gold_pool, publish
from clusterctl.ports import Deadline
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.retire import DriveWiper
from clusterctl_cli import render
from clusterctl_cli.stopping import stoppable

WIPE_S = 48 * 3600.0
"""Overwriting a drive of 30 TB takes a day and a half; whoever comes later goes on watching."""


@dataclass(frozen=True, slots=True)
class Farewell:
    """What the person said: why, and the serial where it was not to be asked for."""

    node: str
    reason: str
    serial: str = ""


def wipe_and_retire(office: Office, farewell: Farewell, manner: Manner) -> int:
    """Plan, ask, erase, retire; the exit code."""
    node = office.node(farewell.node)
    drives = _plannable(office, node, farewell)
    if manner.dry_run:
        click.echo(json.dumps(_plan_json(node, drives)) if manner.as_json else plan_text(node, drives))
        return 0
    click.echo(plan_text(node, drives), err=True)
    _sworn(node, farewell, manner)
    with closing(Edges(office.site)) as outside, claimed(office, [node]) as claims:
        cancelled = threading.Event()
        wiper = DriveWiper(
            outside.installer,
            outside.bmcs,
            office.site.bmc_address,
            office.journal,
            office.site.settings.timing.install_poll_s,
        )
        try:
            with stoppable(cancelled):
                fresh = office.journal.state(node.id)
                _plannable(office, fresh, farewell)
                acts = IntentLog(office.journal, claims)
                wiper.wipe(fresh, acts, said(farewell.reason), Deadline.after(WIPE_S, cancelled))
        finally:
            publish(office, gold_pool(office.site))
    _tell(office.journal.state(node.id), manner)
    return 0


def plan_text(node: NodeState, drives: Sequence[Drive]) -> str:
    """What would be lost, drive by drive."""
    rows = [(d.slot, d.serial or "unknown", d.model, f"{d.size_bytes / 1e9:.0f} GB") for d in drives]
    head = (
        f"{node.name} ({node.location}, serial {node.serial}) leaves for good. Erased beyond recovery are its drives:"
    )
    return f"{head}\n{render.columns(('SLOT', 'SERIAL', 'MODEL', 'SIZE'), rows)}\nThen it is switched off."


def _plannable(office: Office, node: NodeState, farewell: Farewell) -> Sequence[Drive]:
    """The drives that would be erased, or why that cannot be."""
    living(node)
    said(farewell.reason)
    if node.name not in {known.name for known in office.site.nodes}:
        remedy = "put it back into the sheet, so that its BMC can be asked; or retire it without --wipe"
        raise UsageError("the sheet no longer names it", where=node.name, remedy=remedy)
    drives = node.inventory.drives if node.inventory is not None else None
    if not (node.serial and drives):
        remedy = f"clusterctl discover --limit {node.name} first, or retire it without --wipe"
        raise UsageError("its serial or its drives are not known", where=node.name, remedy=remedy)
    return drives


def _sworn(node: NodeState, farewell: Farewell, manner: Manner) -> None:
    """The person names the machine by its serial: typed, or as --serial where nobody can be asked."""
    if manner.yes and not farewell.serial:
        remedy = "say --yes --serial SERIAL, as it stands on the machine"
        raise UsageError("erasing takes the machine's serial", where="--serial", remedy=remedy)
    typed = farewell.serial or click.prompt("Type the serial of the machine whose drives are erased", err=True)
    if str(typed).strip() != node.serial:
        remedy = "look at the machine's label; clusterctl node shows what its BMC says"
        raise UsageError(f"{typed} is not the serial of {node.name}: nothing was done", where="--serial", remedy=remedy)


def _plan_json(node: NodeState, drives: Sequence[Drive]) -> dict[str, Any]:
    """`{"decisions": [], "dry_run": true, "plan": {"name":…, "serial":…, "drives": […]}, "nodes": […]}`."""
    told = [{"slot": d.slot, "serial": d.serial, "model": d.model, "size_bytes": d.size_bytes} for d in drives]
    plan = {"name": node.name, "serial": node.serial, "drives": told}
    return {"decisions": [], "dry_run": True, "plan": plan, "nodes": [render.node_json(node, CLOCK.now())]}


def _tell(node: NodeState, manner: Manner) -> None:
    words = f"its drives are erased, it is off, and out of the site's life ({node.cause})"
    if manner.as_json:
        decisions = [{"name": node.name, "words": words}]
        nodes = [render.node_json(node, CLOCK.now())]
        click.echo(json.dumps({"decisions": decisions, "dry_run": False, "nodes": nodes}))
        return
    click.echo(f"{node.name}: {words}; take it out of the sheet")
