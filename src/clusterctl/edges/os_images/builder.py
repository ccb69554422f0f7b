"""Builds what the boot folder lacks."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.os_images.bootstrap import require_tools
from clusterctl.edges.os_images.initramfs import build_deployer, own_content
from clusterctl.edges.os_images.recipe import Recipe
from clusterctl.edges.os_images.rootfs import build_rootfs
from clusterctl.edges.os_images.store import BootFolder, OsImage, make_open
from clusterctl.fleet.errors import EnvironmentBrokenError

_PACKAGED = Path("/usr/lib/ipxe")
LOADERS = ("ipxe.efi", "snponly.efi", "undionly.kpxe")


def place_loaders(tftp: Path, packaged: Path = _PACKAGED) -> None:
    """Copy them into the boot folder. Raises `EnvironmentBrokenError` where the package is not installed."""
    missing = [name for name in LOADERS if not (packaged / name).is_file()]
    if missing:
        raise EnvironmentBrokenError(
            f"the network boot loaders are missing: {', '.join(missing)}",
            where=str(packaged),
            remedy="Install them: apt-get install ipxe.",
        )
    make_open(tftp)
    for name in LOADERS:
        write_whole(tftp / name, (packaged / name).read_bytes(), mode=0o644, over=True)
        (tftp / name).chmod(0o644)


DEFAULT_BOOT_FOLDER = Path("/var/lib/clusterctl/boot")

Progress = Callable[[str], None]


def build(store: BootFolder, recipe: Recipe, progress: Progress, *, if_missing: bool = False) -> OsImage:
    """Build image and deployer again, with today's packages; with `if_missing` only what is missing (needs root)."""
    if if_missing and (ready := _ready(store, recipe)):
        return ready
    require_tools()
    with store.writing():
        if not (if_missing and _image_is_current(store, recipe)):
            _build_image(store, recipe, progress)
        if not (if_missing and _deployer_is_current(store, recipe)):
            _build_deployer(store, recipe, progress)
        with disk_explained("the boot loaders cannot be written", store.tftp):
            place_loaders(store.tftp)
    return store.image(recipe.name)


def _ready(store: BootFolder, recipe: Recipe) -> OsImage | None:
    whole = _image_is_current(store, recipe) and _deployer_is_current(store, recipe) and store.tftp.is_dir()
    return store.image(recipe.name) if whole else None


def _image_is_current(store: BootFolder, recipe: Recipe) -> bool:
    found = store.current_image(recipe.name)
    return found is not None and found.recipe == recipe.digest()


def _deployer_is_current(store: BootFolder, recipe: Recipe) -> bool:
    """Return whether the deployer is current, for any release: any deployer writes any image."""
    found = store.current_deployer()
    return found is not None and found.recipe == recipe.deployer_digest(own_content())


def _build_image(store: BootFolder, recipe: Recipe, progress: Progress) -> None:
    progress(f"building the image {recipe.name} ({recipe.os}{', small' if recipe.small else ''}): some minutes")
    started = time.monotonic()
    place = store.workplace("image")
    with disk_explained("the image cannot be built", store.path):
        finished, manifest = build_rootfs(recipe, place)
        store.publish_image(finished, manifest)
        shutil.rmtree(place)
    progress(
        f"image {recipe.name} ready: {manifest.size / 1e6:.0f} MB, {manifest.packages} packages, kernel "
        f"{manifest.kernel}, in {time.monotonic() - started:.0f} s"
    )


def _build_deployer(store: BootFolder, recipe: Recipe, progress: Progress) -> None:
    progress(f"building the deployer ({recipe.os}): half a minute")
    started = time.monotonic()
    place = store.workplace("deployer")
    with disk_explained("the deployer cannot be built", store.path):
        finished, manifest = build_deployer(recipe, place)
        store.publish_deployer(finished, manifest)
        shutil.rmtree(place)
    progress(
        f"deployer ready: {manifest.size / 1e6:.0f} MB, {manifest.modules} modules, kernel {manifest.kernel}, "
        f"in {time.monotonic() - started:.0f} s"
    )
