"""`clusterctl burnin`: bare, the step alone; `nightly` for cron; `script`, `export`, `judge`: evidence as files."""

from __future__ import annotations

import click

from clusterctl_cli.command_groups import BURNIN, LazyGroup
from clusterctl_cli.commands.steps import one
from clusterctl_cli.options import partner_option

step = partner_option(one("burnin", "Check and load nodes with proven cabling."))


@click.group(
    name="burnin", cls=LazyGroup, table=BURNIN, invoke_without_command=True, help=step.help, params=step.params
)
@click.pass_context
def burnin(ctx: click.Context, /, **options: object) -> int | None:
    if ctx.invoked_subcommand is None:
        return int(step.callback(**options)) if step.callback else None
    return None
