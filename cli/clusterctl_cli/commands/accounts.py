"""`clusterctl accounts rotate|check [NODE…]`."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl.fleet.errors import UsageError
from clusterctl_cli.options import decision_options, json_option, site_option, verbose_option


@click.group()
def accounts() -> None:
    """The passwords of the machines' BMCs: changed by the site's rule (site.yml: bmc.rotation), on disk before."""


@accounts.command()
@click.argument("nodes", metavar="[NODE...]", nargs=-1)
@click.option("--all", "everybody", is_flag=True, help="All machines of the site.")
@decision_options
def rotate(*, nodes: tuple[str, ...], everybody: bool, folder: Path, **manner: bool) -> int:
    """Give each BMC a new password of its own, see that it takes it, and tell MAAS. Names or patterns.

    What an earlier run began is finished, and not begun again.
    """
    from clusterctl.operations.accounts import rotate as change
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner

    if everybody and nodes:
        raise UsageError("all of them, and some by name", where="--all", remedy="name nodes, or say --all")
    return change(open_office(folder), ("*",) if everybody else nodes, Manner(**manner))


@accounts.command()
@click.argument("nodes", metavar="[NODE...]", nargs=-1)
@site_option
@json_option
@verbose_option
def check(*, nodes: tuple[str, ...], folder: Path, as_json: bool) -> int:
    """Say which password each BMC takes: the site's rule's, the one that was given, or neither. Changes nothing."""
    from clusterctl.operations.account_checking import check as ask
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner

    return ask(open_office(folder), nodes, Manner(as_json=as_json))
