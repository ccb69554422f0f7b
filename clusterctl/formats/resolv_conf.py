"""`/etc/resolv.conf` (resolv.conf(5)): which name servers a host asks, and the domains that it tries."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.host_network import HostNetwork

FILE = "/etc/resolv.conf"
HEADER = "# Written by clusterctl from the site file: changes here do not last.\n"


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
    """Unknown lines are options of the resolver and are passed over; the last `search` counts, as in glibc."""
    servers: list[str] = []
    search: tuple[str, ...] = ()
    for line in text.splitlines():
        match line.split():
            case ["nameserver", server, *_]:
                servers.append(server)
            case ["search" | "domain", *domains]:
                search = tuple(domains)
            case _:
                pass
    return Resolver(tuple(servers), search)
