"""Builds a root file system image: bootstrapped, customised, packed."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from pathlib import Path

from clusterctl.edges.os_images.apt import bare, sources
from clusterctl.edges.os_images.bootstrap import Variant, bootstrap
from clusterctl.edges.os_images.customise import OF_NO_USE_IN_EMULATION, customise, write_seed
from clusterctl.edges.os_images.recipe import Recipe
from clusterctl.edges.os_images.store import ROOTFS, ImageManifest
from clusterctl.edges.processes import Surroundings, run
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.ports import Deadline

_PREFIX = "vmlinuz-"


def newest_kernel(root: Path) -> str:
    """Return the release of the newest kernel in `root`'s /boot: `6.1.0-10-amd64` is newer than `6.1.0-9-amd64`."""
    found = sorted((path.name for path in root.glob(f"boot/{_PREFIX}*")), key=natural_key)
    if not found:
        raise EnvironmentBrokenError(
            "there is no kernel in it", where=str(root / "boot"), remedy="Report this: its packages brought none."
        )
    return found[-1].removeprefix(_PREFIX)


PACK_SECONDS = 1800
_BLOCK = 1 << 20


def build_rootfs(recipe: Recipe, workplace: Path) -> tuple[Path, ImageManifest]:
    """Return the folder that holds the packed image, and its manifest. Works in `workplace` alone; needs root."""
    seed, root, finished = (workplace / name for name in ("seed", "root", "finished"))
    write_seed(seed, small=recipe.small)
    left_out = OF_NO_USE_IN_EMULATION if recipe.small else ()
    bootstrap(recipe, recipe.all_packages, Variant.INSTALLED, root, seed=seed, left_out=left_out)
    customise(root, [bare(line) for line in sources(recipe)], small=recipe.small)
    finished.mkdir()
    packed = finished / ROOTFS
    _pack(root, packed, small=recipe.small)
    return finished, ImageManifest(
        name=recipe.name,
        digest=_digest(packed),
        size=packed.stat().st_size,
        os=recipe.os,
        kernel=newest_kernel(root),
        built=datetime.now(UTC).replace(microsecond=0),
        packages=_count_packages(root),
        small=recipe.small,
        recipe=recipe.digest(),
    )


def _pack(root: Path, packed: Path, *, small: bool) -> None:
    """Pack in the order of names, owners by number, with capabilities."""
    level = "-3" if small else "-9"
    tar = ["tar", "--create", "--directory", str(root), "--sort=name", "--numeric-owner", "--one-file-system"]
    options = ["--xattrs", "--xattrs-include=*", "--format=pax", "--pax-option=delete=atime,delete=ctime"]
    argv = [*tar, *options, "--use-compress-program", f"zstd -T0 {level} --quiet", "--file", str(packed), "."]
    result = run(argv, Deadline.after(PACK_SECONDS), Surroundings(missing="apt-get install tar zstd"))
    if result.exit_status != 0:
        raise EnvironmentBrokenError(
            f"the image could not be packed: {result.stderr.strip()[-300:]}",
            where=str(packed.parent),
            remedy="Make room on that disk, then try again.",
        )


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _count_packages(root: Path) -> int:
    status = (root / "var/lib/dpkg/status").read_text(encoding="utf-8", errors="replace")
    return status.count("\nStatus: install ok installed\n")
