"""Conducts a run: which nodes, whose claim, how far; then says what became of them."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

import click

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.fabric.history import FabricFault
from clusterctl.fleet.node import NodeId, Stage, Step
from clusterctl.fleet.state import NodeSummary
from clusterctl.operations.accounts import finish
from clusterctl.operations.adapters import Outside
from clusterctl.operations.compose import Crew
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.mates import idle_mates
from clusterctl.operations.trust import notices
from clusterctl.ports import Claims
from clusterctl_cli import render
from clusterctl_cli.board import Board
from clusterctl_cli.options import matching, say_notices
from clusterctl_cli.render_fabric import fault_json, faults_text
from clusterctl_cli.stopping import stoppable


@dataclass(frozen=True, slots=True)
class Order:
    """What a person asked for: `steps` of the way, over the nodes that match `limit`, measured beside `partners`.

    `read_only`: discover reads and powers nothing on. `quiet`: no progress is shown.
    """

    steps: tuple[str, ...]
    limit: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()
    yes: bool = False
    dry_run: bool = False
    as_json: bool = False
    read_only: bool = False
    quiet: bool = False

    @property
    def way(self) -> tuple[Step, ...]:
        return tuple(Step(step) for step in self.steps)


def conduct(office: Office, outside: Outside, order: Order) -> int:
    """Run the order; the exit code: 0 when all selected nodes arrived, 1 when some are stopped or left alone.

    The run owns `outside` and closes it.
    """
    say_notices(notices(office.site))
    selected = _select(office, order)
    partners = _partners(office, order, selected)
    if order.dry_run:
        click.echo(render.plan_text(selected, CLOCK.now()))
        return 0
    if not order.yes:
        _ask(selected, order.way)
    office.describe()
    chosen = {node.name for node in selected}
    nodes = [node for node in office.journal.summaries() if node.name in chosen]
    partners += [node for node in idle_mates(office.journal, outside.pool, nodes, order.way) if node not in partners]
    with closing(outside):
        refused = run_nodes(office, outside, nodes, partners, order)
    after = [node for node in office.journal.summaries() if node.name in chosen]
    left_alone = refused | _held(after)
    faults = office.faults() if Step.CABLE in order.way else ()
    _tell(office, after, left_alone, faults, as_json=order.as_json)
    return 0 if not left_alone and all(_arrived(node, order.way[-1]) for node in after) else 1


def _select(office: Office, order: Order) -> list[NodeSummary]:
    """The site's nodes that match, retired ones never; for a single step only those that stand before it."""
    named = {node.name for node in office.site.nodes}
    fleet = [node for node in office.nodes() if node.name in named]
    wanted = matching((node.name for node in fleet), order.limit)
    selected = [node for node in fleet if node.name in wanted and node.stage is not Stage.RETIRED]
    if len(order.way) == 1:
        selected = [node for node in selected if node.next_step is order.way[0]]
    return selected


def _partners(office: Office, order: Order, selected: Sequence[NodeSummary]) -> list[NodeSummary]:
    """The nodes named as partners: gold ones, so that what they are measured with is known to be good."""
    if not order.partners:
        return []
    known = {node.name: node for node in office.nodes()}
    for name in order.partners:
        if name not in known or not known[name].in_pool(CLOCK.now()):
            stage = f"it is {_standing(known[name])}" if name in known else "there is no such node"
            remedy = "name an idle gold node: clusterctl nodes --stage gold"
            raise UsageError(f"{name} cannot be a partner: {stage}", where="--partner", remedy=remedy)
    return [known[name] for name in order.partners if name not in {node.name for node in selected if node.next_step}]


def _standing(node: NodeSummary) -> str:
    return str(node.hold) if node.held(CLOCK.now()) else node.stage.value


def _ask(nodes: Sequence[NodeSummary], way: Sequence[Step]) -> None:
    """Ask once before disks are overwritten."""
    now = CLOCK.now()
    before = [node for node in nodes if node.stage in (Stage.SEEN, Stage.DISCOVERED) and not node.held(now)]
    doomed = before if Step.INSTALL in way else []
    if doomed:
        click.confirm(
            f"This powers {len(doomed)} machines on and off and overwrites their root disks "
            f"({doomed[0].name} … {doomed[-1].name}; clusterctl plan shows each). Go on?",
            abort=True,
            err=True,
        )


def run_nodes(
    office: Office, outside: Outside, nodes: Sequence[NodeSummary], partners: Sequence[NodeSummary], order: Order
) -> dict[str, str]:
    """Claim what can move, run, release; who was left alone, and why: another run holds it, or its step was stopped."""
    way = order.way
    names = {node.id: node.name for node in (*nodes, *partners)}
    moving = [node.id for node in nodes if node.next_step in way]
    cancelled = threading.Event()
    with _claimed(office, [*moving, *(node.id for node in partners)]) as claims, stoppable(cancelled):
        if not order.read_only:
            finish(office, outside, claims.granted.values(), cancelled)
        mine = [office.journal.state(node.id) for node in nodes if node.id in claims.granted]
        mates = [office.journal.state(node.id) for node in partners if node.id in claims.granted]
        fit = [mate for mate in mates if mate.in_pool(CLOCK.now())]
        crew = Crew(office, outside, cancelled, fit, read_only=order.read_only)
        office.journal.append([_run_event(office, Kind.RUN_STARTED, steps=[step.value for step in way])])
        with Board([node for node in nodes if node.id not in claims.refused], way, quiet=order.quiet) as board:
            lost = crew.pipeline(way, board.watch, board.stopped).run(mine, claims.granted)
        office.journal.append([_run_event(office, Kind.RUN_FINISHED)])
        crew.publish()
    return {names[node]: holder for node, holder in {**claims.refused, **lost}.items()}


def _held(nodes: Sequence[NodeSummary]) -> dict[str, str]:
    """The nodes that a person holds, in words."""
    now = CLOCK.now()
    return {node.name: str(node.hold) for node in nodes if node.held(now)}


def _run_event(office: Office, kind: Kind, **data: object) -> NewEvent:
    return NewEvent("run", office.run, kind, data)


@contextmanager
def _claimed(office: Office, nodes: Sequence[NodeId]) -> Iterator[Claims]:
    claims = office.journal.claim(nodes, office.run)
    try:
        yield claims
    finally:
        office.journal.release(claims.granted.values())


def _tell(
    office: Office,
    nodes: Sequence[NodeSummary],
    left_alone: dict[str, str],
    faults: Sequence[FabricFault],
    *,
    as_json: bool,
) -> None:
    for line in render.left_alone(left_alone):
        click.echo(line, err=True)
    if as_json:
        told = {"nodes": [render.node_json(node, CLOCK.now()) for node in nodes], "left_alone": left_alone}
        click.echo(json.dumps(told | {"fabric": [fault_json(fault) for fault in faults]}))
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
    if faults:
        click.echo(f"\n{faults_text(faults)}")


def _arrived(node: NodeSummary, last: Step) -> bool:
    """True when the node stands where `last` leads, or beyond, and nothing holds it."""
    if node.stopped_at is not None:
        return False
    return node.next_step is None or list(Step).index(node.next_step) > list(Step).index(last)
