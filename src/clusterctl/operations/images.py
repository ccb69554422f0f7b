"""OS images for the PXE installer: build one, list them, and remove outdated ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clusterctl.edges.os_images import BootFolder, Recipe, build, default_name, own_suite
from clusterctl.edges.os_images.store import Outdated, outdated, remove
from clusterctl.operations.operation import Control, Effect, Event, Outcome, Preview, Result


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRequest:
    """What an image is made of.

    boot_folder  where images are kept
    name         empty: named after the suite
    suite        Debian or Ubuntu release; empty: that of this machine
    mirror       where the packages come from; empty: this machine's apt sources
    keyring      a file with the keys that sign the mirror; empty: those that apt knows
    packages     more packages
    small        for virtual machines only
    if_missing   leave an image alone that was built of the same parts before
    """

    boot_folder: Path
    name: str = ""
    suite: str = ""
    mirror: str = ""
    keyring: str = ""
    packages: tuple[str, ...] = ()
    small: bool = False
    if_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredImage:
    """One image by its name; `manifest`: JSON values, with `path` below the files that are served."""

    name: str
    digest: str
    manifest: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageList:
    """The images by name. `deployer`: the manifest of the program that writes them; None where there is none."""

    images: tuple[StoredImage, ...]
    deployer: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneRequest:
    """`boot_folder`: where images are kept."""

    boot_folder: Path


def preview_build(request: BuildRequest) -> Preview:
    """Return what would be built, and of what."""
    recipe = _recipe(request)
    source = "the mirror that was named" if recipe.mirror else "this machine's apt sources"
    packages = f"{len(recipe.all_packages)} packages and their dependencies"
    text = f"image {recipe.name}: {recipe.os} from {source}, {packages}, to {request.boot_folder}"
    return Preview(operation="image build", question=f"Build {text}?", effects=(Effect(node="", text=text),))


def run_build(request: BuildRequest, control: Control) -> StoredImage:
    """Build the image and the deployer; the name stands for the new image from then on. Needs root."""
    recipe = _recipe(request)
    control.require(preview_build(request))
    store = BootFolder(request.boot_folder)
    made = build(store, recipe, lambda text: control.on_event(Event(text=text)), if_missing=request.if_missing)
    return _image(store, made.name)


def images(boot_folder: Path) -> ImageList:
    """Return the images and the deployer."""
    store = BootFolder(boot_folder)
    deployer = store.current_deployer()
    return ImageList(
        images=tuple(_image(store, manifest.name) for manifest in store.images()),
        deployer=deployer.model_dump(mode="json") if deployer else None,
    )


def preview_prune(request: PruneRequest) -> Preview:
    """Return the files that no name stands for any more."""
    return _prune_preview(request, outdated(BootFolder(request.boot_folder)))


def run_prune(request: PruneRequest, control: Control) -> Result:
    """Remove the files that no name stands for any more."""
    store = BootFolder(request.boot_folder)
    old = outdated(store)
    control.require(_prune_preview(request, old))
    remove(store, old)
    text = f"removed, {sum(each.size for each in old) / 1e6:.0f} MB"
    return Result(operation="image prune", outcomes=(Outcome(node="", text=text),) if old else ())


def _prune_preview(request: PruneRequest, old: tuple[Outdated, ...]) -> Preview:
    texts = (f"remove {each.path.relative_to(request.boot_folder)}  {each.size / 1e6:.0f} MB" for each in old)
    return Preview(
        operation="image prune",
        question="Remove them? No machine may be being installed",
        effects=tuple(Effect(node="", text=text) for text in texts),
    )


def _recipe(request: BuildRequest) -> Recipe:
    suite = request.suite or own_suite()
    name = request.name or default_name(suite, small=request.small)
    return Recipe(name, suite, request.mirror, request.keyring, request.packages, request.small)


def _image(store: BootFolder, name: str) -> StoredImage:
    manifest = store.current_image(name)
    if manifest is None:
        return StoredImage(name=name, digest="", manifest={})
    values = {**manifest.model_dump(mode="json"), "path": store.image(name).path_below_files}
    return StoredImage(name=name, digest=manifest.digest, manifest=values)
