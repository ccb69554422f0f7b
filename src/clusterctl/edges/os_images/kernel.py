"""Which kernel a root file system boots."""

from __future__ import annotations

from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.natural_order import natural_key

_PREFIX = "vmlinuz-"


def newest_kernel(root: Path) -> str:
    """The release of the newest kernel in `root`'s /boot: `6.1.0-10-amd64` is newer than `6.1.0-9-amd64`."""
    found = sorted((path.name for path in root.glob(f"boot/{_PREFIX}*")), key=natural_key)
    if not found:
        raise EnvironmentBrokenError(
            "there is no kernel in it", where=str(root / "boot"), remedy="Report this: its packages brought none."
        )
    return found[-1].removeprefix(_PREFIX)
