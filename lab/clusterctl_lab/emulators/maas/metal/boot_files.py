"""What the machines are booted and installed with: the boot folder's current deployer and image, by its manifests."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError

HEAD = "#!ipxe\n"
TRIES = 10


def entry(base: str) -> str:
    """Return the first script of every machine: it requests the machine's own script by the card that booted."""
    return f"{HEAD}chain --autofree {base}/boot/${{netX/mac:hexhyp}}.ipxe ||\nexit 1\n"


def local_disk(why: str) -> str:
    """Return the script that continues with the next entry of the boot order. `why` is plain text without iPXE's
    special characters.
    """
    return f"{HEAD}echo MAAS: {why}\nexit 1\n"


def ephemeral(base: str, files: BootFiles, mac: str, token: str) -> str:
    """Return the script that starts the deployer, which requests its task with `token`."""
    arguments = (
        f"clusterctl.server={base} clusterctl.token={token} BOOTIF=01-{mac.replace(':', '-').lower()} ip=dhcp quiet "
        "mitigations=off console=ttyS0"
    )
    return (
        f"{HEAD}"
        "set tries:int32 0\n"
        ":load\n"
        "imgfree\n"
        f"kernel --name vmlinuz {base}/files/{files.kernel} initrd=initrd.img {arguments} || goto again\n"
        f"initrd --name initrd.img {base}/files/{files.initrd} || goto again\n"
        "boot || goto again\n"
        ":again\n"
        "inc tries\n"
        f"iseq ${{tries}} {TRIES} && exit 1 ||\n"
        "sleep 5\n"
        "goto load\n"
    )


LOADER = "snponly.efi"
"""iPXE: its `exit` returns to the firmware; that of Debian 12's `ipxe.efi` hangs in OVMF."""


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
    """Return the files that the folder's `current` links name now: a later build changes nothing for this lab. Raises
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
