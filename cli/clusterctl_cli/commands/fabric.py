"""`clusterctl fabric watch|repaired`."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.command_groups import FABRIC, LazyGroup
from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import dry_run_option, site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.context import SiteContext
    from clusterctl.operations.fabric_watch import WatchRequest, WatchResult


@click.group(cls=LazyGroup, table=FABRIC)
def fabric() -> None:
    """Watch the InfiniBand fabric in service (docs/how-to/fabric-watch.md)."""


@click.command()
@click.option("--once", is_flag=True, help="One pass, then end: for timers.")
@dry_run_option
@format_option(*DOCUMENTS)
@site_option
def watch(*, once: bool, dry_run: bool, as_json: bool, folder: Path) -> int:
    """Read alarms and counters again and again; disable bad links, and enable repaired ones once they are proven.

    The counters decide; alarms of UFM only name ports. Nothing is changed unless the site file has fabric.watch with
    act: true. The rules are those of `cable disable`: a budget, never the last way, never a host's own rail. Each bad
    link is one incident, and one ticket where the site has a ticket system; a closed ticket, or `fabric repaired`,
    starts the proof. Runs until it is stopped; a pass that was killed is finished by the next one.

    Exit code of --once: 0: all is well; 1: a bad link stays in use, something failed or could not be read.
    """
    from clusterctl.operations.fabric_watch import WatchRequest
    from clusterctl_cli.approval import logged
    from clusterctl_cli.context import open_context
    from clusterctl_cli.stopping import stoppable

    context = open_context(folder)
    request = WatchRequest(dry_run=dry_run)
    with logged(context) as log, stoppable() as cancelled:
        if once:
            result = _pass(context, request, cancelled)
            _print(result, as_json=as_json)
            log.print_path(result.exit_code)
            return result.exit_code
        _serve(context, request, cancelled, as_json=as_json)
    return 0


def _serve(context: SiteContext, request: WatchRequest, cancelled: threading.Event, *, as_json: bool) -> None:
    """Do one pass after the other. A pass that fails is reported, and the next one begins in time."""
    from clusterctl.fleet.errors import CancelledError, ClusterctlError
    from clusterctl.operations.fabric_watch import settings_of

    seconds = settings_of(context).seconds
    while not cancelled.is_set():
        began = time.monotonic()
        try:
            _print(_pass(context, request, cancelled), as_json=as_json)
        except CancelledError:
            return
        except ClusterctlError as error:
            echo(f"this pass failed: {error}", err=True)
        cancelled.wait(max(0.0, seconds - (time.monotonic() - began)))


def _pass(context: SiteContext, request: WatchRequest, cancelled: threading.Event) -> WatchResult:
    """Do one pass; where ports may be changed, then bring tickets and messages up to date that the site has."""
    from clusterctl.operations import fabric_watch, notify, tickets
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import print_event
    from clusterctl_cli.commands.tickets import sheet_of

    result = fabric_watch.run(context, request, Control(None, print_event, cancelled))
    if result.acts and context.site.settings.tickets is not None:
        for one in tickets.run(context, sheet_of(context)).tickets:
            if one.failure:
                echo(f"ticket of {one.incident}: {one.failure}", err=True)
    if result.acts and context.site.settings.notify is not None:
        notify.run(context, seconds=notify.AFTER_A_RUN_S)
    return result


def _print(result: WatchResult, *, as_json: bool) -> None:
    from clusterctl.operations.serial import to_data
    from clusterctl_cli.formats import print_document

    if as_json:
        print_document({"watch": to_data(result)})
        return
    for line in _lines(result):
        echo(line)


def _lines(result: WatchResult) -> list[str]:
    """Return one pass as text: what is known, what was done, what is left alone, what waits."""
    done = [f"{one.node}: {one.failure or one.text}" for one in result.outcomes]
    parts = (("would", result.would), ("stays in use", result.skipped), ("waits", result.waiting))
    links = [f"{title}: {link}: {text}" for title, found in parts for link, text in found.items()]
    alarms = ", ".join(f"{count} {meaning.replace('_', ' ')}" for meaning, count in sorted(result.alarms.items()))
    acts = "acts" if result.acts else "changes nothing"
    state = f"links: {result.verdict or 'unknown'}, {result.bad} of {result.links} bad"
    heads = [f"{state}; {result.out} out of use, budget {result.budget}; {acts}"]
    if alarms:
        heads.append(f"new events of the fabric manager: {alarms}")
    if result.unknown:
        heads.append(f"unknown codes: {', '.join(map(str, result.unknown))}")
    heads += [f"subnet manager: {text}" for text in result.managers]
    heads += [*result.stale, *(f"not read: {text}" for text in result.problems)]
    return [*heads, *done, *links]


@click.command()
@click.argument("ports", metavar="SWITCH:PORT...", nargs=-1, required=True)
@click.option("--reason", required=True, help="What was done; it is journaled with your name.")
@format_option(*DOCUMENTS)
@site_option
def repaired(*, ports: tuple[str, ...], reason: str, as_json: bool, folder: Path) -> int:
    """Report that links which `fabric watch` disabled are repaired: its next pass enables and proves them.

    A closed ticket does the same. Without the watch, `cable enable` enables and proves them at once.
    """
    from clusterctl.operations.fabric_repairs import RepairedRequest, report_repaired
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    labels = report_repaired(open_context(folder), RepairedRequest(ports=ports, reason=reason))
    if as_json:
        print_document({"repaired": list(labels)})
    else:
        for label in labels:
            echo(f"{label}: repaired; the next pass of fabric watch enables and proves it")
    return 0
