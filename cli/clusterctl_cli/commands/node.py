"""`clusterctl node rename|move|renumber|swap`: a node with another name, place, address or chassis."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.command_groups import NODE, LazyGroup
from clusterctl_cli.completion import complete_nodes
from clusterctl_cli.options import decision_options, reason_option

_address_option = click.option("--address", default="", metavar="ADDRESS", help="The new address of its host.")


@click.group("node", cls=LazyGroup, table=NODE)
def node_group() -> None:
    """Rename, move or renumber a node, or swap its chassis (docs/how-to/relocate.md)."""


@click.command()
@click.argument("node", metavar="OLD", shell_complete=complete_nodes)
@click.argument("name", metavar="NEW")
@reason_option()
@decision_options
def rename(node: str, name: str, folder: Path, **options: Any) -> int:
    """Give a node another name, in the site's files and in the journal. Interrupted, the same command goes on."""
    return _relocate(folder, {"node": node, "name": name.lower(), **options})


@click.command()
@click.argument("node", shell_complete=complete_nodes)
@click.option("--rack", required=True, help="The rack that it stands in now.")
@click.option("--unit", type=click.IntRange(1, 60), required=True, help="Its lowest rack unit.")
@click.option("--bmc", default="", metavar="ADDRESS", help="The new address of its BMC, where that changed, too.")
@_address_option
@reason_option()
@decision_options
def move(folder: Path, **options: Any) -> int:
    """Record that a node stands elsewhere: its cables are proven again. Run it when the BMC answers there."""
    return _relocate(folder, options)


@click.command()
@click.argument("node", shell_complete=complete_nodes)
@click.option("--bmc", default="", metavar="ADDRESS", help="The new address of its BMC.")
@_address_option
@reason_option()
@decision_options
def renumber(folder: Path, **options: Any) -> int:
    """Give a node other addresses. Its BMC must answer at the new one."""
    from clusterctl.fleet.errors import UsageError

    if not (options["bmc"] or options["address"]):
        raise UsageError("no address is given", where="--bmc", remedy="pass --bmc, --address, or both")
    return _relocate(folder, options)


@click.command()
@click.argument("node", shell_complete=complete_nodes)
@click.option("--serial", required=True, help="The serial on the label of the new chassis.")
@click.option("--bmc", default="", metavar="ADDRESS", help="The address of its BMC, where that changed, too.")
@reason_option()
@decision_options
def swap(folder: Path, **options: Any) -> int:
    """Record that another chassis is in a node's place. All its steps run again; parts keep their histories."""
    return _relocate(folder, options)


def _relocate(folder: Path, options: dict[str, Any]) -> int:
    from clusterctl.operations import relocate
    from clusterctl_cli.approval import Flags, carry_out
    from clusterctl_cli.context import open_context

    flags, context = Flags.taken(options), open_context(folder)
    return carry_out(relocate, context, relocate.RelocateRequest(**options), flags)
