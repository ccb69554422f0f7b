"""Where MAAS is, with which key, and how machines shall be enrolled and installed."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from clusterctl.edges.tls import Trust
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Origin
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.maas.machines import MachineStatus


@dataclass(frozen=True, slots=True)
class StateLimits:
    """Seconds that a machine may be in a state. MAAS's own limits (`node_timeout`, 30 minutes by default; 5 for
    releasing) end most states before. What outlives these is stuck: MAAS has lost the job, or its limit was raised for
    machines with a long POST.
    """

    commissioning: float = 2700
    testing: float = 2700
    deploying: float = 3600
    releasing: float = 900
    erasing: float = 86400

    def of(self, status: MachineStatus) -> tuple[str, float] | None:
        """Return the limit's name in the site file, and the limit; None for a state that rests."""
        name = NAMES.get(status)
        return None if name is None else (name, getattr(self, name))


WRITE_SECONDS = 960.0
"""A little more than MAAS's nginx waits for the region (regiond.nginx.conf.template: 900 s)."""
NAMES = {
    MachineStatus.COMMISSIONING: "commissioning",
    MachineStatus.TESTING: "testing",
    MachineStatus.DEPLOYING: "deploying",
    MachineStatus.RELEASING: "releasing",
    MachineStatus.EXITING_RESCUE_MODE: "releasing",
    MachineStatus.DISK_ERASING: "erasing",
}


@dataclass(frozen=True, slots=True)
class MaasSettings(NeverPickled):
    """Where MAAS is, and how it shall install.

    url              with or without its `/MAAS`
    api_key          `consumer:token:secret`, a secret
    tls_fingerprint  SHA-256 of the certificate by which MAAS proves itself; empty: one that `ca_file` signed, or the
                     system's own authorities
    move_from_pools  pools out of which machines may be moved into `pool`, in addition to MAAS's own pool `default`
    tags             made where MAAS lacks them
    power_node_id    the Redfish System that MAAS powers; empty: the first one
    write_seconds    for the answer to one write

    Raises `UsageError` where the URL is not https or the key not of three parts.
    """

    url: str
    api_key: str = field(repr=False)
    series: str
    ca_file: str = ""
    tls_fingerprint: str = ""
    pool: str = ""
    move_from_pools: tuple[str, ...] = ()
    zone: str = ""
    tags: tuple[str, ...] = ()
    limits: StateLimits = field(default_factory=StateLimits)
    architecture: str = "amd64/generic"
    power_node_id: str = ""
    origin: Origin = Origin.REAL
    allow_plain_http: bool = False
    write_seconds: float = WRITE_SECONDS

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(
                f"MAAS's url {self.url!r} is no web address",
                where="provisioning.url",
                remedy="write https://<host>:5443/MAAS",
            )
        if parts.scheme == "http" and not self.allow_plain_http:
            raise UsageError(
                "MAAS's url is plain http: the API key would cross the network readable",
                where="provisioning.url",
                remedy="use https://<host>:5443/MAAS and set ca_file to MAAS's CA",
            )
        if len(self.api_key.split(":")) != 3 or not all(self.api_key.split(":")):
            raise UsageError(
                "MAAS's API key has not the form consumer:token:secret",
                where="provisioning.api_key",
                remedy="copy the key from MAAS, Preferences, API keys",
            )
        if self.ca_file and not Path(self.ca_file).is_file():
            raise UsageError(
                f"MAAS's CA file {self.ca_file} does not exist",
                where="provisioning.ca_file",
                remedy="give the PEM file of the CA that signed MAAS's certificate",
            )

    @property
    def trust(self) -> Trust:
        return Trust(self.ca_file, self.tls_fingerprint)

    @property
    def base(self) -> str:
        """The API's root, without a trailing slash."""
        root = self.url.rstrip("/").removesuffix("/api/2.0")
        return f"{root if root.endswith('/MAAS') else root + '/MAAS'}/api/2.0"
