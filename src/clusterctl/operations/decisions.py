"""A person's decisions, from words to the journal: all of them are sound and all nodes free, or nothing is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import click

from clusterctl.fleet.decisions.decision import Order
from clusterctl.fleet.errors import ClaimLostError, UsageError
from clusterctl.fleet.node import NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.pool import gold_pool, publish
from clusterctl.ports import Claim
from clusterctl_cli import render
from clusterctl_cli.options import matching

Decide = Callable[[NodeState], Order]
"""From a node as it stands to what is decided about it; a `UsageError` where that cannot be."""


@dataclass(frozen=True, slots=True)
class Manner:
    """How a command was asked for."""

    yes: bool = False
    dry_run: bool = False
    as_json: bool = False


def carry_out(office: Office, patterns: Sequence[str], decide: Decide, manner: Manner, also: Sequence[str] = ()) -> int:
    """Decide about the nodes that match `patterns`, with those named in `also` claimed beside them; the exit code.

    Everything is decided twice: before anybody is asked, and on the nodes as they stand once they are claimed.
    """
    names = chosen(office, patterns)
    orders = [decide(state) for state in _states(office, names)]
    if manner.dry_run:
        _tell(office, orders, manner)
        return 0
    if not manner.yes:
        _ask(orders)
    if not {*names} <= {node.name for node in office.journal.summaries()}:
        office.describe()
    states = _states(office, names)
    with claimed(office, [*states, *_states(office, also)]) as claims:
        orders = [decide(office.journal.state(state.id)) for state in states]
        for order in orders:
            office.journal.append(order.events, claim=claims[order.node.id])
        publish(office, gold_pool(office.site))
    _tell(office, orders, manner)
    return 0


def chosen(office: Office, patterns: Sequence[str]) -> list[str]:
    """The names that a person's NODE arguments mean."""
    if not patterns:
        raise UsageError("no node is named", where="NODE", remedy="name nodes, or patterns like 'node00*'")
    known = [node.name for node in office.nodes()]
    wanted = matching(known, tuple(patterns), where="NODE")
    return [name for name in known if name in wanted]


@contextmanager
def claimed(office: Office, states: Iterable[NodeState]) -> Iterator[Mapping[NodeId, Claim]]:
    """The nodes' claims, all or none; raises `ClaimLostError` saying who holds the others."""
    names = {state.id: state.name for state in states}
    claims = office.journal.claim(names, office.run)
    try:
        if claims.refused:
            node, holder = next(iter(claims.refused.items()))
            remedy = "let that run finish first; nothing was decided about any node"
            raise ClaimLostError(holder, where=names[node], remedy=remedy)
        yield claims.granted
    finally:
        office.journal.release(claims.granted.values())


def warn_of_sheet(office: Office, name: str, serial: str) -> None:
    """The journal is right about who the node is; a sheet that says otherwise misleads the next reader."""
    for node in office.site.nodes:
        if node.name == name and node.serial and node.serial != serial:
            click.echo(f"warning: the sheet says serial {node.serial} for {name}: correct it to {serial}", err=True)


def _states(office: Office, names: Iterable[str]) -> list[NodeState]:
    """The nodes as they stand; those that nothing has happened to as the site describes them."""
    known = {node.name: node.id for node in office.journal.summaries()}
    return [office.journal.state(known[name]) if name in known else office.unseen(name) for name in names]


def _ask(orders: Sequence[Order]) -> None:
    lines = [f"{order.node.name}: {order.words}" for order in orders]
    click.confirm("\n".join([*lines, "Go on?"]), abort=True, err=True)


def _tell(office: Office, orders: Sequence[Order], manner: Manner) -> None:
    """`{"decisions": [{"name":…, "words":…}], "dry_run":…, "nodes": […]}`, or a line a node."""
    if manner.as_json:
        names = {order.node.name for order in orders}
        nodes = [render.node_json(node, CLOCK.now()) for node in office.nodes() if node.name in names]
        decisions = [{"name": order.node.name, "words": order.words} for order in orders]
        click.echo(json.dumps({"decisions": decisions, "dry_run": manner.dry_run, "nodes": nodes}))
        return
    for order in orders:
        click.echo(f"{order.node.name}: {order.words}")
    if manner.dry_run:
        click.echo("\nNothing was changed.")
