"""What machines boot from: root file system images, the deployer that writes them, and their folder."""

from clusterctl.edges.os_images.apt import own_suite
from clusterctl.edges.os_images.builder import DEFAULT_BOOT_FOLDER, build
from clusterctl.edges.os_images.recipe import Recipe, default_name
from clusterctl.edges.os_images.store import BootFolder, DeployerImage, OsImage

__all__ = [
    "DEFAULT_BOOT_FOLDER",
    "BootFolder",
    "DeployerImage",
    "OsImage",
    "Recipe",
    "build",
    "default_name",
    "own_suite",
]
