"""What every lab host has in its root besides the image: stand-in tools, its machine's facts, the lab's packages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from clusterctl_lab.emulators.apt import host_files
from clusterctl_lab.emulators.host_tools import lower_files, machine_files
from clusterctl_lab.hosts import Skeleton
from clusterctl_lab.machine import Machine


def write_lower(folder: Path) -> Path:
    """Lay the stand-in tools out in `folder`, to be an overlay's lower layer; returns it."""
    folder.mkdir(mode=0o755)
    for path, (content, mode) in lower_files().items():
        target = folder / path.lstrip("/")
        target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        target.write_bytes(content)
        target.chmod(mode)
    return folder


def skeleton(packages: Path, address: str) -> Callable[[Machine], Skeleton]:
    """Renders a machine's own files; `packages` are the repositories that the lab serves on `address`."""
    apt = host_files(packages, address)

    def of(machine: Machine) -> Skeleton:
        return {**apt, **machine_files(machine)}

    return of
