"""The apt repositories of virtual metal: what roles and tests install on machines that have a kernel of their own."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from clusterctl_lab.emulators.apt import ensure_repository
from clusterctl_lab.emulators.apt.closure import HOST_PACKAGES, METAL_PACKAGES
from clusterctl_lab.emulators.apt.repository import Contents, for_hosts
from clusterctl_lab.emulators.apt.tools import run
from clusterctl_lab.emulators.maas.metal.boot_files import BootFiles, read_boot_files
from clusterctl_lab.image import CACHE, host_release
from clusterctl_lab.metal.site import BOOT_FOLDER
from clusterctl_lab.metal.zfs_modules import contrib_sources, ensure_zfs_modules

STATUS = "var/lib/dpkg/status"


def package_status(image: Path, digest: str, *, cache: Path = CACHE) -> Path:
    """A folder with the package status of the packed root file system `image`, and nothing else of it; kept for the
    image's digest. Raises `EnvironmentBrokenError` where the image cannot be read.
    """
    found = cache / f"status-{digest[:12]}"
    if found.is_dir():
        return found
    cache.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".unfinished-status-") as scratch:
        draft = Path(scratch) / "root"
        draft.mkdir(mode=0o755)
        run("tar", "--extract", "--file", str(image), "--zstd", "--directory", str(draft), f"./{STATUS}")
        try:
            draft.rename(found)
        except OSError:
            if not found.is_dir():  # else another lab that starts now was first
                raise
    return found


MPI = ("openmpi-bin", "python3-mpi4py")
"""What starts the ranks of the stand-in of all_reduce_perf; hosts in namespaces have it in their image."""
SOFT_ROCE = ("ibverbs-providers", "perftest")
"""Available, and installed only by an operator who wants to try RDMA in virtual machines."""

Progress = Callable[[str], None]


def metal_packages(image: str, progress: Progress, *, boot: Path = BOOT_FOLDER, cache: Path = CACHE) -> Path:
    """The repositories' folder for virtual machines installed with that image of the boot folder, built first where it
    is not kept (needs root). Raises `EnvironmentBrokenError`.
    """
    files = read_boot_files(boot, image)
    contents = replace(for_hosts(), packages=(*HOST_PACKAGES, *MPI, *SOFT_ROCE))
    return _ensured(files, contents, progress, cache)


def metal_packages_with_zfs(image: str, progress: Progress, *, boot: Path = BOOT_FOLDER, cache: Path = CACHE) -> Path:
    """Likewise, with Docker and ZFS. Ubuntu's kernel packages hold its modules; Debian's are built for the image's
    kernel: minutes, once.
    """
    files = read_boot_files(boot, image)
    packages = (*HOST_PACKAGES, *METAL_PACKAGES)
    if host_release().distribution == "ubuntu":
        return _ensured(files, replace(for_hosts(), packages=packages), progress, cache)
    manifest = (files.folder / files.image).with_name("manifest.json")
    kernel = str(json.loads(manifest.read_bytes())["kernel"])
    modules = ensure_zfs_modules(kernel, progress, cache=cache)
    return _ensured(files, Contents(packages, contrib_sources(), (modules,)), progress, cache)


def _ensured(files: BootFiles, contents: Contents, progress: Progress, cache: Path) -> Path:
    status = package_status(files.folder / files.image, files.sha256, cache=cache)
    return ensure_repository(status, progress, cache=cache, contents=contents)
