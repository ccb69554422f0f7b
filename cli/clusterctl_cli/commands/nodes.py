"""`clusterctl nodes [NODE…]`: the fleet as a list; history, reports and evidence of the nodes that are named."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.peer_text import visible
from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import gathered, optional_nodes_argument, site_option
from clusterctl_cli.text import echo, echo_rendered, terminal_width
from clusterctl_cli.watching import View, watch, watch_option

if TYPE_CHECKING:
    from clusterctl.fleet.event import Event
    from clusterctl.fleet.hardware.parts import Part
    from clusterctl.fleet.state import NodeState
    from clusterctl.operations.context import SiteContext


UNFOLDED = 100_000
"""Columns where there is no terminal: each finding is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesOptions:
    """The options of `nodes`."""

    nodes: tuple[str, ...]
    digest: str | None
    part: str | None
    selectors: tuple[str, ...]
    watching: bool
    folder: Path
    as_json: bool


@click.command()
@optional_nodes_argument
@click.option("--evidence", "digest", metavar="DIGEST", help="Print one piece of evidence, raw (12 digits suffice).")
@click.option("--part", metavar="PART", help="Print the history of a part instead, by slot or serial, wherever it was.")
@watch_option
@site_option
@format_option()
@gathered(NodesOptions)
def nodes(options: NodesOptions) -> int:
    """List the fleet: where each node stands, since when, and what keeps it back.

    With NODE (names or shell patterns), print the history of each node, its last reports, and the evidence that they
    rest on.
    """
    from clusterctl.fleet.selectors import choose
    from clusterctl_cli.context import open_context

    context = open_context(options.folder)
    if options.digest is not None or options.part is not None:
        _print_one(context, _only(options.nodes), options.digest, options.part, as_json=options.as_json)
        return 0
    if options.as_json and not options.watching:
        from clusterctl.operations.json_documents import node_json
        from clusterctl.operations.operation import current_time

        found, now = choose(context.nodes(), options.nodes, options.selectors), current_time()
        if options.nodes:
            print_document({"nodes": _details_json(context, _states(context, options.nodes, options.selectors))})
        else:
            print_document({"nodes": [node_json(node, now) for node in found]})
        return 0

    def look() -> View:
        return (
            _details(context, options.nodes, options.selectors) if options.nodes else _list(context, options.selectors)
        )

    if options.watching:
        return watch(look)
    echo_rendered(look().text)
    return 0


def _list(context: SiteContext, selectors: tuple[str, ...]) -> View:
    """Return one line per node, the counts, and what concerns the fleet as a whole."""
    from clusterctl.fleet.selectors import choose
    from clusterctl.operations.gold_pool import expired_note, expiry_of, spares
    from clusterctl.operations.maintenance_status import unfinished_notes
    from clusterctl.operations.operation import current_time
    from clusterctl_cli import render
    from clusterctl_cli.render_fabric import faults_note

    shown, now = choose(context.nodes(), (), selectors), current_time()
    lines = [render.nodes_text(shown, now), "", render.counts(shown) + render.lab_note(context.site.settings.simulated)]
    if (wanted := spares(context.site, context.journal)) is not None and wanted.missing:
        lines.append(f"too few spares: {wanted}")
    faults, plans = context.faults(), unfinished_notes(context)
    lines += plans
    lines += [note for note in (expired_note(shown, expiry_of(context.site), now), faults_note(faults)) if note]
    return View(visible("\n".join(lines)), (shown, faults, plans))


def _states(context: SiteContext, names: tuple[str, ...], selectors: tuple[str, ...]) -> list[NodeState]:
    from clusterctl.fleet.selectors import choose

    return context.states(node.name for node in choose(context.nodes(), names, selectors))


def _events(context: SiteContext, state: NodeState) -> list[Event]:
    from clusterctl.fleet.event import Stream

    return list(context.journal.history(Stream.NODE, state.id))


def _details_json(context: SiteContext, states: Iterable[NodeState]) -> list[dict[str, object]]:
    from clusterctl.operations.json_documents import node_details_json
    from clusterctl.operations.operation import current_time

    return [node_details_json(state, _events(context, state), current_time()) for state in states]


def _details(context: SiteContext, names: tuple[str, ...], selectors: tuple[str, ...]) -> View:
    """Return head, history and last reports of each node."""
    from clusterctl.operations.operation import current_time
    from clusterctl_cli import render
    from clusterctl_cli.console import VisibleConsole
    from clusterctl_cli.render_history import history_text

    width = terminal_width()
    console = VisibleConsole(highlight=False, width=UNFOLDED if width is None else None)
    states = _states(context, names, selectors)
    with console.capture() as captured:
        for state in states:
            console.print(render.node_head(state, current_time()))
            console.out(history_text(_events(context, state)), highlight=False)
            for step, report in state.reports.items():
                console.print(f"\n[bold]{step}[/bold] (suite {report.suite or '-'})")
                console.print(render.findings_table(report.findings, state.waivers, current_time()))
            console.print()
    lines = captured.get().rstrip("\n").split("\n")
    return View("\n".join(line.rstrip() for line in lines), [state.last_seq for state in states])


def _only(names: tuple[str, ...]) -> str:
    if len(names) != 1:
        remedy = "clusterctl nodes NODE --part PART, or --evidence DIGEST"
        raise UsageError("--part and --evidence are about one node", where="NODE", remedy=remedy)
    return names[0]


def _print_one(context: SiteContext, name: str, digest: str | None, part: str | None, *, as_json: bool) -> None:
    from clusterctl.fleet.hardware.parts import part_named

    state = context.node(name)
    if digest is not None:
        content = _evidence(context, _events(context, state), digest)
        if sys.stdout.isatty():
            echo(content.decode("utf-8", "replace"))
        else:
            sys.stdout.buffer.write(content)
    elif part is not None:
        _print_part(context, part_named(state, part), as_json=as_json)


def _print_part(context: SiteContext, part: Part, *, as_json: bool) -> None:
    """Print what the journal knows of a part, whichever nodes it was in: by its serial also before a reading has it."""
    from clusterctl.fleet.event import Stream
    from clusterctl.operations.json_documents import event_json
    from clusterctl_cli.render_history import history_text

    serial = part.serial or part.subject
    events = list(context.journal.history(Stream.PART, serial))
    if not part.serial and not events:
        raise UsageError(
            f"no reading names the serial of {part.subject}",
            where="--part",
            remedy="give a serial, or a slot as `clusterctl nodes NODE --json` has it in its inventory",
        )
    if as_json:
        history = [event_json(event) for event in events]
        print_document({"subject": part.subject, "serial": serial, "history": history})
        return
    echo(str(part) if part.serial else f"serial {serial}")
    echo(history_text(events))


def _evidence(context: SiteContext, events: Iterable[Event], prefix: str) -> bytes:
    """Return the raw content of the evidence with a digest that begins with `prefix`."""
    digests = {digest for event in events for digest in event.evidence if digest.startswith(prefix)}
    if len(digests) != 1:
        raise UsageError(
            f"{len(digests)} pieces of evidence of this node begin with {prefix!r}",
            where="--evidence",
            remedy="clusterctl why NODE prints the digests",
        )
    item = context.journal.evidence(digests.pop())
    if item is None:
        raise UsageError("this evidence is no longer kept", where="--evidence", remedy="read its report instead")
    return item.content
