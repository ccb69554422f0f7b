"""Which addresses a sweep asks: networks less what is excluded, none that is probably not meant. Pure."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from clusterctl.fleet.errors import UsageError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MOST = 65_536
"""Addresses of a /16: the most that an operator sweeps without a confirmation."""

_OURS = tuple(
    ipaddress.ip_network(text)
    for text in (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "169.254.0.0/16",
        "127.0.0.0/8",
        "fc00::/7",
        "fe80::/10",
        "::1/128",
    )
)
"""Not routed on the Internet (RFC 1918, 6598, 3927, 1122, 4193, 4291)."""


def targets(
    swept: Sequence[str], excluded: Sequence[str] = (), *, most: int = MOST, public: bool = False
) -> tuple[str, ...]:
    """Return every address once, upwards, without network and broadcast addresses of IPv4.

    `most`: more are refused. `public`: networks of the Internet are meant. Raises `UsageError` naming the network.
    """
    networks = _collapsed([_network(text, "--sweep", public=public) for text in swept])
    without = [_network(text, "--exclude", public=True) for text in excluded]
    count = sum(network.num_addresses for network in networks)
    if count > most:
        message = f"{', '.join(swept)} has {count:,} addresses, more than {most:,}"
        raise UsageError(message, where="--sweep", remedy=f"name smaller networks, or mean it: --limit-hosts {count}")
    found = (address for network in networks for address in network.hosts())
    left = tuple(str(address) for address in found if not _is_in(address, without))
    if not left:
        raise UsageError("nothing is left to sweep", where="--exclude", remedy="exclude less")
    return left


def _is_in(address: ipaddress.IPv4Address | ipaddress.IPv6Address, networks: Iterable[Network]) -> bool:
    return any(address in network for network in networks)


def _network(text: str, where: str, *, public: bool) -> Network:
    try:
        network = ipaddress.ip_network(text.strip())
    except ValueError as error:
        message = f"{text!r} is no network: {_reason(text, error)}"
        raise UsageError(message, where=where, remedy=_remedy(text)) from None
    if network.is_multicast or network.is_unspecified or network.network_address.is_reserved:
        raise UsageError(f"{text} is no network of machines", where=where, remedy="name the BMCs' network")
    ours = any(network.version == own.version and _within(network, own) for own in _OURS)
    if not ours and not public:
        message = f"{text} is, or holds, addresses of the Internet"
        raise UsageError(message, where=where, remedy="give the BMCs' network; if it is yours and meant, add --yes")
    return network


def _collapsed(networks: Sequence[Network]) -> list[Network]:
    """Return the same addresses, each once."""
    four = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    six = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    return [*ipaddress.collapse_addresses(four), *ipaddress.collapse_addresses(six)]


def _within(network: Network, other: Network) -> bool:
    return network[0] in other and network[-1] in other


def _reason(text: str, error: ValueError) -> str:
    return (
        "it has host bits set" if "host bits" in str(error) else "write it as ADDRESS/LENGTH" if text else "it is empty"
    )


def _remedy(text: str) -> str:
    """Return the network that was most likely meant."""
    try:
        return f"write {ipaddress.ip_network(text.strip(), strict=False)}"
    except ValueError:
        return "write it like 10.20.0.0/22"
