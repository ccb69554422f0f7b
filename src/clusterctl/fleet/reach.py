"""Which addresses a controller reaches: a worker takes a run only where it reaches all that the run needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from ipaddress import IPv4Network, IPv6Network, collapse_addresses, ip_network

from clusterctl.fleet.errors import UsageError

Network = IPv4Network | IPv6Network


def network(text: str) -> Network:
    """Return a network that an operator gives. Raises `UsageError` for what is none."""
    try:
        return ip_network(text)
    except ValueError:
        remedy = "give networks like 10.20.0.0/16 or fd00:20::/64, without bits of hosts"
        raise UsageError(f"{text!r} is no network", where="--reach", remedy=remedy) from None


def host_of(address: str) -> str:
    """Return the host of a BMC's address, which may have a port: `10.0.0.7:8443`, `[fd00::7]:443`."""
    if address.startswith("["):
        return address[1:].partition("]")[0]
    return address.partition(":")[0] if address.count(":") == 1 else address


def collapsed(addresses: Iterable[str]) -> tuple[str, ...]:
    """Return addresses as the fewest networks that hold no other address, then the host names."""
    found = {text: _network(text) for text in set(addresses)}
    names = sorted(text for text, known in found.items() if known is None)
    v4 = collapse_addresses(one for one in found.values() if isinstance(one, IPv4Network))
    v6 = collapse_addresses(one for one in found.values() if isinstance(one, IPv6Network))
    return (*(str(one) for one in v4), *(str(one) for one in v6), *names)


def unreached(needs: Collection[str], reach: Collection[str]) -> tuple[str, ...]:
    """Return the `needs` outside of `reach`; none where `reach` is empty. A host name is outside of all networks."""
    networks = [ip_network(text) for text in reach]
    return tuple(need for need in needs if networks and not _within(_network(need), networks))


def _within(need: Network | None, networks: Collection[Network]) -> bool:
    if isinstance(need, IPv4Network):
        return any(isinstance(one, IPv4Network) and need.subnet_of(one) for one in networks)
    return need is not None and any(isinstance(one, IPv6Network) and need.subnet_of(one) for one in networks)


def _network(text: str) -> Network | None:
    try:
        return ip_network(text)
    except ValueError:
        return None
