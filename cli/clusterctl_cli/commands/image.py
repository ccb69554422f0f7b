"""`clusterctl image build|list|prune`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import dry_run_option, gathered, yes_option
from clusterctl_cli.text import echo

boot_folder_option = click.option(
    "--boot-folder",
    "boot_folder",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("/var/lib/clusterctl/boot"),
    show_default=True,
    help="Where images are kept and served from (provisioning.boot_folder of site.yml).",
)


@click.group()
def image() -> None:
    """Build and list root file systems that the PXE installer writes to disks (docs/how-to/images.md)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """The options of `build`."""

    name: str | None
    suite: str | None
    mirror: str
    keyring: str
    packages: str
    small: bool
    if_missing: bool
    boot_folder: Path
    dry_run: bool
    as_json: bool


@image.command()
@click.argument("name", required=False)
@click.option("--suite", help="bookworm, jammy or noble; without it this machine's own release.")
@click.option("--mirror", default="", help="Where the packages come from; without it this machine's apt sources.")
@click.option("--keyring", default="", help="A file with the keys that sign the mirror, where apt does not know them.")
@click.option("--packages", default="", metavar="A,B,…", help="More packages; firmware goes into the deployer too.")
@click.option("--small", is_flag=True, help="For virtual machines only: starts quickly in software emulation.")
@click.option("--if-missing", is_flag=True, help="Leave alone what was built of the same parts before.")
@boot_folder_option
@dry_run_option
@format_option()
@gathered(BuildOptions)
def build(options: BuildOptions) -> int:
    """Build the image NAME (`debian-12`, or what you call it), and the deployer that writes it to disks. Needs root.

    The name stands for the new image from then on; machines that are being written keep the old one. Takes minutes.
    """
    from clusterctl.operations import images
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import print_event

    request = images.BuildRequest(
        boot_folder=options.boot_folder,
        name=options.name or "",
        suite=options.suite or "",
        mirror=options.mirror,
        keyring=options.keyring,
        packages=tuple(package.strip() for package in options.packages.split(",") if package.strip()),
        small=options.small,
        if_missing=options.if_missing,
    )
    preview = images.preview_build(request)
    for effect in preview.effects:
        echo(effect.text, err=True)
    if options.dry_run:
        return 0
    made = images.run_build(request, Control(preview.digest, print_event))
    if options.as_json:
        print_document({"image": made.manifest})
    else:
        echo(f"{made.name} is {made.digest[:12]} now: provisioning.image in site.yml may name it")
    return 0


@image.command("list")
@boot_folder_option
@format_option()
def list_images(*, boot_folder: Path, as_json: bool) -> int:
    """List the images, and the deployer that writes them."""
    from clusterctl.operations import images

    found = images.images(boot_folder)
    if as_json:
        print_document({"images": [image.manifest for image in found.images], "deployer": found.deployer})
        return 0
    for image in found.images:
        manifest = image.manifest
        kind = ", for virtual machines only" if manifest["small"] else ""
        built = datetime.fromisoformat(manifest["built"])
        echo(
            f"{image.name}  {manifest['os']}{kind}, kernel {manifest['kernel']}, {manifest['packages']} packages, "
            f"{manifest['size'] / 1e6:.0f} MB, built {built:%Y-%m-%d %H:%M} UTC, {image.digest[:12]}"
        )
    if not found.images:
        echo(f"there is no image in {boot_folder}: clusterctl image build makes one")
    if (deployer := found.deployer) is not None:
        size = f"{deployer['size'] / 1e6:.0f} MB"
        echo(f"deployer  kernel {deployer['kernel']}, {size}, {deployer['digest'][:12]}")
    return 0


@image.command()
@boot_folder_option
@yes_option
@dry_run_option
def prune(*, boot_folder: Path, yes: bool, dry_run: bool) -> int:
    """Remove images and deployers that no name stands for any more. Asks, since machines may still be reading one."""
    from clusterctl.operations import images
    from clusterctl.operations.operation import Control
    from clusterctl_cli.approval import Flags, approve, print_event
    from clusterctl_cli.output import print_result

    request = images.PruneRequest(boot_folder=boot_folder)
    preview = images.preview_prune(request)
    if not preview.effects:
        echo("there is nothing old")
    elif approve(preview, Flags(yes=yes, dry_run=dry_run)):
        print_result(images.run_prune(request, Control(preview.digest, print_event)), as_json=False)
    return 0
