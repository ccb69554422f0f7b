"""What an image is made of. Two builds of one recipe differ in nothing but the day's package versions."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError

RECIPE_VERSION = 2
"""Raise it when `rootfs`, `customise` or `initramfs` change what they make: caches are then built again."""

SUITES = {
    "bookworm": ("debian", "12"),
    "trixie": ("debian", "13"),
    "jammy": ("ubuntu", "22.04"),
    "noble": ("ubuntu", "24.04"),
}
"""Suite → distribution and version. trixie is built as bookworm is; no image of it has been booted yet."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")

_COMMON = (
    *("systemd", "systemd-sysv", "systemd-timesyncd", "dbus", "udev", "libpam-systemd", "libnss-systemd"),
    *("openssh-server", "sudo", "python3", "python3-apt", "gpgv", "ca-certificates"),
    *(
        "iproute2",
        "iputils-ping",
        "ethtool",
        "procps",
        "kmod",
        "less",
        "util-linux",
        "fdisk",
        "e2fsprogs",
        "dosfstools",
    ),
    *("initramfs-tools", "zstd", "nvme-cli", "pciutils", "dmidecode", "rdma-core"),
)
_OF = {
    "debian": ("linux-image-amd64", "systemd-boot", "systemd-resolved"),
    # Debian's essential packages bring apt, Ubuntu's do not. jammy's systemd brings systemd-boot and systemd-resolved.
    "jammy": ("linux-image-generic", "apt"),
    "noble": ("linux-image-generic", "apt", "systemd-boot", "systemd-resolved"),
}
_SMALL_OF = {"linux-image-generic": "linux-image-virtual"}

DEPLOYER_PACKAGES = (
    *("busybox-static", "kmod", "curl", "zstd", "tar", "coreutils", "util-linux", "fdisk", "e2fsprogs", "dosfstools"),
    "libc-bin",
)
_DEPLOYER_KERNEL = {"debian": "linux-image-amd64", "ubuntu": "linux-image-generic"}


@dataclass(frozen=True, slots=True)
class Recipe:
    """A root file system and the deployer of the same release.

    suite     `bookworm`, `noble` …
    mirror    where its packages come from; empty: the machine's own apt sources, which must be of this suite
    keyring   a file with the keys that sign a mirror; empty: the keys that the machine's apt trusts
    packages  more of them, in addition to the usual ones; firmware goes into the deployer too
    small     starts quickly in software emulation, and only on virtual machines
    """

    name: str
    suite: str
    mirror: str = ""
    keyring: str = ""
    packages: tuple[str, ...] = field(default=())
    small: bool = False

    def __post_init__(self) -> None:
        if self.suite not in SUITES:
            raise UsageError(
                f"there is no recipe for {self.suite!r}", where="suite", remedy=f"use one of {', '.join(SUITES)}"
            )
        if not _NAME.fullmatch(self.name):
            raise UsageError(
                f"{self.name!r} is no name for an image", where="NAME", remedy="use letters, digits, dots and hyphens"
            )
        for package in self.packages:
            if not _PACKAGE.fullmatch(package):
                raise UsageError(f"{package!r} is no package name", where="packages", remedy="separate names by commas")

    @property
    def distribution(self) -> str:
        return SUITES[self.suite][0]

    @property
    def os(self) -> str:
        return " ".join(SUITES[self.suite])

    @property
    def all_packages(self) -> tuple[str, ...]:
        own = _OF.get(self.suite) or _OF[self.distribution]
        if self.small:
            own = tuple(_SMALL_OF.get(package, package) for package in own)
        return (*_COMMON, *own, *self.packages)

    @property
    def deployer_packages(self) -> tuple[str, ...]:
        boot_loader = ("systemd",) if self.suite == "jammy" else ("systemd-boot-efi",)
        firmware = tuple(package for package in self.packages if "firmware" in package)
        return (*DEPLOYER_PACKAGES, _DEPLOYER_KERNEL[self.distribution], *boot_loader, *firmware)

    def digest(self) -> str:
        """Return the digest of everything that decides what the image contains, except its name."""
        return _digest("image", self.suite, self.mirror, str(self.small), *self.all_packages)

    def deployer_digest(self, scripts: bytes) -> str:
        """Return the digest of the deployer, for any release: `scripts` are its own programs and its drivers."""
        firmware = (package for package in self.deployer_packages if "firmware" in package)
        return _digest("deployer", hashlib.sha256(scripts).hexdigest(), *DEPLOYER_PACKAGES, *firmware)


def default_name(suite: str, *, small: bool) -> str:
    """Return the name: `debian-12` or `debian-12-small`."""
    if suite not in SUITES:
        raise UsageError(f"there is no recipe for {suite!r}", where="suite", remedy=f"use one of {', '.join(SUITES)}")
    return "-".join(SUITES[suite]) + ("-small" if small else "")


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join((str(RECIPE_VERSION), *parts)).encode()).hexdigest()[:16]
