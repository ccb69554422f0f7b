"""`clusterctl lab …`: a rehearsal cluster without hardware."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import gathered
from clusterctl_lab.commands.replay import replay
from clusterctl_lab.vendor import Vendor

PIPE_COLUMNS = 200
"""Width of tables in a pipe: wide enough that no line wraps."""

name_option = click.option(
    "--name",
    envvar="CLUSTERCTL_LAB",
    default="lab",
    show_default=True,
    help="Name of the lab (or CLUSTERCTL_LAB); two can run at once.",
)


@click.group(short_help="Rehearse without hardware, on an emulated cluster.")
def lab() -> None:
    """Rehearse without hardware: a cluster of emulated BMCs, MAAS, hosts and fabric from one model."""


lab.add_command(replay)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpOptions:
    """The options of `up`."""

    name: str
    hosts: int
    rails: int
    subnet: str
    site: Path
    installed: bool
    faults: tuple[str, ...]
    short: bool
    seed: int
    vendors: tuple[str, ...]
    metal: str
    installer: str | None
    fabric: str
    pods: int


@lab.command()
@name_option
@click.option("--hosts", type=click.IntRange(1, 500), default=8, show_default=True, help="Number of machines.")
@click.option("--rails", type=click.IntRange(1, 8), default=8, show_default=True, help="InfiniBand ports per machine.")
@click.option(
    "--subnet",
    envvar="CLUSTERCTL_LAB_SUBNET",
    default="10.88.0.0/16",
    show_default=True,
    help="An unused private /16 network (or CLUSTERCTL_LAB_SUBNET).",
)
@click.option(
    "--site",
    type=click.Path(path_type=Path),
    envvar="CLUSTERCTL_SITE",
    default=Path("rehearsal"),
    show_default="./rehearsal",
    help="Site directory to write.",
)
@click.option("--installed", is_flag=True, help="Start with all hosts installed and running.")
@click.option("--fault", "faults", metavar="FAULT:TARGET", multiple=True, help="Start with this fault; repeatable.")
@click.option("--short", is_flag=True, help="Use shorter delays of emulated hardware, for tests.")
@click.option("--seed", default=0, show_default=True, help="Seed of the normal differences between machines.")
@click.option(
    "--vendor",
    "vendors",
    type=click.Choice([vendor.value for vendor in Vendor]),
    multiple=True,
    default=(Vendor.DELL.value,),
    show_default=True,
    help="Vendor of the servers; repeatable: vendors alternate.",
)
@click.option(
    "--metal",
    type=click.Choice(["namespaces", "qemu"]),
    default="namespaces",
    show_default=True,
    help="Platform of the machines; qemu: virtual machines that boot from the network and from their disks.",
)
@click.option(
    "--installer",
    type=click.Choice(["maas", "pxe"]),
    help="Installer of virtual machines: the lab's MAAS, or clusterctl's PXE (the default with --metal qemu).",
)
@click.option(
    "--fabric",
    type=click.Choice(["infiniband", "roce"]),
    default="infiniband",
    show_default=True,
    help="Compute fabric; roce: adapters in Ethernet mode, cables proven by LLDP (Dell servers).",
)
@click.option(
    "--pods",
    type=click.IntRange(1, 8),
    default=1,
    show_default=True,
    help="Split the machines over so many management networks, each with a controller of its own.",
)
@gathered(UpOptions)
def up(options: UpOptions) -> None:
    """Start a lab and write its site directory; return when everything answers. Needs root."""
    from clusterctl_lab.hosts.names import LabNames
    from clusterctl_lab.launch import up as start
    from clusterctl_lab.preflight import changes, check_machine
    from clusterctl_lab.settings import LabSettings

    settings = LabSettings(
        *(
            options.name,
            str(options.site.resolve()),
            options.hosts,
            options.rails,
            options.subnet,
            options.installed,
            options.short,
            options.faults,
            options.seed,
            options.vendors,
            options.metal,
        ),
        installer=options.installer or "",
        fabric=options.fabric,
        pods=options.pods,
    )
    _print(f"lab {options.name} changes on this machine, until `clusterctl lab down{_option(options.name)}`:")
    for line in changes(settings):
        _print(f"  {line}")
    if settings.virtual:
        check_machine(virtual=True)
        settings = replace(settings, os_image=_ready_image())
    start(settings, _print)
    site = click.format_filename(options.site)
    queue = ""
    for pod in settings.layout.pods:
        reach = " ".join(f"--reach {network}" for network in pod.networks)
        worker = f"clusterctl worker --site {site} --pool pod{pod.number} {reach}"
        _print(f"worker of pod {pod.number}: ip netns exec {LabNames(options.name).controller(pod.number)} {worker}")
        queue = " --queue auto"
    way = f"clusterctl bootstrap --site {site}{queue}"
    click.echo(f"lab {options.name} is up: {options.hosts} machines; next: {way}")


@lab.command()
@name_option
@click.option("--keep-site", is_flag=True, help="Keep the site directory.")
@click.option(
    "--site",
    type=click.Path(path_type=Path),
    help="Refuse to remove a lab of another site directory, such as one of another checkout.",
)
def down(name: str, keep_site: bool, site: Path | None) -> None:
    """Remove a lab, running or killed, and everything that it made. Site files that you changed are kept.

    Without --name and --site: the lab of this directory, of one below it, or of the one around it; no other is touched.
    """
    from clusterctl_lab.image import CACHE
    from clusterctl_lab.removal import down as remove

    if site is None:
        _require_near(name)
    removed = remove(name, keep_site=keep_site, site=site.resolve() if site else None)
    for found in removed.found:
        _print(f"removed {found}")
    for kept in removed.kept:
        _print(f"kept {kept} in the site directory: you changed or added it")
    click.echo(f"lab {name} is removed" if removed.found else f"there is no lab {name}")
    _print(f"images and packages stay in {CACHE} for the next lab; remove that folder to build them again")


@lab.command()
@name_option
@format_option()
def status(name: str, as_json: bool) -> None:
    """Show the machines: power, boot stage, faults."""
    answer = _ask(name, {"do": "status"})
    if as_json:
        print_document(answer)
        return
    _print_table(
        ["machine", "rack", "BMC", "address", "power", "boot", "installed", "faults"],
        [
            [
                *(row["name"], f"{row['rack']} U{row['unit']}", row["bmc"], row["address"]),
                *(row["power"], row["boot"], "yes" if row["installed"] else "no", ", ".join(row["faults"])),
            ]
            for row in answer["machines"]
        ],
    )
    click.echo(f"\nsubnet {answer['subnet']}, site {answer['site']}, log {answer['log']}")


@lab.command()
@format_option()
def check(*, as_json: bool) -> int:
    """Report what a lab needs and this machine lacks. Changes nothing; exit code 3 when something is broken."""
    from clusterctl.fleet.diagnosis import Health
    from clusterctl.fleet.errors import EnvironmentBrokenError
    from clusterctl_cli.render_diagnoses import show
    from clusterctl_lab.doctor import check_kernel, check_tools

    found = [check_tools(), check_kernel()]
    show(found, as_json=as_json)
    return EnvironmentBrokenError.exit_code if any(item.health is Health.BROKEN for item in found) else 0


def _complete_faults(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from clusterctl_lab.faults import FAULTS
    from clusterctl_lab.metal import METAL_FAULTS

    return [CompletionItem(name) for name in sorted({*FAULTS, *METAL_FAULTS}) if name.startswith(incomplete)]


@lab.command()
@name_option
@click.argument("fault", shell_complete=_complete_faults)
@click.argument("target", default="")
def inject(name: str, fault: str, target: str) -> None:
    """Break a machine of a running lab: a FAULT of `lab faults`, TARGET as NODE or NODE:PART.

    Without TARGET it is the first machine without a fault.
    """
    _require_near(name)
    answer = _ask(name, {"do": "inject", "fault": fault, "target": target})
    click.echo(f"{answer['machine']}: {answer['fault']}")


@lab.command()
@name_option
@click.argument("node", default="")
def heal(name: str, node: str) -> None:
    """Remove the faults of NODE, or of every machine."""
    _require_near(name)
    healed = _ask(name, {"do": "heal", "target": node})["healed"]
    click.echo(f"healed {', '.join(healed)}" if healed else "nothing to heal")


@lab.command()
@name_option
@click.argument("node")
@click.argument("state", type=click.Choice(["on", "off"]))
def power(name: str, node: str, state: str) -> None:
    """Switch a machine on or off without its BMC."""
    _require_near(name)
    answer = _ask(name, {"do": "power", "target": node, "on": state == "on"})
    click.echo(f"{answer['machine']}: power {answer['power']}")


@lab.command()
@format_option()
def faults(as_json: bool) -> None:
    """List the faults of machines and the quirks of BMCs and of MAAS that `lab inject` accepts.

    Inject a quirk with `lab inject bmc-quirks NODE:QUIRK,…` or `lab inject maas-quirks NODE:QUIRK,…`.
    """
    from clusterctl_lab.emulators.redfish.quirks import QUIRKS
    from clusterctl_lab.faults import FAULTS
    from clusterctl_lab.maas_quirk import MaasQuirk
    from clusterctl_lab.metal import METAL_FAULTS

    rows, metal = (
        [{"name": f.name, "target": f.target, "does": f.does, "shows": f.shows} for f in faults_.values()]
        for faults_ in (FAULTS, METAL_FAULTS)
    )
    quirks = [{"name": key.value, "does": quirk.does, "source": quirk.source} for key, quirk in QUIRKS.items()]
    maas = [{"name": quirk.value, "does": quirk.does, "source": quirk.source} for quirk in MaasQuirk]
    if as_json:
        print_document({"faults": rows, "metal_faults": metal, "quirks": quirks, "maas_quirks": maas})
        return
    for title, listed in (("fault", rows), ("with --metal qemu", metal)):
        cells = [[r["name"], r["target"], f"{r['does']} · {r['shows']}"] for r in listed]
        _print_table([title, "target", "effect · where it shows"], cells)
        click.echo()
    for title, listed in (("quirk of a BMC", quirks), ("quirk of MAAS", maas)):
        cells = [[row["name"], f"{row['does']} · {row['source']}"] for row in listed]
        _print_table([title, "effect · where it was observed"], cells)
        click.echo()


def _ready_image() -> str:
    """Return the OS image for virtual machines; building it takes minutes where the cache has none."""
    from clusterctl_lab.metal.os_image import ensure_os_image

    return ensure_os_image(_print).name


def _require_near(name: str) -> None:
    """Refuse to change the lab of another checkout, where the command line does not name the lab."""
    if click.get_current_context().get_parameter_source("name") is ParameterSource.DEFAULT:
        from clusterctl_lab.removal import recorded, require_near
        from clusterctl_lab.settings import LabPaths

        site = os.environ.get("CLUSTERCTL_SITE")
        require_near(recorded(LabPaths(name)), Path.cwd(), Path(site).resolve() if site else None)


def _ask(name: str, request: dict[str, Any]) -> dict[str, Any]:
    from clusterctl_lab.control import ask
    from clusterctl_lab.settings import LabPaths

    return dict(ask(LabPaths(name).control, name, request))


def _print_table(header: list[str], rows: list[list[str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for title in header[:-1]:
        table.add_column(title, no_wrap=True)
    table.add_column(header[-1], overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(highlight=False, width=None if sys.stdout.isatty() else PIPE_COLUMNS).print(table)


def _print(words: str) -> None:
    click.echo(words, err=True)


def _option(name: str) -> str:
    return "" if name == "lab" else f" --name {name}"
