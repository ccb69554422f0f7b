"""`clusterctl bootstrap`, and each of its steps alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from clusterctl.cli.options import (
    dry_run_option,
    json_option,
    limit_option,
    partner_option,
    site_option,
    verbose_option,
    yes_option,
)

VERBS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@click.option("--until", type=click.Choice(VERBS), default="admit", help="Stop after this step.")
@partner_option
@site_option
@limit_option
@yes_option
@dry_run_option
@json_option
@verbose_option
def bootstrap(until: str, folder: Path, **options: Any) -> int:
    """Take every node the whole way to gold. Safe to repeat: goes on from where each node stands."""
    return _go(folder, VERBS[: VERBS.index(until) + 1], options)


def one(verb: str, text: str) -> click.Command:
    """The command that runs `verb` alone, on the nodes that stand before it."""

    @click.command(name=verb, help=text)
    @site_option
    @limit_option
    @yes_option
    @dry_run_option
    @json_option
    @verbose_option
    def command(folder: Path, **options: Any) -> int:
        return _go(folder, [verb], options)

    return command


discover = one("discover", "Read the machines' inventory over Redfish and match it against the SKUs. Changes nothing.")
install = one("install", "Install the OS on nodes that are discovered. Overwrites their root disk; asks first.")
configure = one("configure", "Apply the roles to nodes that are installed.")
admit = one("admit", "Admit to the gold pool nodes that are burned in.")


def _go(folder: Path, verbs: list[str], options: dict[str, Any]) -> int:
    from clusterctl.cli.conduct import Order, conduct

    return conduct(folder, Order(tuple(verbs), **options))
