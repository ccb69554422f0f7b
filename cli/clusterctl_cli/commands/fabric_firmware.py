"""`clusterctl fabric firmware`: what runs on switches and transceivers, and waves for an update."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import DOCUMENTS, format_option
from clusterctl_cli.options import site_option
from clusterctl_cli.text import echo

if TYPE_CHECKING:
    from clusterctl.operations.fabric_firmware import FirmwareResult, ModelFirmware


@click.command()
@click.argument("switches", metavar="[SWITCH...]", nargs=-1)
@click.option("--to", metavar="VERSION", default="", help="Plan waves of the switches that do not run this version.")
@click.option("--at-once", type=click.IntRange(min=1), default=4, show_default=True, help="Switches of a wave at most.")
@click.option("--deadline", type=click.FloatRange(min=1), default=300.0, show_default=True, help="Seconds to wait.")
@format_option(*DOCUMENTS)
@site_option
def firmware(*, switches: tuple[str, ...], to: str, at_once: int, deadline: float, as_json: bool, folder: Path) -> int:
    """List the firmware of switches and transceivers, with a warning where a model is half updated.

    With --to it plans the waves in which switches can go out of service: one switch first, then few at once; no host
    with jobs loses a rail, no host two, each switch keeps half of its links to others, and the master subnet manager
    stays. SWITCH names which switches are updated. Nothing is changed: update wave by wave, each once the one before is
    back and `cable health` is well.

    Exit code 0: each model runs one version, and all switches can be updated; 1: one does not, or one cannot.
    """
    from clusterctl.operations.fabric_alarms import site_systems
    from clusterctl.operations.fabric_firmware import FirmwareRequest, run
    from clusterctl.operations.operation import Control
    from clusterctl.operations.serial import to_data
    from clusterctl_cli.context import open_context
    from clusterctl_cli.formats import print_document

    context = open_context(folder)
    request = FirmwareRequest(to=to, switches=switches, at_once=at_once, deadline_s=deadline)
    result = run(context, request, Control(), site_systems(context))
    if as_json:
        print_document({"firmware": to_data(result)})
    else:
        _print(result, to)
    return result.exit_code


def _print(result: FirmwareResult, to: str) -> None:
    for one in result.switches:
        echo(f"{one.model}: {_versions(one)} (by {result.source})")
    for one in result.software:
        echo(f"software of {one.model}: {_versions(one)} (by UFM)")
    for one in result.transceivers:
        echo(f"transceivers {one.model}: {_versions(one)}")
    for one in (*result.switches, *result.software, *result.transceivers):
        _warn(one)
    if not to:
        return
    for number, wave in enumerate(result.waves):
        echo(f"{'canary' if number == 0 else f'wave {number}'}: {', '.join(wave)}")
    for name, reason in result.refusals.items():
        echo(f"not now: {name}: {reason}")
    if not result.waves and not result.refusals:
        echo(f"no switch is left to be updated to {to}")


def _versions(one: ModelFirmware) -> str:
    return ", ".join(f"{version} on {count}" for version, count in one.versions.items()) or "no version is known"


def _warn(one: ModelFirmware) -> None:
    from clusterctl.cabling.labels import shortened

    if one.is_half_updated:
        echo(f"half updated: {one.model}: {len(one.versions)} versions; other than most: {shortened(one.odd)}")
    if one.unknown:
        echo(f"unknown: {one.model}: no version of {shortened(one.unknown)}")
