"""Which packages an OS image has, read out of it: what virtual machines still need follows from that."""

from __future__ import annotations

import tempfile
from pathlib import Path

from clusterctl_lab.emulators.apt.tools import run
from clusterctl_lab.image import CACHE

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
