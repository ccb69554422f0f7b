"""The apt repositories of virtual metal: what roles and tests install on machines that have a kernel of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from clusterctl_lab.emulators.apt import ensure_repository
from clusterctl_lab.emulators.apt.closure import HOST_PACKAGES, METAL_PACKAGES
from clusterctl_lab.emulators.apt.repository import CACHE, Contents
from clusterctl_lab.emulators.maas.metal.boot_files import BootFiles, read_boot_files
from clusterctl_lab.metal.site import BOOT_FOLDER
from clusterctl_lab.metal.zfs_modules import contrib_sources, ensure_zfs_modules
from clusterctl_lab.os_packages import package_status

MPI = ("openmpi-bin", "python3-mpi4py")
"""What starts the ranks of the stand-in of all_reduce_perf; hosts in namespaces have it in their image."""
SOFT_ROCE = ("ibverbs-providers", "perftest")
"""To be had, and installed by nobody but who wants to try RDMA in virtual machines."""

Progress = Callable[[str], None]


def metal_packages(image: str, progress: Progress, *, boot: Path = BOOT_FOLDER, cache: Path = CACHE) -> Path:
    """The repositories' folder for virtual machines installed with that image of the boot folder, built first where it
    is not kept (needs root). Raises `EnvironmentBrokenError`.
    """
    files = read_boot_files(boot, image)
    return _ensured(files, Contents((*HOST_PACKAGES, *MPI, *SOFT_ROCE)), progress, cache)


def metal_packages_with_zfs(image: str, progress: Progress, *, boot: Path = BOOT_FOLDER, cache: Path = CACHE) -> Path:
    """Likewise, with Docker and ZFS, whose modules are built for the image's kernel: minutes, once."""
    files = read_boot_files(boot, image)
    manifest = (files.folder / files.image).with_name("manifest.json")
    kernel = str(json.loads(manifest.read_bytes())["kernel"])
    modules = ensure_zfs_modules(kernel, progress, cache=cache)
    return _ensured(files, Contents((*HOST_PACKAGES, *METAL_PACKAGES), contrib_sources(), (modules,)), progress, cache)


def _ensured(files: BootFiles, contents: Contents, progress: Progress, cache: Path) -> Path:
    status = package_status(files.folder / files.image, files.sha256, cache=cache)
    return ensure_repository(status, progress, cache=cache, contents=contents)
