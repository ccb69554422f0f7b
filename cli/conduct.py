"""Conducts a run: which nodes, whose claim, how far; then says what became of them."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from clusterctl.cli import render
from clusterctl.cli.board import Board
from clusterctl.cli.compose import Crew
from clusterctl.cli.office import CLOCK, Office, open_office
from clusterctl.cli.options import matching
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.node import NodeId, Stage, Verb
from clusterctl.fleet.state import Summary
from clusterctl.ports import Claims


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asked for: `verbs` of the way, over the nodes that match `limit`, measured beside `partners`."""

    verbs: tuple[str, ...]
    limit: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    yes: bool = False
    dry_run: bool = False
    as_json: bool = False

    @property
    def way(self) -> tuple[Verb, ...]:
        return tuple(Verb(verb) for verb in self.verbs)


def conduct(folder: Path, order: Order) -> int:
    """Run the order; the exit code: 0 when all selected nodes arrived, 1 when some are stopped or left alone."""
    office = open_office(folder)
    office.site.check_secrets()
    selected = _select(office, order)
    partners = _partners(office, order, selected)
    if order.dry_run:
        click.echo(render.plan_text(selected))
        return 0
    if not order.yes:
        _ask(selected, order.way)
    office.describe()
    chosen = {node.name for node in selected}
    nodes = [node for node in office.journal.summaries() if node.name in chosen]
    refused = _run(office, nodes, partners, order.way)
    after = [node for node in office.journal.summaries() if node.name in chosen]
    _tell(office, after, refused, as_json=order.as_json)
    return 0 if not refused and all(_arrived(node, order.way[-1]) for node in after) else 1


def _select(office: Office, order: Order) -> list[Summary]:
    """The site's nodes that match; for a single step only those that stand before it."""
    named = {node.name for node in office.site.nodes}
    fleet = [node for node in office.nodes() if node.name in named]
    wanted = matching((node.name for node in fleet), order.limit)
    selected = [node for node in fleet if node.name in wanted]
    if len(order.way) == 1:
        selected = [node for node in selected if node.next_verb is order.way[0]]
    return selected


def _partners(office: Office, order: Order, selected: Sequence[Summary]) -> list[Summary]:
    """The nodes named as partners: gold ones, so that what they are measured with is known to be good."""
    known = {node.name: node for node in office.nodes()}
    for name in order.partners:
        if name not in known or known[name].stage is not Stage.GOLD:
            stage = f"it is {known[name].stage.value}" if name in known else "there is no such node"
            remedy = "name an idle gold node: clusterctl nodes --stage gold"
            raise UsageError(f"{name} cannot be a partner: {stage}", where="--partner", remedy=remedy)
    return [known[name] for name in order.partners if name not in {node.name for node in selected if node.next_verb}]


def _ask(nodes: Sequence[Summary], way: Sequence[Verb]) -> None:
    """Ask once before disks are overwritten."""
    doomed = [node for node in nodes if Verb.INSTALL in way and node.stage in (Stage.SEEN, Stage.DISCOVERED)]
    if doomed:
        click.confirm(
            f"This powers {len(doomed)} machines on and off and overwrites their root disks "
            f"({doomed[0].name} … {doomed[-1].name}; clusterctl plan shows each). Go on?",
            abort=True,
            err=True,
        )


def _run(office: Office, nodes: Sequence[Summary], partners: Sequence[Summary], way: Sequence[Verb]) -> dict[str, str]:
    """Claim, run, release; who else holds which of the nodes."""
    names = {node.id: node.name for node in (*nodes, *partners)}
    cancelled = threading.Event()
    with _claimed(office, list(names)) as claims, _stoppable(cancelled):
        mine = [office.journal.state(node.id) for node in nodes if node.id in claims.granted]
        mates = [office.journal.state(node.id) for node in partners if node.id in claims.granted]
        with Crew(office, cancelled, mates) as crew:
            office.journal.append([_run_event(office, Kind.RUN_STARTED, verbs=[verb.value for verb in way])])
            with Board([node for node in nodes if node.id in claims.granted], way) as board:
                crew.pipeline(way, board.watch).run(mine, claims.granted)
            office.journal.append([_run_event(office, Kind.RUN_FINISHED)])
            crew.publish()
    return {names[node]: holder for node, holder in claims.refused.items()}


def _run_event(office: Office, kind: Kind, **data: object) -> NewEvent:
    return NewEvent("run", office.run, kind, data)


@contextmanager
def _claimed(office: Office, nodes: Sequence[NodeId]) -> Iterator[Claims]:
    claims = office.journal.claim(nodes, office.run)
    try:
        yield claims
    finally:
        office.journal.release(claims.granted.values())


@contextmanager
def _stoppable(cancelled: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM ask the run to stop; a second one ends it at once."""

    def stop(number: int, _frame: object) -> None:
        if cancelled.is_set():
            raise KeyboardInterrupt
        click.echo("stopping; what is done is kept (again to stop at once)", err=True)
        cancelled.set()
        signal.signal(number, stop)

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _tell(office: Office, nodes: Sequence[Summary], refused: dict[str, str], *, as_json: bool) -> None:
    for name, holder in refused.items():
        click.echo(f"{name} was left alone: {holder}", err=True)
    if as_json:
        click.echo(json.dumps({"nodes": [render.node_json(node) for node in nodes], "left_alone": refused}))
        return
    if not nodes:
        click.echo("no node stands before this step; clusterctl nodes shows where they are", err=True)
        return
    sys.stdout.flush()
    click.echo(render.nodes_text(nodes, CLOCK.now()))
    click.echo(f"\n{render.counts(nodes)}{render.lab_note(office.site.settings.simulated)}")
    stopped = [node.name for node in nodes if node.stopped_at is not None]
    if stopped:
        click.echo(f"clusterctl why {stopped[0]} says why, and what to do.")


def _arrived(node: Summary, last: Verb) -> bool:
    """True when the node stands where `last` leads, or beyond, and nothing holds it."""
    if node.stopped_at is not None:
        return False
    return node.next_verb is None or list(Verb).index(node.next_verb) > list(Verb).index(last)
