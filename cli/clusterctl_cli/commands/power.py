"""`clusterctl power on|off|cycle|status NODE…`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl_cli.options import decision_options, json_option, site_option, verbose_option

_REASON = "Why; kept in the node's history with your name."


@click.group()
def power() -> None:
    """Machines' power, through their BMCs: switched where the serial is proven, and believed where it is seen."""


@power.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@site_option
@json_option
@verbose_option
def status(*, nodes: tuple[str, ...], folder: Path, as_json: bool) -> int:
    """Ask the BMCs whether their machines are on. Changes nothing. Names or patterns."""
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner
    from clusterctl.operations.power import status as ask

    return ask(open_office(folder), nodes, Manner(as_json=as_json))


@power.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help=_REASON)
@decision_options
def on(*, nodes: tuple[str, ...], reason: str, folder: Path, **manner: bool) -> int:
    """Switch machines on, a few of each rack at a time (site.yml: power.stagger). Names or patterns."""
    return _switch("on", nodes, reason, folder, None, manner)


@power.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help=_REASON)
@click.option("--at-most", type=click.IntRange(min=1), help="More machines than the site's power.at_most.")
@decision_options
def off(*, nodes: tuple[str, ...], reason: str, at_most: int | None, folder: Path, **manner: bool) -> int:
    """Switch machines off: the OS is asked first and has its grace, then power is cut. Never what is in the pool."""
    return _switch("off", nodes, reason, folder, at_most, manner)


@power.command()
@click.argument("nodes", metavar="NODE...", nargs=-1)
@click.option("--reason", required=True, help=_REASON)
@click.option("--at-most", type=click.IntRange(min=1), help="More machines than the site's power.at_most.")
@click.option(
    "--ac", is_flag=True, help="Take all power from them in between, their BMCs' too, as some firmware needs."
)
@decision_options
def cycle(*, nodes: tuple[str, ...], reason: str, at_most: int | None, ac: bool, folder: Path, **manner: bool) -> int:
    """Switch machines off as `off` does, see them off, and switch them on again as `on` does."""
    return _switch("ac-cycle" if ac else "cycle", nodes, reason, folder, at_most, manner)


def _switch(  # noqa: PLR0917 — what the three commands share
    word: str, nodes: tuple[str, ...], reason: str, folder: Path, at_most: int | None, manner: dict[str, Any]
) -> int:
    from clusterctl.fleet.decisions.permissions import PowerOrder
    from clusterctl.operations.context import open_office
    from clusterctl.operations.decisions import Manner
    from clusterctl.operations.power import Wanted, switch

    return switch(open_office(folder), Wanted(PowerOrder(word), nodes, reason, at_most), Manner(**manner))
