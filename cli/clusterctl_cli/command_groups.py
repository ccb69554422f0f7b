"""All commands with their one-line help, and the groups that import a command only when it is called."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click

from clusterctl.fleet.errors import UsageError

CommandTable = Mapping[str, tuple[str, str]]
"""Name of a command → (module:attribute under clusterctl_cli.commands, one-line help)."""

SECTIONS: Mapping[str, CommandTable] = {
    "Start": {
        "init": ("init:init", "Write a commented site directory."),
        "doctor": ("doctor:doctor", "Check this controller, and how to repair it."),
        "plan": ("plan:plan", "Print what bootstrap would do; checks every input."),
        "import": ("netbox:import_", "Bring the site's files up to date with NetBox."),
        "export": ("export:export", "Write the site's state to NetBox, and Slurm's files."),
    },
    "Fleet": {
        "bootstrap": ("steps:bootstrap", "Take every node the whole way to gold; resumable."),
        "nodes": ("nodes:nodes", "List the fleet; with NODE, print history and evidence."),
        "why": ("why:why", "Explain why a node is where it is, and what to do."),
        "logs": ("logs:logs", "Print a node's log, joined with its recorded events."),
        "runs": ("runs:runs", "List, show, cancel and retry detached runs."),
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
        "check": ("check:check", "Check nodes in service, without loads; change nothing."),
        "adopt": ("adopt:adopt", "Take in machines that are installed already."),
        "revalidate": ("steps:revalidate", "Prove nodes again after a repair."),
        "maintain": ("maintain:maintain", "Change the pool wave by wave, by a plan."),
        "job": ("job:job", "Run jobs under supervision; explain why jobs fail."),
        "incident": ("incident:incident", "List and show incidents."),
        "explain": ("explain:explain", "Explain a line of a log: meaning, blame, what to do."),
    },
    "Machine": {
        "power": ("machine:power", "Switch machines on or off; boot them from an image."),
        "accounts": ("machine:accounts", "Change and check the passwords of BMCs."),
        "settings": ("machine:settings", "Check and apply the baseline of BIOS and firmware."),
        "firmware": ("machine:firmware", "Burn the adapters' firmware, in waves."),
        "bmc": ("machine:bmc", "Set clock, DNS and syslog of BMCs; clear their logs."),
        "sku": ("sku:sku", "Write SKU files from machines; calibrate limits."),
        "node": ("node:node_group", "Rename, move or renumber a node; swap its chassis."),
        "retire": ("decisions:retire", "Retire a node; with --wipe, erase its drives first."),
    },
    "Fabric": {
        "fabric": ("fabric:fabric", "Watch the fabric: bad links out of use until repaired."),
    },
    "Decisions": {
        "hold": ("decisions:hold", "Keep every step off nodes until they are released."),
        "release": ("decisions:release", "Lift a hold; send repaired nodes back to a step."),
        "quarantine": ("decisions:quarantine", "Take nodes out of use by an operator's decision."),
        "waive": ("decisions:waive", "Take responsibility for a bad finding until a date."),
        "merge": ("decisions:merge", "Record that another machine is in a node's place."),
        "rma": ("rma:rma", "Record returns of parts to their vendors."),
    },
    "Service": {
        "web": ("web:web", "Serve the fleet as a live page; its users and tokens."),
        "notify": ("notify:notify", "Send messages about incidents to the site's channels."),
        "tickets": ("tickets:tickets", "Create and update tickets of incidents."),
        "worker": ("worker:worker", "Carry out runs that --queue orders."),
        "workers": ("worker:workers", "List the workers and the runs that wait for one."),
        "metrics": ("metrics:metrics", "Print the site's metrics for Prometheus."),
        "journal": ("journal:journal", "Verify, back up, restore and compact the journal."),
        "pxe": ("pxe:pxe", "Serve PXE, or check what it lacks."),
        "image": ("image:image", "Build, list and prune images of the PXE installer."),
        "maas": ("maas:maas", "Check the MAAS host that installs this site."),
    },
}
"""Section of `clusterctl --help` → its commands."""
COMMANDS: CommandTable = {name: command for section in SECTIONS.values() for name, command in section.items()}

BURNIN: CommandTable = {
    "export": ("burnin_export:export", "Write the raw evidence of each node's last burn-in."),
    "judge": ("burnin_judge:judge", "Judge recorded checks again: DIR/NODE.json for each node."),
    "nightly": ("burnin_nightly:nightly", "Burn in idle gold nodes, the oldest evidence first."),
    "node-file": ("burnin_node_file:node_file", "Write the checks as one program for nodes without a controller."),
    "script": ("burnin_script:script", "Write the program that reads the probes of all checks."),
}
EXPORT: CommandTable = {
    "netbox": ("netbox:export_netbox", "Stage, status, tags, parts and quarantines to NetBox."),
    "slurm": ("export_slurm:export_slurm", "Slurm's files, from inventory and fabric."),
}
WEB_USER: CommandTable = {
    "add": ("web_access:user_add", "Add a user of the web page."),
    "list": ("web_access:user_list", "List the users with their roles."),
    "passwd": ("web_access:user_passwd", "Set a user's password; the user's sessions end."),
    "remove": ("web_access:user_remove", "Remove a user; the user's sessions end."),
}
WEB_TOKEN: CommandTable = {
    "add": ("web_access:token_add", "Make a token of the API and print it, this once."),
    "list": ("web_access:token_list", "List the tokens with their roles and ends."),
    "remove": ("web_access:token_remove", "Remove a token: it stops working at once."),
}
CABLE: CommandTable = {
    "plan": ("cable_plan:plan", "Write the wiring plan of a standard fat tree."),
    "lint": ("cable_lint:lint", "Check wiring plans before a cable is laid."),
    "verify": ("cable_verify:verify", "Compare a fabric with its plan: which cables to move."),
    "recheck": ("cable_recheck:recheck", "Compare two fabrics with a plan: what is repaired."),
    "report": ("cable_report:report", "Write the fabric as one HTML page."),
    "observe": ("cable_observe:observe", "Write the changes of the fabric into the journal."),
    "name": ("cable_name:name", "Name switches by their place: OpenSM's node-name-map."),
    "counters": ("cable_counters:counters", "Print one reading of all error counters."),
    "health": ("cable_health:health", "Judge links by two readings of their counters."),
    "burnplan": ("cable_burnplan:burnplan", "Plan flows that load every link, from forwarding tables."),
    "coverage": ("cable_coverage:coverage", "Judge which links a burn loaded, and how well."),
    "burn": ("cable_burn:burn", "Load every link from free hosts, and judge each."),
    "disable": ("cable_disable:disable", "Take bad links between switches out of use."),
    "enable": ("cable_enable:enable", "Bring repaired links back into use, once proven."),
}
"""In the order of their use."""
FABRIC: CommandTable = {
    "watch": ("fabric:watch", "Judge links; disable bad ones, bring repaired ones back."),
    "repaired": ("fabric:repaired", "Report that disabled links are repaired."),
    "jobs": ("fabric_jobs:jobs", "List the jobs of UFM, or follow them to their end."),
    "restart": ("fabric_restart:restart", "Restart a UFM whose model of the fabric is stale."),
    "firmware": ("fabric_firmware:firmware", "List firmware of switches and transceivers; plan waves of switches."),
    "upgrade": ("fabric_upgrade:upgrade", "Put new software on managed switches, in waves, through UFM."),
}
JOB: CommandTable = {
    "run": ("job_run:run", "Submit a script on the healthiest nodes, supervised."),
    "watch": ("job_run:watch", "Follow a supervised run; start it again after failures."),
    "list": ("job_runs:list_", "List the supervised runs."),
    "stop": ("job_run:stop", "Cancel a supervised run."),
    "why": ("job_why:why", "Attribute a failure to its first error and its host."),
    "stacks": ("job_stacks:stacks", "Group the stacks of a hung job's ranks."),
    "storage": ("job_storage:storage", "Print what jobs ask of NFS and Lustre, the most first."),
    "pattern": ("job_pattern:pattern", "Classify how a job is slow by the times of its steps."),
    "diff": ("job_runs:diff", "Print what differs between the manifests of two jobs."),
    "checklist": ("job_runs:checklist", "Answer eight questions about a job of a supervised run."),
}
MAINTAIN: CommandTable = {
    "run": ("maintain:run", "Begin the plan of a file, or go on with it."),
    "status": ("maintain:status", "List the plans; with NAME, where each node stands."),
    "pause": ("maintain:pause", "Begin with no more nodes of a plan."),
    "resume": ("maintain:resume", "Go on with a plan."),
    "stop": ("maintain:stop", "End a plan for good."),
    "rollback": ("maintain:rollback", "Take the change of a plan back."),
}
INCIDENT: CommandTable = {
    "list": ("incident:list_", "List the open incidents."),
    "show": ("incident:show", "Show an incident, its history and its messages."),
    "resolve": ("incident:resolve", "End an incident by hand; its channels get to know it."),
}
NODE: CommandTable = {
    "rename": ("node:rename", "Give a node another name; its history goes on."),
    "move": ("node:move", "Record that a node stands in another place."),
    "renumber": ("node:renumber", "Give a node's BMC or host another address."),
    "swap": ("node:swap", "Record that another chassis is in a node's place."),
}
RMA: CommandTable = {
    "open": ("rma:open_", "Open the return of a part with the vendor's case."),
    "ship": ("rma:ship", "Record that the part was sent."),
    "receive": ("rma:receive", "Record that the replacement has arrived."),
    "close": ("rma:close", "Close the return of a part."),
    "list": ("rma:list_", "List the open returns with their age."),
}
TICKETS: CommandTable = {
    "sync": ("tickets:sync", "Bring the tickets up to date: for timers."),
}
NOTIFY: CommandTable = {
    "send": ("notify:send", "Send the messages that are due: for timers."),
    "test": ("notify:test", "Send a test message to a channel, or to all."),
}

SUBCOMMANDS: Mapping[str, Mapping[str, str]] = {
    "In service": {"burnin nightly": BURNIN["nightly"][1]},
    "Fabric": {f"cable {name}": text for name, (_, text) in CABLE.items()}
    | {f"fabric {name}": text for name, (_, text) in FABRIC.items()},
}
"""Section of `clusterctl --help` → commands of other commands that are listed there, too, with their one-line help."""


GROUPS: Mapping[str, CommandTable] = {
    "": COMMANDS,
    "burnin": BURNIN,
    "cable": CABLE,
    "export": EXPORT,
    "fabric": FABRIC,
    "incident": INCIDENT,
    "job": JOB,
    "maintain": MAINTAIN,
    "node": NODE,
    "notify": NOTIFY,
    "rma": RMA,
    "tickets": TICKETS,
    "web token": WEB_TOKEN,
    "web user": WEB_USER,
}
"""Words before a command → the table that it is in; for suggestions across groups."""
_GENERAL = frozenset({"add", "list", "remove", "run", "show", "stop", "status", "plan", "watch"})
"""Commands of many groups: of these another group's is no suggestion."""


def _places(name: str) -> list[str]:
    """Return the whole commands, in any group, that end in this name: `clusterctl burnin nightly` for `nightly`."""
    found = [group for group, table in GROUPS.items() if name in table and name not in _GENERAL]
    return [" ".join(filter(None, ("clusterctl", group, name))) for group in found]


def _all_names() -> list[str]:
    return sorted({name for table in GROUPS.values() for name in table} - _GENERAL)


class LazyGroup(click.Group):
    """Lists the commands of a table, and imports a command when it is called."""

    def __init__(self, *arguments: Any, table: CommandTable, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            if ctx.resilient_parsing:  # shell completion: the word is not complete yet
                return None
            raise self._unknown(ctx, cmd_name)
        from clusterctl_cli.verbosity import add_verbose  # here, not above: `--help` has no use for it

        path, text = self.table[cmd_name]
        module, _, attribute = path.partition(":")
        command = getattr(importlib.import_module(f"clusterctl_cli.commands.{module}"), attribute)
        if not isinstance(command, click.Command):
            raise TypeError(f"{path} is no click command")
        command.short_help = text
        return add_verbose(command)

    def _unknown(self, ctx: click.Context, name: str) -> UsageError:
        import difflib

        meant = difflib.get_close_matches(name, self.list_commands(ctx), n=1)
        for other in () if name in _GENERAL else (name, *difflib.get_close_matches(name, _all_names(), n=1)):
            meant = meant or _places(other)
        remedy = f"did you mean {' or '.join(meant)}?" if meant else f"{ctx.command_path} --help lists the commands"
        return UsageError(f"there is no command {name!r}", where=ctx.command_path, remedy=remedy)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])
