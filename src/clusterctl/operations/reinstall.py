"""Installing one node anew: shown, asked, proven to be the machine, written down, then done as any install."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from dataclasses import dataclass

import click

from clusterctl.fleet.decisions.decision import said
from clusterctl.fleet.decisions.reinstall import check_same, ordered, reinstallable
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Edges
from clusterctl.operations.bootstrap import Order, conduct
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.decisions import Manner, claimed
from clusterctl.operations.pool import gold_pool, publish
from clusterctl.ports import Deadline
from clusterctl_cli import render
from clusterctl_cli.stopping import stoppable

BMC_S = 300.0
"""Seconds for a BMC to tell its inventory."""


@dataclass(frozen=True, slots=True)
class Anew:
    """What the person said."""

    node: str
    reason: str
    from_pool: bool


def reinstall_node(office: Office, anew: Anew, manner: Manner) -> int:
    """Order it where that may be, and carry it out; the exit code. One that is ordered already is carried out."""
    node = office.node(anew.node)
    if node.name not in {known.name for known in office.site.nodes}:
        remedy = "put it back into the sheet, so that its BMC can be asked"
        raise UsageError("the sheet no longer names it", where=node.name, remedy=remedy)
    words = _words(node, anew)
    if manner.dry_run:
        _tell(node, words, manner)
        return 0
    if not manner.yes:
        click.confirm(f"{words}\nGo on?", abort=True, err=True)
    if not node.reinstall:
        _order(office, node, anew)
    order = Order(("install",), (node.name,), yes=True, as_json=manner.as_json)
    return conduct(office, Edges(office.site), order)


def _words(node: NodeState, anew: Anew) -> str:
    """What would be done, or `UsageError` why that may not be."""
    if node.reinstall and node.stopped_at is not None:
        remedy = f"mend that, then clusterctl release {node.name} --reason '…' and say the same again"
        raise UsageError(f"its OS was to be replaced, and it was stopped: {node.cause}", where=node.name, remedy=remedy)
    if node.reinstall:
        return f"{node.name}: its OS is to be replaced already ({node.reinstall}); this goes on with it"
    reinstallable(node, CLOCK.now(), from_pool=anew.from_pool)
    _reason(anew)
    pool = "; it leaves the gold pool" if node.in_pool(CLOCK.now()) else ""
    return (
        f"{node.name} ({node.location}, serial {node.serial}) is {node.stage.value}: the OS on its disk "
        f"{node.root_disk} is overwritten, and it goes the whole way again from install on{pool}"
    )


def _reason(anew: Anew) -> str:
    return said(anew.reason) if anew.reason else "no reason was given"


def _order(office: Office, node: NodeState, anew: Anew) -> None:
    """Written down only once the machine is proven to be the node; from then on every run goes on with it."""
    cancelled = threading.Event()
    with closing(Edges(office.site)) as outside, claimed(office, [node]) as claims, stoppable(cancelled):
        fresh = office.journal.state(node.id)
        reinstallable(fresh, CLOCK.now(), from_pool=anew.from_pool)
        deadline = Deadline.after(BMC_S, cancelled)
        with outside.bmcs.open(office.site.bmc_address(node.name), deadline) as bmc:
            seen = bmc.inventory(deadline)
        check_same(fresh, seen.value)
        office.journal.store(seen.evidence)
        event = ordered(fresh, _reason(anew), tuple(item.digest for item in seen.evidence))
        office.journal.append([event], claim=claims[node.id])
        publish(office, gold_pool(office.site))


def _tell(node: NodeState, words: str, manner: Manner) -> None:
    """`{"decisions": [{"name":…, "words":…}], "dry_run": true, "nodes": […]}`, or words."""
    if manner.as_json:
        decisions = [{"name": node.name, "words": words}]
        nodes = [render.node_json(node, CLOCK.now())]
        click.echo(json.dumps({"decisions": decisions, "dry_run": True, "nodes": nodes}))
        return
    click.echo(f"{words}\n\nNothing was changed.")
