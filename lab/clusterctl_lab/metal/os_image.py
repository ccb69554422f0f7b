"""The image that virtual metal is installed with: small, of the release that the lab's hosts run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clusterctl.edges.os_images import BootFolder, OsImage, Recipe, build, default_name
from clusterctl_lab.image import host_release
from clusterctl_lab.metal.site import BOOT_FOLDER

Progress = Callable[[str], None]


def os_image_name() -> str:
    """Return its name in the boot folder, whether it is built or not: `ubuntu-24.04-small`."""
    return default_name(host_release().codename, small=True)


def ensure_os_image(progress: Progress, *, boot: Path = BOOT_FOLDER) -> OsImage:
    """Return the image, built first where the boot folder lacks it or has one of another recipe (needs root; minutes).

    Raises `UsageError` for a release without a recipe, `EnvironmentBrokenError` where a tool or the archive is missing.
    """
    release = host_release()
    recipe = Recipe(os_image_name(), release.codename, release.mirror, release.keyring, small=True)
    return build(BootFolder(boot), recipe, progress, if_missing=True)
