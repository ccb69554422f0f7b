"""`clusterctl why NAME`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from clusterctl.fleet.event import Stream
from clusterctl_cli.options import json_option, site_option, verbose_option


@click.command()
@click.argument("name")
@site_option
@json_option
@verbose_option
def why(name: str, folder: Path, as_json: bool) -> None:
    """Say in plain words why a node is where it is, what to do about it, and what that rests on."""
    from rich.console import Console

    from clusterctl.fleet.bmc.accounts import rotation
    from clusterctl.fleet.decisions.waiver import waiver_of
    from clusterctl.operations.offenders import repeated
    from clusterctl.operations.operation import current_time
    from clusterctl_cli import render
    from clusterctl_cli.context import open_context
    from clusterctl_cli.render_why import password_json, why_text

    context = open_context(folder)
    state = context.node(name)
    again = repeated(context, state)
    password = rotation(context.journal.history(Stream.NODE, state.id))
    if as_json:
        now = current_time()
        findings = [render.finding_json(finding, waiver_of(finding, state.waivers, now)) for finding in state.findings]
        more = {"findings": findings, "bmc_password": password_json(password), "repeated": again}
        click.echo(json.dumps(render.node_json(state, now) | more))
        return
    evidence = context.evidence(digest for finding in state.findings for digest in finding.evidence)
    console = Console(highlight=False)
    console.print(why_text(state, evidence, current_time(), password, again), soft_wrap=True)
