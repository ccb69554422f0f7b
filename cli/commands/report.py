"""`clusterctl report`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl.cli.options import json_option, site_option, verbose_option
from clusterctl.fleet.errors import UsageError

if TYPE_CHECKING:
    from clusterctl.cli.office import Office
    from clusterctl.cli.work_order_forms import Sheet

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--work-orders", is_flag=True, help="Print what technicians have to do instead, by rack and unit.")
@click.option("--format", "form", type=click.Choice(["md", "csv"]), help="Of the work orders.  [default: md]")
@click.option("--output", type=_FILE, help="The file to write.  [default: stdout]")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@site_option
@json_option
@verbose_option
def report(
    *, work_orders: bool, form: str | None, output: Path | None, force: bool, folder: Path, as_json: bool
) -> None:
    """Print the acceptance report: what is gold and on which evidence, what is not and why, by rack."""
    if form is not None and (as_json or not work_orders):
        remedy = "give one of them" if as_json else "add --work-orders"
        where = "--json" if as_json else "the acceptance report"
        raise UsageError(f"{where} has no other format", where="--format", remedy=remedy)
    from clusterctl.cli.office import open_office

    office = open_office(folder)
    text = _work_orders(office, form, as_json=as_json) if work_orders else _acceptance(office, as_json=as_json)
    if output is None:
        click.echo(text, nl=not text.endswith("\n"))
        return
    from clusterctl.cli.documents import write_document

    write_document(output, text, option="--output", force=force)
    click.echo(f"written: {output}", err=True)


def _acceptance(office: Office, *, as_json: bool) -> str:
    from clusterctl.cli.acceptance import Standing, acceptance_json, acceptance_text
    from clusterctl.cli.offending import known_offenders
    from clusterctl.cli.office import CLOCK
    from clusterctl.cli.trust import notices

    states, settings = office.journal.states(), office.site.settings
    unproven = tuple(notices(office.site))
    offenders = known_offenders(office)
    standing = Standing(settings.name, settings.simulated, CLOCK.now(), unproven, office.faults(), offenders)
    return json.dumps(acceptance_json(states, standing)) if as_json else acceptance_text(states, standing)


def _work_orders(office: Office, form: str | None, *, as_json: bool) -> str:
    from clusterctl.cli import work_order_forms as forms

    sheet = _sheet(office)
    if as_json:
        return json.dumps(forms.work_orders_json(sheet))
    if form != "csv":
        return forms.work_orders_text(sheet)
    if nothing := forms.nothing_to_do(sheet):
        click.echo(nothing, err=True)
    return forms.work_orders_csv(sheet)


def _sheet(office: Office) -> Sheet:
    """Only nodes that are stopped are read whole."""
    from clusterctl.cli.office import CLOCK
    from clusterctl.cli.work_order_forms import Sheet
    from clusterctl.cli.work_order_sources import faults_with_evidence, planned_cables
    from clusterctl.fleet.node import Stage
    from clusterctl.fleet.work_orders import work_orders

    now, settings = CLOCK.now(), office.site.settings
    fleet = [node for node in office.nodes() if node.stage is not Stage.RETIRED]
    states = [office.journal.state(node.id) for node in fleet if node.stopped_at is not None]
    orders = work_orders(states, now, faults_with_evidence(office), planned_cables(office) if states else {})
    held = tuple(node for node in fleet if node.held(now) and node.stopped_at is None)
    unseen = sum(node.stage is Stage.SEEN and node.stopped_at is None for node in fleet)
    return Sheet(settings.name, settings.simulated, now, len(fleet), unseen, orders, held)
