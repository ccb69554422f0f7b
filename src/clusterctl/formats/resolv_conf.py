"""`/etc/resolv.conf` (resolv.conf(5)): which name servers a host asks, and the domains that it tries."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.host_network import HostNetwork

FILE = "/etc/resolv.conf"
HEADER = "# Written by clusterctl from the site file: changes here do not last.\n"
_OPTIONS = frozenset({"options", "sortlist"})


@dataclass(frozen=True, slots=True)
class Resolver:
    """In the order in which they are asked and tried."""

    servers: tuple[str, ...] = ()
    search: tuple[str, ...] = ()


def resolv_conf(network: HostNetwork) -> str:
    """For hosts without systemd-resolved; empty where the site names no servers: then DHCP's are meant."""
    if not network.nameservers:
        return ""
    search = f"search {' '.join(network.search)}\n" if network.search else ""
    return HEADER + "".join(f"nameserver {server}\n" for server in network.nameservers) + search


def parse_resolv_conf(text: str) -> Resolver:
    """The last `search` counts, as in glibc; systemd-resolved writes `search .` where there is none.

    An empty file, or a line that resolv.conf(5) does not know, is a `ParseError`.
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
