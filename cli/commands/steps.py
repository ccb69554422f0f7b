"""`clusterctl bootstrap`, and each of its steps alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl.cli.options import partner_option, step_options

VERBS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@click.option("--until", type=click.Choice(VERBS), default="admit", help="Stop after this step.")
@partner_option
@step_options
def bootstrap(until: str, folder: Path, **options: Any) -> int:
    """Take every node the whole way to gold. Safe to repeat: goes on from where each node stands."""
    return go(folder, VERBS[: VERBS.index(until) + 1], options)


def one(verb: str, text: str) -> click.Command:
    """The command that runs `verb` alone, on the nodes that stand before it."""

    @click.command(name=verb, help=text)
    @step_options
    def command(folder: Path, **options: Any) -> int:
        return go(folder, [verb], options)

    return command


install = one("install", "Install the OS on nodes that are discovered. Overwrites their root disk; asks first.")
configure = one("configure", "Apply the roles to nodes that are installed.")
admit = one("admit", "Admit to the gold pool nodes that are burned in.")


def go(folder: Path, verbs: list[str], options: dict[str, Any]) -> int:
    """Run these steps; the exit code. `options` are `Order`'s."""
    from clusterctl.cli.conduct import Order, conduct
    from clusterctl.cli.office import open_office
    from clusterctl.cli.outside import Edges

    order = Order(tuple(verbs), **options)
    office = open_office(folder, thorough=True)
    return conduct(office, Edges(office.site, read_only=order.read_only), order)
