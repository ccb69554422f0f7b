"""A worker reaches what lies in its networks, and nothing else: no host name, no part of a wider network."""

from __future__ import annotations

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.reach import collapsed, host_of, network, unreached

ADDRESSES = {
    "10.0.0.7": "10.0.0.7",
    "10.0.0.7:8443": "10.0.0.7",
    "[fd00::7]:443": "fd00::7",
    "fd00::7": "fd00::7",
    "bmc7.example:443": "bmc7.example",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_the_host_of_an_address_has_no_port(address: str) -> None:
    """Of IPv4, IPv6 and names."""
    assert host_of(address) == ADDRESSES[address]


def test_neighbours_become_one_network() -> None:
    """No other address is in it; names come last."""
    found = collapsed(["10.0.0.3", "bmc1", "10.0.0.2", "fd00::2", "10.0.0.2", "10.0.0.9"])
    assert found == ("10.0.0.2/31", "10.0.0.9/32", "fd00::2/128", "bmc1")


@pytest.mark.parametrize(
    ("needs", "reach", "missing"),
    [
        (("10.0.0.2/31", "bmc1"), (), ()),
        (("10.0.0.2/31",), ("10.0.0.0/30",), ()),
        (("10.0.0.0/24",), ("10.0.0.0/25",), ("10.0.0.0/24",)),
        (("10.0.0.2/32", "bmc1"), ("0.0.0.0/0",), ("bmc1",)),
        (("fd00::2/128",), ("0.0.0.0/0",), ("fd00::2/128",)),
        (("fd00::2/128", "10.0.0.2/32"), ("10.0.0.0/8", "fd00::/64"), ()),
    ],
)
def test_what_is_not_reached(needs: tuple[str, ...], reach: tuple[str, ...], missing: tuple[str, ...]) -> None:
    """Everything is reached where no network is given."""
    assert unreached(needs, reach) == missing


def test_what_is_no_network_is_refused() -> None:
    """Also one with bits of hosts: it would be wider than it reads."""
    for text in ("pod3", "10.0.0.7/24"):
        with pytest.raises(UsageError):
            network(text)
