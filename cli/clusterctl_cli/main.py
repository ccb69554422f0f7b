"""`clusterctl`: finds the command, runs it, turns errors into words and exit codes."""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import sys
from collections.abc import Sequence

import click

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl_cli import complaints, discretion

COMMANDS = {
    "init": ("init:init", "Write a commented site directory."),
    "doctor": ("doctor:doctor", "Show what is missing or wrong on this controller, and how to repair it."),
    "plan": ("plan:plan", "Show what bootstrap would do, node by node; checks every input."),
    "bootstrap": ("steps:bootstrap", "Take every node the whole way to gold; resumable."),
    "nodes": ("nodes:nodes", "List the fleet."),
    "node": ("node:node", "Show one node's history and evidence."),
    "why": ("why:why", "Explain why a node is where it is, and what to do."),
    "report": ("report:report", "Print the acceptance report."),
    "discover": ("discover:discover", "Read the machines' inventory over Redfish; --sweep finds BMCs."),
    "install": ("steps:install", "Install the OS."),
    "configure": ("steps:configure", "Apply the roles."),
    "cable": ("cable:cable", "Prove the cabling against the wiring plan."),
    "burnin": ("burnin:burnin", "Check and load the nodes."),
    "admit": ("steps:admit", "Admit to the gold pool what passed."),
    "revalidate": ("steps:revalidate", "Prove a node again after a repair."),
    "power": ("machine:power", "Switch machines on, off, or off and on; show whether they are on."),
    "accounts": ("machine:accounts", "Change the passwords of BMCs; show which they accept."),
    "settings": ("machine:settings", "BIOS settings and firmware against each SKU's baseline."),
    "firmware": ("machine:firmware", "Burn the adapters' firmware, in waves."),
    "bmc": ("machine:bmc", "Clear event logs of BMCs, once they are in the journal."),
    "retire": ("decisions:retire", "Retire a node; with --wipe, erase its drives first."),
    "hold": ("decisions:hold", "Keep every step off nodes until they are released."),
    "release": ("decisions:release", "Lift a hold; send a repaired node back to the step that stopped it."),
    "quarantine": ("decisions:quarantine", "Take nodes out of use by an operator's decision."),
    "waive": ("decisions:waive", "Take responsibility for a bad finding until a date."),
    "merge": ("decisions:merge", "Say that another machine stands in a node's place."),
    "pxe": ("pxe:pxe", "Our own PXE: serve it, or show what it lacks."),
    "image": ("image:image", "Build root file systems that the PXE installer writes to disks; list them."),
    "maas": ("maas:maas", "Show what the MAAS host lacks to install this site."),
}
"""Command → (module:attribute under clusterctl_cli.commands, one-line help). Modules load when called."""


PLUGINS = "clusterctl.commands"
"""Entry point group: commands of other installed packages, such as `lab` of clusterctl-lab."""
LAB_MISSING = "install the package clusterctl-lab beside clusterctl"


def plugins() -> dict[str, importlib.metadata.EntryPoint]:
    """Return the commands of other packages by name; reads the metadata of all installed packages, about 10 ms."""
    return {entry.name: entry for entry in importlib.metadata.entry_points(group=PLUGINS)}


class LazyGroup(click.Group):
    """Lists its commands without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return [*COMMANDS, *plugins()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in COMMANDS:
            module, attribute = COMMANDS[cmd_name][0].split(":")
            command = getattr(importlib.import_module(f"clusterctl_cli.commands.{module}"), attribute)
        else:
            found = plugins()
            if cmd_name not in found:
                if ctx.resilient_parsing:  # shell completion: the word is not complete yet
                    return None
                raise _unknown(cmd_name, [*COMMANDS, *found])
            command = found[cmd_name].load()
        if not isinstance(command, click.Command):
            raise TypeError(f"{cmd_name} is no click command")
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            rows = [(name, text) for name, (_, text) in COMMANDS.items()]
            formatter.write_dl(
                [*rows, *((name, str(entry.load().get_short_help_str(80))) for name, entry in plugins().items())]
            )


def _unknown(name: str, known: Sequence[str]) -> UsageError:
    if name == "lab":
        return UsageError("the rehearsal lab is not installed", where="clusterctl lab", remedy=LAB_MISSING)
    near = difflib.get_close_matches(name, known, n=1)
    remedy = f"did you mean {near[0]}?" if near else "clusterctl --help lists the commands"
    return UsageError(f"there is no command {name!r}", where="clusterctl", remedy=remedy)


@click.command(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="clusterctl")
def cli() -> None:
    """From bare GPU servers to a trusted training cluster.

    Begin with `clusterctl init DIR`, or rehearse without hardware: `clusterctl lab up`, then `clusterctl bootstrap`.
    """


def run(argv: Sequence[str]) -> int:
    """Run one command line; its exit code: 0 fine, 1 some node failed or is held, 2 wrong input, 3 environment,
    130 interrupted.
    """
    as_json = "--json" in argv
    try:
        code = cli.main(list(argv), prog_name="clusterctl", standalone_mode=False)
    except ClusterctlError as error:
        complaints.tell(error, as_json=as_json)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted; run the same command again to go on", err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        complaints.tell(complaints.of_click(error), as_json=as_json)
        return error.exit_code
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point."""
    discretion.begin()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
