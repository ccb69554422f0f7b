"""The apt repository of virtual metal: what roles install on machines that have a kernel of their own."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.lab.faces.apt.closure import HOST_PACKAGES, METAL_PACKAGES
from clusterctl.lab.faces.apt.repository import CACHE, Contents, ensure_repository
from clusterctl.lab.metal.site import BOOT_FOLDER
from clusterctl.lab.metal.zfs_modules import contrib_sources, ensure_zfs_modules

STATUS = "var/lib/dpkg/status"

Progress = Callable[[str], None]


def ensure_metal_repository(
    os_image: str, progress: Progress, *, boot: Path = BOOT_FOLDER, cache: Path = CACHE
) -> Path:
    """The repositories' folder for machines installed with the image `os_image`, built first where it is not kept
    (needs root; minutes, for ZFS). Raises `EnvironmentBrokenError`.
    """
    folder = boot / "images" / os_image / "current"
    kernel = str(json.loads((folder / "manifest.json").read_text())["kernel"])
    modules = ensure_zfs_modules(kernel, progress, cache=cache)
    contents = Contents((*HOST_PACKAGES, *METAL_PACKAGES), contrib_sources(), (modules,))
    with tempfile.TemporaryDirectory() as scratch:
        _unpack_status(folder / "rootfs.tar.zst", Path(scratch))
        return ensure_repository(Path(scratch), progress, cache=cache, contents=contents)


def _unpack_status(archive: Path, into: Path) -> None:
    """The image's package database, and nothing else of it."""
    argv = ("tar", "--extract", "--zstd", f"--file={archive}", f"--directory={into}", "--no-same-owner", f"./{STATUS}")
    result = subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False)
    if result.returncode != 0 or not (into / STATUS).is_file():
        raise EnvironmentBrokenError(
            f"the image's package database cannot be read: {result.stderr.strip()[-200:]}",
            where=str(archive),
            remedy="Build the image anew: clusterctl image build.",
        )
