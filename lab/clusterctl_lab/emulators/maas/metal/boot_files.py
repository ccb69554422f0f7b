"""What the machines are booted and installed with: the boot folder's current deployer and image, by its manifests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError

LOADER = "snponly.efi"
"""iPXE: its `exit` leads back to the firmware; that of Debian 12's `ipxe.efi` hangs in OVMF."""


@dataclass(frozen=True, slots=True)
class BootFiles:
    """`kernel`, `initrd` and `image` are paths below `folder`; `sha256` and `size` (bytes) are the image's."""

    folder: Path
    kernel: str
    initrd: str
    image: str
    sha256: str
    size: int

    @property
    def tftp(self) -> Path:
        return self.folder / "tftp"


def read_boot_files(folder: Path, image: str) -> BootFiles:
    """Those that the folder's `current` links name at this moment: a later build changes nothing for this lab. Raises
    `EnvironmentBrokenError` where one of them is missing.
    """
    deployer, shelf = folder / "deployer", folder / "images" / image
    try:
        digest = _manifest(deployer)["digest"]
        built = _manifest(shelf)
        found = BootFiles(
            folder,
            kernel=f"deployer/{digest}/vmlinuz",
            initrd=f"deployer/{digest}/initrd",
            image=f"images/{image}/{built['digest']}/rootfs.tar.zst",
            sha256=str(built["digest"]),
            size=int(str(built["size"])),
        )
        needed = [folder / name for name in (found.kernel, found.initrd, found.image)] + [found.tftp / LOADER]
        missing = [path for path in needed if not path.is_file()]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise _unusable(str(error) or type(error).__name__, folder) from error
    if missing:
        raise _unusable(f"{missing[0]} is missing", folder)
    return found


def _manifest(shelf: Path) -> dict[str, object]:
    return dict(json.loads((shelf / "current" / "manifest.json").read_bytes()))


def _unusable(why: str, folder: Path) -> EnvironmentBrokenError:
    return EnvironmentBrokenError(
        f"what the machines boot is not there: {why}",
        where=str(folder),
        remedy="start the lab by `clusterctl lab up`, which builds it",
    )
