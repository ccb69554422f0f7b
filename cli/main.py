"""`clusterctl`: finds the command, runs it, turns errors into words and exit codes."""

from __future__ import annotations

import importlib
import json
import sys

import click

from clusterctl.fleet.errors import ClusterctlError

COMMANDS = {
    "init": ("init:init", "Write a commented site directory."),
    "lab": ("lab:lab", "A cluster to rehearse on, without hardware."),
    "plan": ("plan:plan", "Say what bootstrap would do, node by node, before anything is touched."),
    "bootstrap": ("steps:bootstrap", "Take every node the whole way to gold; resumable."),
    "discover": ("steps:discover", "Read the machines' inventory over Redfish."),
    "install": ("steps:install", "Install the OS."),
    "configure": ("steps:configure", "Apply the roles."),
    "cable": ("cable:cable", "Prove the cabling against the wiring plan; `cable verify` does so offline."),
    "burnin": ("burnin:burnin", "Check and load the nodes."),
    "admit": ("steps:admit", "Admit to the gold pool what passed."),
    "nodes": ("nodes:nodes", "List the fleet."),
    "node": ("node:node", "Show one node's history and evidence."),
    "why": ("why:why", "Say why a node is where it is, and what to do."),
    "release": ("release:release", "Send a repaired or held node back to the step that stopped it."),
    "report": ("report:report", "Print the acceptance report."),
}
"""Command → (module:attribute under clusterctl.cli.commands, one-line help). Modules load when called."""


class LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name][0].split(":")
        command = getattr(importlib.import_module(f"clusterctl.cli.commands.{module}"), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{module}:{attribute} is no command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="clusterctl")
def cli() -> None:
    """From bare GPU servers to a trusted training cluster.

    Begin with `clusterctl init DIR`, or rehearse without hardware: `clusterctl lab up`, then `clusterctl bootstrap`.
    """


def main() -> None:
    """Entry point. Exit codes: 0 fine, 1 some node failed or is held, 2 wrong input, 3 environment, 130 interrupted."""
    try:
        code = cli.main(standalone_mode=False)
    except ClusterctlError as error:
        _tell(error)
        code = error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted; run the same command again to go on", err=True)
        code = 130
    except click.ClickException as error:
        error.show()
        code = error.exit_code
    sys.exit(code if isinstance(code, int) else 0)


def _tell(error: ClusterctlError) -> None:
    if "--json" in sys.argv:
        body = {"kind": error.kind, "message": error.message, "where": error.where, "remedy": error.remedy}
        click.echo(json.dumps({"error": body}), err=True)
        return
    head = f"{error.where}: {error.message}" if error.where else error.message
    click.echo(f"error: {head}", err=True)
    if error.remedy:
        click.echo(f"  → {error.remedy}", err=True)


if __name__ == "__main__":
    main()
