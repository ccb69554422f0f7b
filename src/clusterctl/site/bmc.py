"""`bmc` of a site: the logins of BMCs, the trust in their certificates, and the rotation of their passwords."""

from __future__ import annotations

import ipaddress
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from clusterctl.fleet.bmc.accounts import Characters, PasswordRule
from clusterctl.fleet.bmc.services import WantedServices
from clusterctl.formats.identifiers import is_host_name
from clusterctl.site.bmc_certificates import CertificateSettings
from clusterctl.site.fields import Flag, Name, Secret, TcpPort, first_duplicate, section, unique
from clusterctl.site.nodes import canonical_address

LONGEST_NAME = 253
"""Characters of a host's name with its domain (RFC 1035)."""


def _networks(value: tuple[str, ...]) -> tuple[str, ...]:
    for text in value:
        try:
            ipaddress.ip_network(text)
        except ValueError:
            raise ValueError("must be a network, like 10.20.4.0/22") from None
    return value


@section
class BmcLogin:
    """Credentials for some of the BMCs: of a vendor, in networks, or both."""

    name: Name
    vendor: str = ""
    networks: Annotated[tuple[str, ...], AfterValidator(_networks)] = ()
    user: str = "root"
    password: Secret

    def __post_init__(self) -> None:
        if not (self.vendor or self.networks):
            raise ValueError("limit it by vendor or networks; what applies everywhere is bmc.password")

    def applies(self, host: str, vendor: str) -> bool:
        """Return whether the login is for this BMC. An unknown vendor is empty, and excludes logins of a vendor."""
        address = ipaddress.ip_address(host)
        inside = not self.networks or any(address in ipaddress.ip_network(text) for text in self.networks)
        return inside and (not self.vendor or self.vendor.lower() == vendor.lower())


def _unique_names(logins: tuple[BmcLogin, ...]) -> tuple[BmcLogin, ...]:
    twice = first_duplicate([login.name for login in logins])
    if twice is not None:
        raise ValueError(f"two are named {twice}: the sheet could not distinguish them")
    return logins


@section
class RotationSettings:
    """The rule for the passwords that clusterctl sets on BMCs; each machine gets its own.

    `user`: the account of the new password; empty: the account that clusterctl logs in with. With
    `when: discover`, the step also changes a password that the BMC requires to be changed.
    """

    user: str = ""
    length: Annotated[int, Field(ge=12, le=64, strict=True)] = 16
    characters: Literal["letters_and_digits", "with_signs"] = "letters_and_digits"
    when: Literal["command", "discover"] = "command"

    @property
    def rule(self) -> PasswordRule:
        return PasswordRule(self.length, Characters(self.characters))


def _server(value: str) -> str:
    """Return a host name in lower case, or an IP address in its short form. Raises ValueError."""
    try:
        return canonical_address(value)
    except ValueError:
        bare = value.strip().lower()
        named = len(bare) <= LONGEST_NAME and all(map(is_host_name, bare.split(".")))
        if not named or bare.replace(".", "").isdigit():
            raise ValueError("must be a host's name or address, like ntp1.example or 10.20.0.2") from None
        return bare


Server = Annotated[str, AfterValidator(_server)]
Servers = Annotated[tuple[Server, ...], Field(max_length=2), AfterValidator(unique)]
NameServers = Annotated[
    tuple[Annotated[str, AfterValidator(canonical_address)], ...], Field(max_length=2), AfterValidator(unique)
]


@section
class ServiceSettings:
    """What `bmc apply` sets on the BMCs; what is left out stays as it is. Many BMCs have room for two servers each."""

    ntp: Annotated[Servers, Field(description="time servers, by name or address")] = ()
    dns: Annotated[NameServers, Field(description="name servers; those of DHCP are then not used")] = ()
    syslog: Annotated[Server | None, Field(description="the host that gets the BMCs' logs, by syslog over UDP")] = None
    syslog_port: TcpPort = 514

    def __post_init__(self) -> None:
        if not (self.ntp or self.dns or self.syslog):
            raise ValueError("it asks for nothing: write ntp, dns or syslog")

    @property
    def wanted(self) -> WantedServices:
        return WantedServices(ntp=self.ntp, dns=self.dns, syslog=self.syslog or "", syslog_port=self.syslog_port)


@section
class BmcSettings:
    """`first_use: pin` trusts an unknown BMC once, and pins its certificate."""

    user: str = "root"
    password: Secret | None = None
    logins: Annotated[tuple[BmcLogin, ...], AfterValidator(_unique_names)] = ()
    factory: Annotated[
        str, Field(description="the vendor's list of factory logins by serial or BMC MAC (CSV, mode 0600)")
    ] = ""
    ca_file: Annotated[str, Field(description="PEM bundle that signed the BMCs' certificates")] = ""
    rotation: Annotated[RotationSettings | None, Field(description="the rule by which passwords are changed")] = None
    services: Annotated[
        ServiceSettings | None, Field(description="clock, name servers and syslog target of the BMCs")
    ] = None
    certificates: Annotated[
        CertificateSettings | None, Field(description="the authority that renews the BMCs' certificates")
    ] = None
    first_use: Literal["refuse", "pin"] = "refuse"
    scheme: Literal["https", "http"] = "https"
    allow_plain_http: Flag = False
    port: Annotated[TcpPort | None, Field(description="443; 80 over plain http")] = None

    def __post_init__(self) -> None:
        if self.scheme == "http" and not self.allow_plain_http:
            raise ValueError(
                "plain http shows passwords to the whole network: use https, or set allow_plain_http: true"
            )
        if self.first_use == "pin" and self.ca_file:
            raise ValueError("give ca_file or first_use: pin, not both: an authority leaves nothing to first use")

    @property
    def reached_at(self) -> int:
        """Return the TCP port."""
        return self.port or (80 if self.scheme == "http" else 443)
