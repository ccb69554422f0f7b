"""`nodes` of a site: the machines, from its list and ranges; and a machine of the site, wherever it is listed."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Mac
from clusterctl.fleet.secret import NeverPickled
from clusterctl.formats.identifiers import is_host_name
from clusterctl.site.fields import Fingerprint, Name, section

MAX_RANGE = 4096
_BYTE = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
_PLAIN = re.compile(rf"(?:[1-9]|[1-9][0-9]|1[0-9][0-9]|2[01][0-9]|22[0-3])(?:\.{_BYTE}){{3}}")
"""A canonical IPv4 address below the multicast ones."""


def canonical_address(value: str) -> str:
    """Return an IPv4 or IPv6 address in canonical form. Raises ValueError."""
    if _PLAIN.fullmatch(value):  # nearly all addresses of a sheet: it is read by each command
        return value
    try:
        found = ipaddress.ip_address(value.strip())
    except ValueError:
        raise ValueError("must be an IP address, like 10.20.0.17") from None
    if found.is_unspecified or found.is_multicast or found == ipaddress.IPv4Address("255.255.255.255"):
        raise ValueError("must be the address of one machine, like 10.20.0.17")
    return str(found)


def _address_or_none(value: str) -> str:
    return canonical_address(value) if value else ""


def expand_range(value: str) -> tuple[str, ...]:
    """Return the addresses of `10.20.0.11-10.20.0.74` or `10.20.0.0/26` (hosts only); at most 4,096."""
    try:
        start, count = _span(value)
    except ValueError:
        raise ValueError("must be FIRST-LAST or a network, like 10.20.0.11-10.20.0.74 or 10.20.0.0/26") from None
    if not 0 < count <= MAX_RANGE:
        raise ValueError(f"a range runs upwards and holds at most {MAX_RANGE} addresses")
    return tuple(str(start + offset) for offset in range(count))


def _span(value: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    """Return the first address and the number of addresses."""
    first, dash, last = (part.strip() for part in value.partition("-"))
    if dash:
        start = ipaddress.ip_address(first)
        return start, int(ipaddress.ip_address(last)) - int(start) + 1
    network = ipaddress.ip_network(first)
    edges = 0 if network.num_addresses <= 2 else 1
    return network[edges], network.num_addresses - 2 * edges


def _ranges(value: tuple[str, ...]) -> tuple[str, ...]:
    for item in value:
        expand_range(item)
    return value


@section
class ListedNode:
    """One item of `nodes.list`."""

    name: Name
    bmc: Annotated[
        str,
        AfterValidator(_address_or_none),
        Field(description="of the BMC; only machines of provisioning backend existing can do without"),
    ] = ""
    serial: str = ""
    rack: str = ""
    unit: Annotated[int, Field(ge=1, le=60, strict=True)] | None = None
    pdu: str = ""
    tls_fingerprint: Fingerprint = ""
    address: Annotated[
        str,
        AfterValidator(_address_or_none),
        Field(description="of the host"),
    ] = ""


@section
class NodesSettings:
    """The machines: a sheet, a list and ranges of BMC addresses, which add up."""

    csv: str | None = None
    ranges: Annotated[tuple[str, ...], AfterValidator(_ranges)] = ()
    listed: Annotated[tuple[ListedNode, ...], Field(alias="list")] = ()
    name_prefix: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,40}$")] = "node"

    def __post_init__(self) -> None:
        if not (self.csv or self.ranges or self.listed):
            raise ValueError("name the machines: csv, ranges or list")


@dataclass(frozen=True, slots=True)
class SiteNode(NeverPickled):
    """One machine of the site; `where` is the place that names it.

    `user` and `password` are its factory login, empty where the site's login applies; `login` names one of
    `bmc.logins`; `boot_mac` is the MAC address of the host port, for BMCs that do not report it; `pdu` is the power
    distribution unit or feed; `address` is the address of the host; `bmc` is empty for a machine without a BMC.
    """

    where: str
    name: str
    bmc: str
    serial: str = ""
    rack: str = ""
    unit: int | None = None
    user: str = ""
    password: str = field(default="", repr=False)
    tls_fingerprint: str = ""
    bmc_mac: Mac | None = None
    login: str = ""
    boot_mac: Mac | None = None
    pdu: str = ""
    address: str = ""


def require_valid(nodes: Sequence[SiteNode]) -> None:
    """Raise `UsageError` for a name that is no host name, and for a value that two machines have."""
    for node in nodes:
        if not is_host_name(node.name):
            remedy = "use lower-case letters, digits and dashes, 63 at most"
            raise UsageError(f"{node.name[:80]!r} is no host name", where=f"{node.where} name", remedy=remedy)
    for what, value_of in _UNIQUE.items():
        _require_unique(nodes, what, value_of)


def _rack_unit(node: SiteNode) -> str:
    return f"{node.rack} U{node.unit}" if node.rack and node.unit is not None else ""


_UNIQUE: Mapping[str, Callable[[SiteNode], str]] = {
    "name": lambda node: node.name,
    "bmc": lambda node: node.bmc,
    "serial": lambda node: node.serial,
    "unit": _rack_unit,
    "boot_mac": lambda node: node.boot_mac or "",
}
"""The fields with values that two machines cannot share; an empty value is unknown."""


def _require_unique(nodes: Sequence[SiteNode], what: str, value_of: Callable[[SiteNode], str]) -> None:
    first: dict[str, SiteNode] = {}
    for node in nodes:
        value = value_of(node)
        if value and first.setdefault(value.lower(), node) is not node:
            raise UsageError(
                f"{value} is given twice, first at {first[value.lower()].where}",
                where=f"{node.where} {what}",
                remedy="each machine has its own: correct the wrong one",
            )
