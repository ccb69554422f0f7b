"""Where our PXE serves, what it installs, and how long it waits for a machine's word."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges.pxe.boot_certificate import BootCertificate
from clusterctl.fleet.finding import Origin


class Dhcp(enum.Enum):
    """RESERVE: we are the network's DHCP server, for our machines alone. PROXY: another one gives the addresses."""

    RESERVE = "reserve"
    PROXY = "proxy"


class Method(enum.Enum):
    """IMAGE: a prepared root file system is written. The others start a distribution's own installer."""

    IMAGE = "image"
    AUTOINSTALL = "autoinstall"
    PRESEED = "preseed"


@dataclass(frozen=True, slots=True)
class PxeSettings:
    """`interface` and its `address` are the controller's in the provisioning network.

    image        of the boot folder, for IMAGE; `kernel`, `initrd` and `iso` are paths below it for the others
    loader       the iPXE that UEFI machines get by TFTP
    announce     whether IPv6 router advertisements (of no router) are sent: old builds of iPXE wait 16 s for one
    gateway, nameservers   of the DHCP answers; empty: none
    time_servers, apt_mirror, apt_proxy, packages   for the installed hosts; empty: the image's or installer's own way
    tls          the service's certificate where machines boot over HTTPS; None: over TFTP and plain HTTP
    enroll       whether the authority is enrolled through BMCs
    silence_s    after so long without a message of a machine its attempt has failed
    """

    interface: str
    address: str
    boot_folder: Path
    port: int = 8080
    dhcp: Dhcp = Dhcp.RESERVE
    method: Method = Method.IMAGE
    image: str = ""
    kernel: str = ""
    initrd: str = ""
    iso: str = ""
    series: str = ""
    loader: str = "snponly.efi"
    announce: bool = False
    console: str = "ttyS0"
    gateway: str = ""
    nameservers: tuple[str, ...] = ()
    time_servers: tuple[str, ...] = ()
    apt_mirror: str = ""
    apt_proxy: str = ""
    packages: tuple[str, ...] = ()
    silence_s: float = 1800
    downloads_at_once: int = 16
    origin: Origin = Origin.REAL
    tls: BootCertificate | None = None
    enroll: bool = True

    @property
    def base(self) -> str:
        """The service's URL, without a slash at its end."""
        return f"{'http' if self.tls is None else 'https'}://{self.address}:{self.port}"
