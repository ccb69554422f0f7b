"""`clusterctl cable name`: the names of switches by their place, for OpenSM."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import FILE, site_option
from clusterctl_cli.text import echo

_RECORDED = "A recorded reading (ibnetdiscover, iblinkinfo, db_csv), gzipped or not.  [default: the live fabric]"


@click.command("name")
@click.option("--fabric", type=FILE, help=_RECORDED)
@click.option(
    "--write", "file", type=click.Path(dir_okay=False, path_type=Path), help="The file.  [default: standard output]"
)
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
@format_option(*DOCUMENTS)
@site_option
def name(*, fabric: Path | None, file: Path | None, deadline: float, as_json: bool, folder: Path) -> int:
    """Identify each switch by its cables and the wiring plan, and write OpenSM's node-name-map.

    Give the file to OpenSM (`--node-name-map`) and to ibnetdiscover and its like, which then print the plan's names. No
    switch is changed. A switch that the plan does not identify is named on stderr, and is not in the file.

    Exit code 0: every switch has its name; 1: some are not identified.
    """
    from clusterctl.operations.fabric_names import NamesRequest, run
    from clusterctl.operations.operation import Control
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    result = run(open_context(folder), NamesRequest(recorded=fabric, deadline_s=deadline), Control())
    for guid, description in result.unknown.items():
        echo(f"not identified: 0x{guid} ({description or 'no description'})", err=True)
    if file is not None:
        file.write_text(result.node_name_map)
        echo(f"{len(result.names)} switches are named in {file}", err=True)
    if as_json:
        print_document({"names": dict(result.names), "unknown": dict(result.unknown)})
    elif file is None:
        echo(result.node_name_map.rstrip())
    return result.exit_code
