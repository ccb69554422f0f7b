"""`clusterctl`: find the command, run it, print errors, return the exit code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl_cli import error_output, process_hardening
from clusterctl_cli.formats import asked_on

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUPS: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "Start": {
        "init": ("init:init", "Write a commented site directory."),
        "doctor": ("doctor:doctor", "Check this controller, and how to repair it."),
        "plan": ("plan:plan", "Print what bootstrap would do; checks every input."),
    },
    "Fleet": {
        "bootstrap": ("steps:bootstrap", "Take every node the whole way to gold; resumable."),
        "nodes": ("nodes:nodes", "List the fleet; with NODE, print history and evidence."),
        "why": ("why:why", "Explain why a node is where it is, and what to do."),
        "inventory": ("inventory:inventory", "Print the fleet as a dynamic Ansible inventory."),
        "report": ("report:report", "Print the acceptance report."),
    },
    "Steps": {
        "discover": ("discover:discover", "Read inventories over Redfish; --sweep finds BMCs."),
        "install": ("steps:install", "Install the OS."),
        "configure": ("steps:configure", "Apply the roles; --check prints the drift."),
        "cable": ("cable:cable", "Prove the cabling against the wiring plan."),
        "burnin": ("burnin:burnin", "Check and load the nodes."),
        "admit": ("steps:admit", "Admit burned-in nodes to the gold pool."),
    },
    "In service": {
        "revalidate": ("steps:revalidate", "Prove nodes again after a repair."),
    },
    "Machine": {
        "power": ("machine:power", "Switch machines on or off; boot them from an image."),
        "accounts": ("machine:accounts", "Change and check the passwords of BMCs."),
        "settings": ("machine:settings", "Check and apply the baseline of BIOS and firmware."),
        "firmware": ("machine:firmware", "Burn the adapters' firmware, in waves."),
        "bmc": ("machine:bmc", "Clear event logs of BMCs."),
        "sku": ("sku:sku", "Write SKU files from machines; calibrate limits."),
        "retire": ("decisions:retire", "Retire a node; with --wipe, erase its drives first."),
    },
    "Fabric": {},
    "Decisions": {
        "hold": ("decisions:hold", "Keep every step off nodes until they are released."),
        "release": ("decisions:release", "Lift a hold; send repaired nodes back to a step."),
        "quarantine": ("decisions:quarantine", "Take nodes out of use by an operator's decision."),
        "waive": ("decisions:waive", "Take responsibility for a bad finding until a date."),
        "merge": ("decisions:merge", "Record that another machine is in a node's place."),
    },
    "Service": {
        "journal": ("journal:journal", "Verify, back up, restore and compact the journal."),
        "pxe": ("pxe:pxe", "Serve PXE, or check what it lacks."),
        "image": ("image:image", "Build, list and prune images of the PXE installer."),
        "maas": ("maas:maas", "Check the MAAS host that installs this site."),
    },
}
"""Section of `--help` → command → (module:attribute under clusterctl_cli.commands, one-line help). A module is imported
when its command is called.
"""
COMMANDS = {name: command for group in GROUPS.values() for name, command in group.items()}
SUBCOMMANDS = {"In service": ("burnin nightly",), "Fabric": ("cable *",)}
"""Section of `--help` → commands of command groups that are listed there, too."""

PLUGINS = "clusterctl.commands"
"""Entry point group: commands of other installed packages, such as `lab` of clusterctl-lab."""
PLUGIN_SECTION = "Start"
LAB_MISSING = "install the package clusterctl-lab beside clusterctl"
HELP_WIDTH = 200
"""Help texts are wrapped by click, never cut."""


def plugins() -> dict[str, EntryPoint]:
    """Return the commands of other packages by name; reads the metadata of all installed packages, about 10 ms."""
    from importlib import metadata

    return {entry.name: entry for entry in metadata.entry_points(group=PLUGINS)}


class LazyGroup(click.Group):
    """Lists its commands by section, without importing them."""

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
        sections = {section: list(self._rows(ctx, section)) for section in GROUPS}
        names = [name for rows in sections.values() for name, _ in rows]
        for section, rows in sections.items():
            with formatter.section(section):
                formatter.write_dl([(name.ljust(max(map(len, names))), text) for name, text in rows])

    def _rows(self, ctx: click.Context, section: str) -> Iterator[tuple[str, str]]:
        for name, (_, text) in GROUPS[section].items():
            yield name, text
        if section == PLUGIN_SECTION:
            for name, entry in plugins().items():
                yield name, str(entry.load().get_short_help_str(HELP_WIDTH))
        for path in SUBCOMMANDS.get(section, ()):
            group, _, wanted = path.partition(" ")
            parent = self.get_command(ctx, group)
            if isinstance(parent, click.Group):
                for name, command in parent.commands.items():
                    if wanted in ("*", name):
                        yield f"{group} {name}", command.get_short_help_str(HELP_WIDTH)


def _unknown(name: str, known: Sequence[str]) -> UsageError:
    import difflib

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
    """Run one command line; return its exit code: 0 fine, 1 some node failed or is held, 2 wrong input, 3 environment,
    130 interrupted.
    """
    form = asked_on(argv)
    try:
        code = cli.main(list(argv), prog_name="clusterctl", standalone_mode=False)
    except ClusterctlError as error:
        error_output.print_error(error, form)
        return error.exit_code
    except click.exceptions.Abort:
        click.echo("interrupted; run the same command again to go on", err=True)
        return 130
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        error_output.print_error(error_output.from_click(error), form)
        return error.exit_code
    return code if isinstance(code, int) else 0


def main() -> None:
    """Entry point."""
    process_hardening.harden()
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
