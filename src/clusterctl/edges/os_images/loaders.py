"""The network boot loaders that the firmware fetches by TFTP: iPXE, as Debian's package `ipxe` builds it."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.disk import write_whole
from clusterctl.fleet.errors import EnvironmentBrokenError

_PACKAGED = Path("/usr/lib/ipxe")
LOADERS = ("ipxe.efi", "snponly.efi", "undionly.kpxe")


def place_loaders(tftp: Path, packaged: Path = _PACKAGED) -> None:
    """Copy them into the boot folder. Raises `EnvironmentBrokenError` where the package is not installed."""
    missing = [name for name in LOADERS if not (packaged / name).is_file()]
    if missing:
        raise EnvironmentBrokenError(
            f"the network boot loaders are missing: {', '.join(missing)}",
            where=str(packaged),
            remedy="Install them: apt-get install ipxe.",
        )
    tftp.mkdir(mode=0o755, parents=True, exist_ok=True)
    for name in LOADERS:
        write_whole(tftp / name, (packaged / name).read_bytes(), mode=0o644, over=True)
