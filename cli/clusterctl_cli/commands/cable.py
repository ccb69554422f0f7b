"""`clusterctl cable`: bare, the step; `verify` compares a plan with a recorded fabric, offline."""

from __future__ import annotations

import click

from clusterctl_cli.commands.cable_burnplan import burnplan
from clusterctl_cli.commands.cable_counters import counters
from clusterctl_cli.commands.cable_coverage import coverage
from clusterctl_cli.commands.cable_disable import disable
from clusterctl_cli.commands.cable_enable import enable
from clusterctl_cli.commands.cable_health import health
from clusterctl_cli.commands.cable_lint import lint
from clusterctl_cli.commands.cable_observe import observe
from clusterctl_cli.commands.cable_plan import plan
from clusterctl_cli.commands.cable_recheck import recheck
from clusterctl_cli.commands.cable_report import report
from clusterctl_cli.commands.cable_verify import verify
from clusterctl_cli.commands.steps import one

step = one("cable", "Prove the cabling of configured nodes against the wiring plan.")


class CableGroup(click.Group):
    """Lists its commands in the order of their use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.commands)


@click.group(name="cable", cls=CableGroup, invoke_without_command=True, help=step.help, params=step.params)
@click.pass_context
def cable(ctx: click.Context, /, **options: object) -> int | None:
    if ctx.invoked_subcommand is None:
        return int(step.callback(**options)) if step.callback else None
    return None


for _command in (plan, lint, verify, recheck, report, observe, counters, health, burnplan, coverage, disable, enable):
    cable.add_command(_command)
