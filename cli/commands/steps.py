"""`clusterctl bootstrap`, and each of its steps alone."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl.cli.options import (
    dry_run_option,
    json_option,
    limit_option,
    site_option,
    verbose_option,
    yes_option,
)

VERBS = ["discover", "install", "configure", "cable", "burnin", "admit"]


@click.command()
@click.option("--until", type=click.Choice(VERBS), default="admit", help="Stop after this step.")
@site_option
@limit_option
@yes_option
@dry_run_option
@json_option
@verbose_option
def bootstrap(*, until: str, folder: Path, limit: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
    """Take every node the whole way to gold. Safe to repeat: goes on from where each node stands."""
    verbs = VERBS[: VERBS.index(until) + 1]
    return _go(folder, verbs, limit, yes=yes, dry_run=dry_run, as_json=as_json)


def one(verb: str, text: str) -> click.Command:
    """The command that runs `verb` alone, on the nodes that stand before it."""

    @click.command(name=verb, help=text)
    @site_option
    @limit_option
    @yes_option
    @dry_run_option
    @json_option
    @verbose_option
    def command(folder: Path, limit: tuple[str, ...], yes: bool, dry_run: bool, as_json: bool) -> int:
        return _go(folder, [verb], limit, yes=yes, dry_run=dry_run, as_json=as_json)

    return command


discover = one("discover", "Read the machines' inventory over Redfish and match it against the SKUs. Changes nothing.")
install = one("install", "Install the OS on nodes that are discovered. Overwrites their root disk; asks first.")
configure = one("configure", "Apply the roles to nodes that are installed.")
admit = one("admit", "Admit to the gold pool nodes that are burned in.")


def _go(folder: Path, verbs: list[str], limit: tuple[str, ...], *, yes: bool, dry_run: bool, as_json: bool) -> int:
    from clusterctl.cli.conduct import conduct

    return conduct(folder, verbs, limit, yes=yes, dry_run=dry_run, as_json=as_json)
