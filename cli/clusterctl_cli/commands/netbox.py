"""`clusterctl import netbox` and `clusterctl export netbox`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import dry_run_option, site_option, yes_option

if TYPE_CHECKING:
    from clusterctl_cli.approval import Flags


@click.group("import")
def import_() -> None:
    """Bring the site's files up to date with a source of truth."""


@import_.command("netbox", short_help="Nodes, wiring plan and Ethernet plan from NetBox.")
@click.option("--overwrite", is_flag=True, help="Also what was changed by hand; a copy of the file is kept.")
@yes_option
@dry_run_option
@format_option(*DOCUMENTS)
@site_option
def import_netbox(folder: Path, *, overwrite: bool, **options: Any) -> int:
    """Bring the node sheet, the wiring plan and the Ethernet plan up to date with NetBox.

    Prints the difference for each node and field, and for each cable, and asks. What NetBox has and the site cannot
    take over is named with its address in NetBox: a duplicate serial, a BMC without an address, a breakout cable.
    Cells and plans that were changed by hand stay. Reads NetBox, and changes nothing there.

    Exit code 0: the site has all of NetBox's nodes and cables; 1: some were left out.
    """
    from clusterctl.operations import netbox_import as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli import output
    from clusterctl_cli.approval import Flags, approve, print_event
    from clusterctl_cli.stopping import stoppable

    flags = Flags.taken(options)
    request = operation.NetboxImportRequest(overwrite=overwrite)
    with stoppable() as cancelled:
        plan = operation.prepare(folder, request, Control(None, print_event, cancelled))
    preview = operation.preview(plan)
    if not approve(preview, _unasked(flags) if not preview.effects else flags):
        return 0
    result = operation.run(plan, Control(preview.digest, print_event))
    output.print_result(result, as_json=flags.as_json)
    return result.exit_code


@click.command("netbox")
@yes_option
@dry_run_option
@format_option(*DOCUMENTS)
@site_option
def export_netbox(folder: Path, **options: Any) -> int:
    """Write the nodes' stage, status, tags and parts, and a journal entry at each quarantine, to NetBox.

    Prints what differs for each node, and asks. A value that a person changed in NetBox since the last export stays.
    What is written is named by netbox.export in site.yml. Run it again after an interruption: nothing is written twice.
    """
    from clusterctl.operations import netbox_export as operation
    from clusterctl.operations.operation import Control
    from clusterctl_cli import output
    from clusterctl_cli.approval import Flags, approve, observed, print_event
    from clusterctl_cli.context import open_context

    flags = Flags.taken(options)
    context, request = open_context(folder), operation.NetboxExportRequest()
    preview = operation.preview(context, request)
    if not approve(preview, _unasked(flags) if not preview.effects else flags):
        return 0
    with observed(context) as (log, cancelled):
        result = operation.run(context, request, Control(preview.digest, print_event, cancelled))
    output.print_result(result, as_json=flags.as_json)
    log.print_path(result.exit_code)
    return result.exit_code


def _unasked(flags: Flags) -> Flags:
    """Return the flags for a preview in which nothing differs: there is nothing to approve."""
    return replace(flags, yes=True)
