"""`clusterctl release NAME`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl.cli.options import site_option, verbose_option, yes_option


@click.command()
@click.argument("name")
@click.option("--reason", required=True, help="What was mended; kept in the node's history with your name.")
@site_option
@yes_option
@verbose_option
def release(name: str, reason: str, folder: Path, yes: bool) -> None:
    """Send a quarantined or held node back to the step that stopped it, to be tried again by the next bootstrap."""
    from clusterctl.cli.office import open_office
    from clusterctl.fleet.errors import UsageError
    from clusterctl.fleet.event import Kind, NewEvent
    from clusterctl.fleet.node import Stage

    office = open_office(folder)
    state = office.node(name)
    if state.stopped_at is None:
        raise UsageError(f"nothing holds {name}: it is {state.stage.value}", where=name, remedy="nothing to release")
    before = next(stage for stage in Stage if stage.next_verb is state.stopped_at)
    if not yes:
        click.confirm(f"{name} was stopped: {state.cause}\nSend it back to {state.stopped_at.value}?", abort=True)
    claims = office.journal.claim([state.id], office.run)
    for holder in claims.refused.values():
        raise UsageError(holder, where=name, remedy="let that run finish first")
    event = NewEvent("node", state.id, Kind.NODE_RELEASED, {"to": before.value, "reason": reason})
    office.journal.append([event], claim=claims.granted[state.id])
    office.journal.release(claims.granted.values())
    click.echo(f"{name} is back at {before.value}; the next clusterctl bootstrap takes it on from there")
