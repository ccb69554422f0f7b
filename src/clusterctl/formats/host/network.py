"""Network state of a host: JSON of iproute2 (recorded from 6.1), and `/etc/resolv.conf` (resolv.conf(5))."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.network.host_network import BondState, DefaultRoute, HostNetwork, HostNetworkInterface
from clusterctl.formats.documents import read_document, read_value


@dataclass(frozen=True, slots=True)
class _Address:
    local: str = ""
    prefixlen: int = 0
    scope: str = ""


@dataclass(frozen=True, slots=True)
class _Aggregate:
    num_ports: int | None = None
    partner_mac: str = ""


@dataclass(frozen=True, slots=True)
class _Data:
    """Fields of all kinds of links; `mode` belongs to bonds and IPoIB interfaces."""

    mode: str | int = ""
    id: int | str | None = None
    ad_info: _Aggregate = _Aggregate()


@dataclass(frozen=True, slots=True)
class _Member:
    mii_status: str = ""


@dataclass(frozen=True, slots=True)
class _LinkInfo:
    info_kind: str = ""
    info_data: _Data = _Data()
    info_slave_kind: str = ""
    info_slave_data: _Member = _Member()


@dataclass(frozen=True, slots=True)
class _Link:
    ifname: str
    mtu: int
    flags: tuple[str, ...] = ()
    address: str = ""
    permaddr: str = ""
    master: str = ""
    link: str = ""
    linkinfo: _LinkInfo = _LinkInfo()
    addr_info: tuple[_Address, ...] = ()


@dataclass(frozen=True, slots=True)
class _Route:
    dst: str
    dev: str = ""
    gateway: str = ""


def _rows(text: str, where: str) -> list[Any]:
    """Return the entries without the `{}` that `ip` prints for filtered ones."""
    return [row for row in read_document(tuple[Any, ...], text, where) if row != {}]


def parse_ip_addr(text: str) -> tuple[HostNetworkInterface, ...]:
    """Return the interfaces of `ip -j -d addr`, without link-local addresses.

    Raises `ParseError`, also for an empty list: every host has `lo`.
    """
    links = read_value(tuple[_Link, ...], _rows(text, "ip -j -d addr"), "ip -j -d addr")
    if not links:
        raise ParseError("it lists no interface", where="ip -j -d addr")
    return tuple(_interface(link) for link in links)


def parse_default_routes(text: str) -> tuple[DefaultRoute, ...]:
    """Return the routes of `ip -j route show default`, with or without `-6`."""
    routes = read_value(tuple[_Route, ...], _rows(text, "ip -j route"), "ip -j route")
    return tuple(DefaultRoute(route.gateway, route.dev) for route in routes)


def _interface(link: _Link) -> HostNetworkInterface:
    info = link.linkinfo
    kind, data = info.info_kind, info.info_data
    return HostNetworkInterface(
        name=link.ifname,
        mac=link.address,
        mtu=link.mtu,
        carrier="LOWER_UP" in link.flags,
        addresses=tuple(f"{a.local}/{a.prefixlen}" for a in link.addr_info if a.local and a.scope == "global"),
        permanent=link.permaddr,
        master=link.master,
        parent=link.link,
        vlan=data.id if kind == "vlan" and isinstance(data.id, int) else None,
        bond=_bond(data) if kind == "bond" else None,
        member_up=info.info_slave_data.mii_status == "UP" if info.info_slave_kind == "bond" else None,
        ipoib_mode=str(data.mode) if kind == "ipoib" else "",
    )


def _bond(data: _Data) -> BondState:
    return BondState(str(data.mode), data.ad_info.partner_mac, data.ad_info.num_ports)


FILE = "/etc/resolv.conf"
HEADER = "# Written by clusterctl from the site file: changes here do not last.\n"
_OPTIONS = frozenset({"options", "sortlist"})


@dataclass(frozen=True, slots=True)
class Resolver:
    """Name servers and search domains, in order of use."""

    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def resolv_conf(network: HostNetwork) -> str:
    """Return the file for a host without systemd-resolved; empty where the site leaves name servers to DHCP."""
    if not network.nameservers:
        return ""
    search = f"search {' '.join(network.search)}\n" if network.search else ""
    return HEADER + "".join(f"nameserver {server}\n" for server in network.nameservers) + search


def parse_resolv_conf(text: str) -> Resolver:
    """Return the resolver settings. The last `search` counts, as in glibc; `search .` means none (systemd-resolved).

    Raises `ParseError` for an empty file, and for a line that resolv.conf(5) does not define.
    """
    servers: list[str] = []
    search: tuple[str, ...] = ()
    if not text.strip():
        raise ParseError("it is empty", where=FILE)
    for number, line in enumerate(text.splitlines(), start=1):
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search" | "domain", *domains]:
                search = tuple(domain for domain in domains if domain != ".")
            case [word, *_] if word not in _OPTIONS and word[0] not in "#;":
                raise ParseError(f"line {number} is not understood: {line[:60]!r}", where=FILE)
            case _:
                pass
    return Resolver(tuple(servers), search)
