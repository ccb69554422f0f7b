"""MAAS's answers about itself: version, images, racks, pools, subnets, ranges.

Version, user, images, rack controllers and subnets as recorded from MAAS 3.4.10. Sets of an image, a rack's images and
ranges were never recorded: their fields are those of MAAS's source (src/maasserver/api/{boot_resources,rackcontrollers,
ipranges}.py, the same from 3.2 to 3.7).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from clusterctl.fleet.errors import ParseError

T = TypeVar("T")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class BootResource:
    """An image for one architecture and kernel: `ubuntu/jammy`, `amd64/ga-22.04`; an uploaded one has a bare name."""

    id: int
    name: str
    architecture: str

    def is_of(self, series: str, architecture: str) -> bool:
        """Return whether `series`, with or without its OS, on `architecture` (`amd64/generic`) means it."""
        names = (self.name, self.name.rpartition("/")[2], f"custom/{self.name}")
        return series in names and self.architecture.partition("/")[0] == architecture.partition("/")[0]


@dataclass(frozen=True, slots=True)
class MaasRack:
    """A rack controller and the states of its services: `running`, `degraded`, `dead`, `off`, `unknown`."""

    system_id: str
    hostname: str
    services: Mapping[str, str]
    addresses: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RackImages:
    """`names` are those of `amd64`-like architectures as `(name, architecture)`."""

    names: frozenset[tuple[str, str]]
    connected: bool
    status: str


@dataclass(frozen=True, slots=True)
class Subnet:
    """A subnet and its VLAN's DHCP: `dhcp` MAAS's own or by relay; `foreign_dhcp` another one that MAAS has seen."""

    id: int
    network: Network
    vlan: str
    dhcp: bool
    foreign_dhcp: str
    gateway: str
    nameservers: tuple[str, ...]
    managed: bool
    proxied: bool


@dataclass(frozen=True, slots=True)
class IpRange:
    """A range of addresses. `dynamic`: DHCP leases them; else they are reserved, and MAAS gives none of them."""

    subnet: int
    dynamic: bool
    count: int


def version(body: Any) -> str:
    """Return MAAS's version, like `3.4.10`."""
    return _read("version", lambda: str(body["version"]))


def is_admin(body: Any) -> bool:
    """Return whether `GET /users/?op=whoami` calls the key's user an administrator."""
    return _read("user", lambda: bool(body["is_superuser"]))


def is_local(body: Any) -> bool:
    """Return whether MAAS itself keeps the user, not an external service with its own rights (Candid, RBAC, OIDC)."""
    return _read("user", lambda: body.get("is_local") is not False)


def boot_resources(body: Any) -> tuple[BootResource, ...]:
    return _read(
        "images",
        lambda: tuple(BootResource(int(item["id"]), str(item["name"]), str(item["architecture"])) for item in body),
    )


def is_complete(body: Any) -> bool:
    """Return whether the region has one version of an image whole: `GET /boot-resources/<id>/`."""
    return _read("image", lambda: any(bool(item["complete"]) for item in body["sets"].values()))


def pools(body: Any) -> tuple[str, ...]:
    """Return the names of the resource pools that `GET /resourcepools/` lists."""
    return _read("resource pools", lambda: tuple(str(item["name"]) for item in body))


def racks(body: Any) -> tuple[MaasRack, ...]:
    def one(item: Any) -> MaasRack:
        services = {str(service["name"]): str(service["status"]) for service in item["service_set"]}
        addresses = tuple(ipaddress.ip_address(one).compressed for one in item["ip_addresses"])
        return MaasRack(str(item["system_id"]), str(item["hostname"]), services, addresses)

    return _read("rack controllers", lambda: tuple(one(item) for item in body))


def rack_images(body: Any) -> RackImages:
    return _read(
        "rack's images",
        lambda: RackImages(
            frozenset((str(item["name"]), str(item["architecture"])) for item in body["images"]),
            bool(body["connected"]),
            str(body["status"]),
        ),
    )


def subnets(body: Any) -> tuple[Subnet, ...]:
    return _read("subnets", lambda: tuple(_subnet(item) for item in body))


def ip_ranges(body: Any) -> tuple[IpRange, ...]:
    def one(item: Any) -> IpRange:
        first, last = (int(ipaddress.ip_address(item[name])) for name in ("start_ip", "end_ip"))
        return IpRange(int(item["subnet"]["id"]), item["type"] == "dynamic", last - first + 1)

    return _read("address ranges", lambda: tuple(one(item) for item in body))


def _subnet(item: Any) -> Subnet:
    vlan = item["vlan"]
    return Subnet(
        id=int(item["id"]),
        network=ipaddress.ip_network(item["cidr"]),
        vlan=f"{vlan['fabric']}, {vlan['name']}",
        dhcp=bool(vlan["dhcp_on"] or vlan["relay_vlan"]),
        foreign_dhcp=str(vlan["external_dhcp"] or ""),
        gateway=str(item["gateway_ip"] or ""),
        nameservers=tuple(str(server) for server in item["dns_servers"] or ()),
        managed=bool(item["managed"]),
        proxied=bool(item["allow_proxy"]),
    )


def _read(what: str, reading: Callable[[], T]) -> T:
    try:
        return reading()
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ParseError(
            f"MAAS's answer about its {what} was not understood ({type(error).__name__}: {error})", where="MAAS"
        ) from error
