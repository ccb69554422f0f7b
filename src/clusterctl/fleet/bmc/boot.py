"""From where a machine boots next."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError

_URI = re.compile(r"https?://(?P<authority>[!-.0-~]+)(/[!-~]*)?")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


class BootSource(enum.Enum):
    """PXE: the network, configured by DHCP. UEFI_HTTP: one image by URI. CD: virtual media too."""

    PXE = "pxe"
    UEFI_HTTP = "uefi-http"
    DISK = "disk"
    CD = "cd"


@dataclass(frozen=True, slots=True)
class BootOnce:
    """The next boot alone, in UEFI mode. `uri` for UEFI_HTTP only; empty leaves it to DHCP."""

    source: BootSource
    uri: str = ""

    def __post_init__(self) -> None:
        if not self.uri:
            return
        if self.source is not BootSource.UEFI_HTTP:
            raise UsageError(f"a boot from {self.source.value} takes no URI", where="--iso")
        check_uri(self.uri)

    def __str__(self) -> str:
        return f"{self.source.value} {self.uri}".rstrip()


def check_uri(uri: str) -> None:
    """Raise `UsageError` unless it is an http(s) URI of an image without a secret: BMCs show it to every client."""
    remedy = "give an image like https://images.example.net/installer.iso"
    parts = _URI.fullmatch(uri)
    if parts is None:
        raise UsageError("this is no http or https URI", where="--iso", remedy=remedy)
    if "@" in parts["authority"]:
        raise UsageError(
            "the URI holds a login", where="--iso", remedy="serve the image without one: BMCs show its URI"
        )
    if not _HOST.fullmatch(parts["authority"]):
        raise UsageError("the URI names no host", where="--iso", remedy=remedy)


class Post(enum.Enum):
    """UNKNOWN: this BMC does not report it."""

    RUNNING = "running"
    DONE = "done"
    UNKNOWN = "unknown"
