"""DNS: every name that the site file uses for a service resolves."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterator, Mapping
from urllib.parse import urlsplit

from clusterctl.edges.site import Site
from clusterctl.fleet.diagnosis import Diagnosis, broken, ok

NAME = "dns"


def check(site: Site) -> Diagnosis:
    return judge({name: resolve(name) for name in dict.fromkeys(needed(site))})


def needed(site: Site) -> Iterator[str]:
    """The host names of MAAS and of the journal's database; addresses need no DNS."""
    maas = site.settings.maas
    for url in (*([maas.url] if maas is not None else []), site.journal_url()):
        name = urlsplit(url).hostname
        if name and not _is_address(name):
            yield name


def resolve(name: str) -> str:
    """Its first address, empty where there is none. The resolver's own time-out applies (resolv.conf(5))."""
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ""
    return str(found[0][4][0])


def judge(found: Mapping[str, str]) -> Diagnosis:
    """`found`: name → address, empty where it does not resolve."""
    unknown = [name for name, address in found.items() if not address]
    if unknown:
        message = f"does not resolve: {', '.join(unknown)}"
        return broken(NAME, message, "add the name to DNS or /etc/hosts, or write an address in the site file")
    if not found:
        return ok(NAME, "the site file names services by their addresses")
    return ok(NAME, ", ".join(f"{name} is {address}" for name, address in found.items()))


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
