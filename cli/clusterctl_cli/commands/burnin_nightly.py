"""`clusterctl burnin nightly`: for cron and timers."""

from __future__ import annotations

from pathlib import Path

import click

from clusterctl_cli.options import dry_run_option, json_option, site_option, verbose_option


@click.command("nightly")
@site_option
@click.option("--window", metavar="HH:MM-HH:MM", help="Instead of the site's, in its time zone.")
@click.option("--budget", type=click.IntRange(1, 100), metavar="PERCENT", help="Of the gold nodes, out at a time.")
@dry_run_option
@json_option
@verbose_option
def nightly(*, folder: Path, window: str | None, budget: int | None, dry_run: bool, as_json: bool) -> int:
    """Burn in gold nodes that are idle, the ones with the oldest evidence first, and give them back.

    The site says when, how many at a time and how old evidence may become (docs/nightly.md). One line when all is well.

    Exit code 0: all that were tested are gold again; 1: some are not, or evidence is too old; 2: it is not the time, or
    the site's budget cannot keep what it promises.
    """
    from clusterctl.operations.context import open_office
    from clusterctl.operations.nightly import Said, run_nightly

    return run_nightly(open_office(folder, thorough=True), Said(window, budget, dry_run, as_json))
