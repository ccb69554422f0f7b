"""One machine's install by the installer of its distribution: the values that its answers contain."""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.formats.host import netplan, networkd
from clusterctl.formats.host import network as resolv_conf

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_MAC = re.compile(r"([0-9a-f]{2}:){5}[0-9a-f]{2}")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.^=:~-]*")
_HOST = re.compile(r"[A-Za-z0-9.:-]+")
_CONSOLE = re.compile(r"[A-Za-z0-9,]+")
_FILE = re.compile(r"(/[A-Za-z0-9._-]+)+")
_PATH_BELOW_FILES = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*")


class ReleaseSeries(enum.Enum):
    """The releases that have answers."""

    JAMMY = "ubuntu 22.04"
    NOBLE = "ubuntu 24.04"
    BOOKWORM = "debian 12"


@dataclass(frozen=True, slots=True)
class AnswerJob:
    """`name` is the host's, of one label. `server` is the install service (`http://10.0.0.1:8080`), `attempt` the URL
    of this attempt on it (`http://10.0.0.1:8080/t/TOKEN`): numeric addresses, since some installers have no resolver.

    boot_mac       the port that boots, `aa:bb:cc:dd:ee:ff`; the only one that the installer uses
    user           logs in with `authorized_key` and may become root; no password is set
    time           now, UTC: Debian's installer compares its clock with it before it trusts a package
    iso            Ubuntu's live server below the service's `/files/`, of the same release as the kernel that is booted
    console        in addition to the screen, with its speed where that is not the firmware's: `ttyS1,115200n8`
    mirror         an apt mirror's URL, `http://mirror.example/ubuntu`; empty: the distribution's own
    proxy          an apt cache's URL; empty: none
    time_servers   NTP servers of the host; empty: those of the distribution
    files          path → text, written on the host at the end: its network. Empty: DHCP on the port that booted

    Raises `UsageError` where a value is not safe in a shell, a kernel's command line or a preseed line.
    """

    name: str
    server: str
    attempt: str
    boot_mac: str
    user: str
    authorized_key: str
    series: ReleaseSeries
    time: datetime
    iso: str = ""
    console: str = "ttyS0"
    mirror: str = ""
    proxy: str = ""
    time_servers: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._each("name", _LABEL, self.name)
        self._each("user", _USER, self.user)
        self._each("boot MAC", _MAC, self.boot_mac)
        self._each("packages", _PACKAGE, *self.packages)
        self._each("time servers", _HOST, *self.time_servers)
        self._each("files", _FILE, *self.files)
        self._each("path below /files/", _PATH_BELOW_FILES, *filter(None, [self.iso]))
        self._each("console", _CONSOLE, self.console)
        for what, url in (("install service", self.server), ("attempt", self.attempt)):
            self._check_url(what, url)
        for what, url in (("mirror", self.mirror), ("proxy", self.proxy)):
            if url:
                self._check_url(what, url)
        if not self.authorized_key or not self.authorized_key.isprintable() or "'" in self.authorized_key:
            raise self._wrong("authorized key", self.authorized_key[:40])
        if self.time.tzinfo is None:
            raise self._wrong("time", str(self.time))

    def _each(self, what: str, pattern: re.Pattern[str], *values: str) -> None:
        for value in values:
            if not pattern.fullmatch(value):
                raise self._wrong(what, value)

    def _check_url(self, what: str, url: str) -> None:
        parts = urlsplit(url)
        plain = re.fullmatch(r"[A-Za-z0-9._~:/%+-]+", url)
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise self._wrong(what, url)

    def _wrong(self, what: str, value: str) -> UsageError:
        return UsageError(
            f"an installer cannot take this {what}: {value!r}",
            where=self.name,
            remedy="correct it in site.yml, provisioning, or in the list of machines",
        )

    @property
    def epoch(self) -> int:
        """Return `time` in seconds since 1970."""
        return int(self.time.timestamp())

    @property
    def iso_url(self) -> str:
        """Return where the installer gets it: gigabytes are sent to a running attempt only."""
        return f"{self.attempt}/files/{self.iso}"


def network_files(network: HostNetwork, series: ReleaseSeries) -> Mapping[str, str]:
    """Return the network files for `AnswerJob.files`, text by path; none without network settings.

    Debian's installer installs neither netplan nor systemd-resolved: the host gets networkd's files, and name servers
    in resolv.conf.
    """
    if not network:
        return {}
    if series is not ReleaseSeries.BOOKWORM:
        return {netplan.FILE: netplan.netplan_file(network)} | networkd.udev_rules(network)
    text = resolv_conf.resolv_conf(network)
    return networkd.files(network) | ({resolv_conf.FILE: text} if text else {})
