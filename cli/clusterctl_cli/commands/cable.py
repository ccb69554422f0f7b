"""`clusterctl cable`: bare, the step; `verify` compares a plan with a recorded fabric, offline."""

from __future__ import annotations

import click

from clusterctl_cli.command_groups import CABLE, LazyGroup
from clusterctl_cli.commands.steps import one

step = one("cable", "Prove the cabling of configured nodes against the wiring plan.")


@click.group(name="cable", cls=LazyGroup, table=CABLE, invoke_without_command=True, help=step.help, params=step.params)
@click.pass_context
def cable(ctx: click.Context, /, **options: object) -> int | None:
    if ctx.invoked_subcommand is None:
        return int(step.callback(**options)) if step.callback else None
    return None
