"""`clusterctl report`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from clusterctl.cli.options import json_option, site_option, verbose_option


@click.command()
@site_option
@json_option
@verbose_option
def report(folder: Path, as_json: bool) -> None:
    """Print the acceptance report: what is gold and on which evidence, what is not and why, by rack."""
    from clusterctl.cli.acceptance import acceptance_json, acceptance_text
    from clusterctl.cli.office import CLOCK, open_office

    office = open_office(folder)
    states, settings = office.journal.states(), office.site.settings
    if as_json:
        click.echo(json.dumps(acceptance_json(states, settings.name, settings.simulated, CLOCK.now())))
        return
    click.echo(acceptance_text(states, settings.name, settings.simulated, CLOCK.now()))
