"""`clusterctl cable`: bare, the step; `verify` compares a plan with a recorded fabric, offline."""

from __future__ import annotations

import click

from clusterctl.cli.commands.cable_verify import verify
from clusterctl.cli.commands.steps import one

step = one("cable", "Prove the cabling of configured nodes against the wiring plan.")


@click.group(name="cable", invoke_without_command=True, help=step.help, params=step.params)
@click.pass_context
def cable(ctx: click.Context, /, **options: object) -> int | None:
    if ctx.invoked_subcommand is None:
        return int(step.callback(**options)) if step.callback else None
    return None


cable.add_command(verify)
