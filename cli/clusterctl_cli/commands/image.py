"""`clusterctl image build|list|prune`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from clusterctl_cli.formats import format_option, print_document
from clusterctl_cli.options import dry_run_option, verbose_option, yes_option

if TYPE_CHECKING:
    from clusterctl.edges.os_images import BootFolder, Recipe

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
    """Root file systems that the PXE installer writes to disks (docs/how-to/images.md)."""


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
@verbose_option
def build(
    *,
    name: str | None,
    suite: str | None,
    mirror: str,
    keyring: str,
    packages: str,
    small: bool,
    if_missing: bool,
    boot_folder: Path,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Build the image NAME (`debian-12`, or what you call it), and the deployer that writes it to disks. Needs root.

    The name stands for the new image from then on; machines that are being written keep the old one. Takes minutes.
    """
    from clusterctl.edges.os_images import BootFolder, Recipe, default_name, own_suite
    from clusterctl.edges.os_images import build as build_both

    chosen = suite or own_suite()
    more = tuple(package.strip() for package in packages.split(",") if package.strip())
    recipe = Recipe(name or default_name(chosen, small=small), chosen, mirror, keyring, more, small)
    store = BootFolder(boot_folder)
    click.echo(_intent(recipe, boot_folder), err=True)
    if dry_run:
        return 0
    made = build_both(store, recipe, lambda words: click.echo(words, err=True), if_missing=if_missing)
    if as_json:
        print_document({"image": _row(store, made.name)})
    else:
        click.echo(f"{made.name} is {made.digest[:12]} now: provisioning.image in site.yml may name it")
    return 0


@image.command("list")
@boot_folder_option
@format_option()
def list_images(*, boot_folder: Path, as_json: bool) -> int:
    """Say which images there are, and which deployer writes them."""
    from clusterctl.edges.os_images import BootFolder

    store = BootFolder(boot_folder)
    names = [manifest.name for manifest in store.images()]
    deployer = store.current_deployer()
    if as_json:
        written = deployer.model_dump(mode="json") if deployer else None
        print_document({"images": [_row(store, name) for name in names], "deployer": written})
        return 0
    for manifest in store.images():
        kind = ", for virtual machines only" if manifest.small else ""
        click.echo(
            f"{manifest.name}  {manifest.os}{kind}, kernel {manifest.kernel}, {manifest.packages} packages, "
            f"{manifest.size / 1e6:.0f} MB, built {manifest.built:%Y-%m-%d %H:%M} UTC, {manifest.digest[:12]}"
        )
    if not names:
        click.echo(f"there is no image in {boot_folder}: clusterctl image build makes one")
    if deployer:
        click.echo(f"deployer  kernel {deployer.kernel}, {deployer.size / 1e6:.0f} MB, {deployer.digest[:12]}")
    return 0


@image.command()
@boot_folder_option
@yes_option
@dry_run_option
def prune(*, boot_folder: Path, yes: bool, dry_run: bool) -> int:
    """Remove images and deployers that no name stands for any more. Asks, since machines may still be reading one."""
    from clusterctl.edges.os_images import BootFolder
    from clusterctl.edges.os_images.store import outdated, remove

    store = BootFolder(boot_folder)
    old = outdated(store)
    for each in old:
        click.echo(f"{each.path.relative_to(boot_folder)}  {each.size / 1e6:.0f} MB")
    if not old:
        click.echo("there is nothing old")
    elif not dry_run and (yes or click.confirm("Remove them? No machine may be being installed", abort=True)):
        remove(store, old)
        click.echo(f"removed, {sum(each.size for each in old) / 1e6:.0f} MB")
    return 0


def _intent(recipe: Recipe, boot_folder: Path) -> str:
    source = "this machine's apt sources" if not recipe.mirror else "the mirror that was named"
    asked = f"{len(recipe.all_packages)} packages and what they need"
    return f"image {recipe.name}: {recipe.os} from {source}, {asked}, to {boot_folder}"


def _row(store: BootFolder, name: str) -> dict[str, object]:
    manifest = store.current_image(name)
    return {} if manifest is None else {**manifest.model_dump(mode="json"), "path": store.image(name).path_below_files}
