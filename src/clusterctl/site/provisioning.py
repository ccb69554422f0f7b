"""`provisioning` of a site: what installs the OS: MAAS, the own PXE service, or nothing (`existing`)."""

from __future__ import annotations

import fnmatch
import ipaddress
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from clusterctl.site.fields import (
    FileName,
    Fingerprint,
    Flag,
    Positive,
    Secret,
    Series,
    TcpPort,
    Words,
    code_name,
    first_duplicate,
    section,
    shaped,
)
from clusterctl.site.urls import web_url

MaasTag = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,256}$", description="a tag name that MAAS accepts")]


def _unique_tags(names: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(names)) < len(names):
        raise ValueError("names a tag twice")
    return names


MaasTags = Annotated[tuple[MaasTag, ...], AfterValidator(_unique_tags)]


@section
class MaasDeadlines:
    """Seconds that a machine may stay in one state of MAAS; after that the operation is aborted. `deadlines.install`
    limits the whole installation.
    """

    commissioning: Positive = 2700
    testing: Positive = 2700
    deploying: Positive = 3600
    releasing: Positive = 900
    erasing: Positive = 86400


BOOT_FOLDER = "/var/lib/clusterctl/boot"


def _ipv4(value: str) -> str:
    try:
        found = ipaddress.IPv4Address(value)
    except ValueError:
        raise ValueError("must be an IPv4 address, like 10.20.0.2") from None
    if found.is_unspecified or found.is_multicast:
        raise ValueError("must be the address of one machine, like 10.20.0.2")
    return str(found)


Ipv4 = Annotated[str, AfterValidator(_ipv4)]
Interface = Annotated[
    str, AfterValidator(shaped(r"[A-Za-z0-9_.-]{1,15}", "an interface of this controller, like eno2"))
]
Folder = Annotated[str, AfterValidator(shaped(r"/[^\0,\n]*", "a folder by its whole path, like " + BOOT_FOLDER))]
BelowBoot = Annotated[
    str, AfterValidator(shaped(r"[\w.+-]+(/[\w.+-]+)*", "a path below boot_folder: letters, digits, - _ . + and /"))
]
Host = Annotated[str, AfterValidator(shaped(r"[A-Za-z0-9.:-]{1,253}", "a host's name or address"))]
Proxy = Annotated[str, AfterValidator(shaped(r"http://[A-Za-z0-9.:\[\]-]+/?", "like http://10.20.0.2:3142"))]
Mirror = Annotated[str, AfterValidator(shaped(r"http://[A-Za-z0-9._~:/%+\[\]-]+", "like http://mirror.example/ubuntu"))]
Package = Annotated[str, AfterValidator(shaped(r"[a-z0-9][a-z0-9+.-]+", "the name of a Debian package"))]
Console = Annotated[str, AfterValidator(shaped(r"tty[A-Za-z0-9]{1,8}(,\w{1,12})?", "a console of Linux, like ttyS1"))]


@section
class _Backend:
    """`nodes`: names or patterns of the machines that this backend installs; empty: all others."""

    nodes: tuple[Words, ...] = ()

    def serves(self, node: str) -> bool:
        """Return whether the backend installs this node."""
        return not self.nodes or any(fnmatch.fnmatchcase(node, pattern) for pattern in self.nodes)


@section
class MaasProvisioning(_Backend):
    """MAAS, and what it deploys."""

    backend: Literal["maas"]
    url: Annotated[str, AfterValidator(web_url)]
    api_key: Secret
    ca_file: str = ""
    tls_fingerprint: Fingerprint = ""
    series: Series
    pool: str = ""
    move_from_pools: Annotated[
        tuple[Words, ...], Field(description="pools of MAAS from which machines may be moved into pool")
    ] = ()
    zone: str = ""
    tags: MaasTags = ()
    deadlines: MaasDeadlines = MaasDeadlines()
    requests_at_once: Annotated[
        Positive, Field(description="requests that change something in MAAS, over all runs and controllers")
    ] = 32
    allow_plain_http: Flag = False

    def __post_init__(self) -> None:
        if self.move_from_pools and not self.pool:
            raise ValueError("move_from_pools needs pool: the one that machines are moved into")
        if self.ca_file and self.tls_fingerprint:
            raise ValueError("give ca_file or tls_fingerprint, not both")
        if self.url.startswith("http://") and not self.allow_plain_http:
            raise ValueError("plain http shows the API key to the whole network: use https, or allow_plain_http: true")


@section
class HttpsBoot:
    """Machines boot one file over HTTPS, by UEFI firmware that trusts `ca`; nothing is served over plain HTTP."""

    certificate: Annotated[str, Field(description="PEM file: the installer service's certificate, then its chain")]
    private_key: Annotated[str, Field(description="PEM file, mode 0600, of the certificate's RSA key")]
    ca: Annotated[str, Field(description="PEM file: the authority that firmware is to trust")]
    enroll: Annotated[
        Literal["bmc", "by-hand"],
        Field(description="bmc: clusterctl enrolls ca through the BMC; by-hand: it is in each machine's firmware"),
    ] = "bmc"


@section
class PxeProvisioning(_Backend):
    """The own PXE service. `interface` and `address` are those of the controller in the provisioning network."""

    backend: Literal["pxe"]
    interface: Interface
    address: Ipv4
    port: TcpPort = 8080
    boot_folder: Folder = BOOT_FOLDER
    dhcp: Literal["reserve", "proxy"] = "reserve"
    method: Literal["image", "autoinstall", "preseed"] = "image"
    image: FileName | None = None
    kernel: BelowBoot | None = None
    initrd: BelowBoot | None = None
    iso: BelowBoot | None = None
    series: Annotated[Literal["jammy", "noble", "bookworm"] | None, BeforeValidator(code_name)] = None
    loader: Literal["snponly.efi", "ipxe.efi"] = "snponly.efi"
    router_advertisements: Flag = False
    console: Console = "ttyS0"
    gateway: Ipv4 | None = None
    nameservers: tuple[Ipv4, ...] = ()
    time_servers: tuple[Host, ...] = ()
    apt_mirror: Mirror | None = None
    apt_proxy: Proxy | None = None
    packages: tuple[Package, ...] = ()
    silence_minutes: Annotated[float, Field(ge=0.5, le=600)] = 30
    downloads_at_once: Positive = 16
    https: HttpsBoot | None = None

    def __post_init__(self) -> None:
        if self.https is not None and self.method != "image":
            raise ValueError(f"https boots the deployer alone: method must be image, not {self.method}")
        needed, releases = _NEEDED[self.method]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise ValueError(f"method {self.method} needs {' and '.join(missing)}")
        if releases and self.series not in releases:
            raise ValueError(f"method {self.method} installs {' or '.join(releases)}, not {self.series}")


@section
class ExistingProvisioning(_Backend):
    """Machines that are installed already: clusterctl takes them in by `adopt` and never installs them."""

    backend: Literal["existing"]


_NEEDED: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "image": (("image",), ()),
    "autoinstall": (("kernel", "initrd", "iso", "series"), ("jammy", "noble")),
    "preseed": (("kernel", "initrd", "series"), ("bookworm",)),
}
"""By method: the required fields, and the releases that it can install; empty: any."""

Provisioning = Annotated[MaasProvisioning | PxeProvisioning | ExistingProvisioning, Field(discriminator="backend")]


def _one_or_several(value: Any) -> Any:
    return value if isinstance(value, (list, tuple)) else [value]


def _distinct(value: Sequence[MaasProvisioning | PxeProvisioning | ExistingProvisioning]) -> Any:
    twice = first_duplicate([item.backend for item in value])
    if twice is not None:
        raise ValueError(f"{twice} stands twice: give each backend once")
    if any(not item.nodes for item in value[:-1]):
        raise ValueError("all but the last must name by nodes the machines that they install")
    return value


Installers = Annotated[
    tuple[Provisioning, ...],
    BeforeValidator(_one_or_several),
    AfterValidator(_distinct),
    Field(min_length=1),
]
"""One backend, or a list; the first backend that serves a machine installs it."""
