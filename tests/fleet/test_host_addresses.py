"""Hosts' addresses: by the site's word alone, each once in the site; what is missing or collides names its place."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.addresses import HostAddresses, assign
from clusterctl.fleet.network.rules import (
    Addressee,
    AddressRule,
    AddressSource,
    BondRule,
    GivenAddress,
    HostRule,
    IpoibRule,
    NetworkRules,
    PortRule,
    VlanRule,
)
from clusterctl.fleet.node import Mac

SHEET = AddressRule(AddressSource.SHEET, "10.20.0.0/16", gateway="10.20.255.254", where="site.yml:9 ports.0")
NUMBER = AddressRule(AddressSource.NUMBER, "10.30.0.0/24", offset=100, where="site.yml:12 vlans.0")
RULE = HostRule(("node*",), (PortRule("mgmt0", "boot", SHEET),), vlans=(VlanRule("storage", "mgmt0", 120, NUMBER),))
RULES = NetworkRules((RULE,), nameservers=("10.20.0.2",))
NODES = (
    Addressee("node001", "10.9.0.1", "bmcs.csv:2"),
    Addressee("node002", "10.9.0.2", "bmcs.csv:3", address="10.20.0.12"),
    Addressee("login", "10.9.0.3", "bmcs.csv:4"),
)
ONE = GivenAddress("node001", "mgmt0", "10.20.0.11", "addresses.csv:2", Mac("5c:ed:8c:00:00:01"))


def test_addresses_come_from_sheets_and_rules() -> None:
    """By a line of the sheet of addresses, by the machines' own sheet, by the number of the name; with MACs."""
    assert assign(RULES, NODES, [ONE]) == HostAddresses(
        interfaces={
            "node001": {"mgmt0": "10.20.0.11/16", "storage": "10.30.0.101/24"},
            "node002": {"mgmt0": "10.20.0.12/16", "storage": "10.30.0.102/24"},
            "login": {},
        },
        management={"node001": "10.20.0.11", "node002": "10.20.0.12"},
        macs={"node001": {"mgmt0": Mac("5c:ed:8c:00:00:01")}},
    )


def test_without_rules_the_sheets_own_address_stands() -> None:
    """It is where the host is reached; its network stays the installer's."""
    found = assign(NetworkRules(), NODES)
    assert found.management == {"node002": "10.20.0.12"}
    assert found.interfaces["node002"] == {}


def test_a_bond_over_the_booting_port_is_where_the_host_is_reached() -> None:
    """The port itself has no address then."""
    bonded = HostRule(
        ("*",), (PortRule("a", "boot"), PortRule("b", "NIC.2")), (BondRule("bond0", ("a", "b"), address=SHEET),)
    )
    given = [
        GivenAddress(name, "bond0", f"10.20.1.{at}", f"a.csv:{at}") for at, name in enumerate(("node001", "login"), 2)
    ]
    found = assign(NetworkRules((bonded,)), NODES, given)
    assert found.management == {"node001": "10.20.1.2", "node002": "10.20.0.12", "login": "10.20.1.3"}


def test_a_reserved_address_of_dhcp_is_the_machines_sheets() -> None:
    """DHCP gives it; the controller knows it beforehand."""
    dhcp = HostRule(("*",), (PortRule("mgmt0", "boot", AddressRule(AddressSource.DHCP)),))
    found = assign(NetworkRules((dhcp,)), NODES)
    assert found.management == {"node002": "10.20.0.12"}
    assert found.interfaces["node002"] == {}


def test_links_of_two_hosts_have_no_edges() -> None:
    """RFC 3021: both addresses of a /31 are hosts'."""
    rule = replace(RULE, ports=(PortRule("p2p", "NIC.1", AddressRule(AddressSource.SHEET, where="x")),), vlans=())
    given = [GivenAddress("node001", "p2p", "10.1.0.0/31", "a:2"), GivenAddress("node002", "p2p", "10.1.0.1/31", "a:3")]
    assert assign(NetworkRules((rule,)), NODES[:2], given).interfaces["node001"] == {"p2p": "10.1.0.0/31"}


@dataclass(frozen=True)
class Wrong:
    """Lines of the sheet in addition to ONE (or instead of it), and the expected message with its place."""

    where: str
    expected: str
    given: tuple[GivenAddress, ...] = (ONE,)
    nodes: tuple[Addressee, ...] = NODES
    rules: NetworkRules = RULES


def line(interface: str = "mgmt0", address: str = "10.20.0.13", node: str = "node001", mac: str = "") -> GivenAddress:
    return GivenAddress(node, interface, address, "addresses.csv:3", Mac(mac) if mac else None)


def ruled(rule: HostRule) -> NetworkRules:
    return NetworkRules((rule,), nameservers=("10.20.0.2",))


WRONG = {
    "no line": Wrong("site.yml:9 ports.0", "no sheet has an address for mgmt0 of node001", ()),
    "no such node": Wrong("addresses.csv:3 node", "no node 'node009'", (ONE, line(node="node009"))),
    "no such interface": Wrong("addresses.csv:3 interface", "no interface 'mgmt1'", (ONE, line("mgmt1"))),
    "no rule for it": Wrong("addresses.csv:3 interface", "login has no interface", (ONE, line(node="login"))),
    "two lines": Wrong("addresses.csv:3 interface", "given twice, first at addresses.csv:2", (ONE, line())),
    "by another rule": Wrong("addresses.csv:3 address", "by another rule: number", (ONE, line("storage"))),
    "one MAC twice": Wrong("addresses.csv:3 mac", "given twice", (ONE, line("storage", "", mac="5c:ed:8c:00:00:01"))),
    "another host's": Wrong("bmcs.csv:3 address", "taken by mgmt0 of node001", (replace(ONE, address="10.20.0.12"),)),
    "a BMC's": Wrong(
        "addresses.csv:2 address",
        "10.20.0.11, for mgmt0 of node001, is taken by the BMC of login",
        nodes=(*NODES[:2], replace(NODES[2], bmc="10.20.0.11")),
    ),
    "the gateway's": Wrong("addresses.csv:2 address", "the gateway", (replace(ONE, address="10.20.255.254"),)),
    "a name server's": Wrong("addresses.csv:2 address", "a name server", (replace(ONE, address="10.20.0.2"),)),
    "the broadcast": Wrong("addresses.csv:2 address", "first or last", (replace(ONE, address="10.20.255.255"),)),
    "the network": Wrong("addresses.csv:2 address", "first or last", (replace(ONE, address="10.20.0.0/16"),)),
    "another network": Wrong(
        "addresses.csv:2 address", "no address of 10.20.0.0/16", (replace(ONE, address="10.21.0.1"),)
    ),
    "another prefix": Wrong("addresses.csv:2 address", "no address of", (replace(ONE, address="10.20.0.11/24"),)),
    "another version": Wrong("addresses.csv:2 address", "no address of", (replace(ONE, address="fd00::1"),)),
    "listed twice, differently": Wrong(
        "bmcs.csv:2 address",
        "listed with 10.20.0.77, and 10.20.0.11/16",
        nodes=(replace(NODES[0], address="10.20.0.77"), *NODES[1:]),
    ),
    "no number": Wrong(
        "site.yml:12 vlans.0", "ends in no number", rules=ruled(replace(RULE, nodes=("*",), ports=())), given=()
    ),
    "past the end": Wrong(
        "site.yml:12 vlans.0",
        "ends before it",
        rules=ruled(replace(RULE, ports=(), vlans=(VlanRule("v", "x", 1, replace(NUMBER, offset=255)),))),
        given=(),
    ),
    "no prefix anywhere": Wrong(
        "addresses.csv:2 address",
        "has no prefix",
        rules=ruled(replace(RULE, ports=(PortRule("mgmt0", "boot", AddressRule(AddressSource.SHEET)),))),
    ),
    "two rails in one network": Wrong(
        "site.yml:20 ipoib",
        "taken by ib0 of node001",
        rules=ruled(
            HostRule(
                ("node*",),
                ipoib=tuple(IpoibRule(f"ib{n}", address=replace(NUMBER, where="site.yml:20 ipoib")) for n in range(2)),
            )
        ),
        given=(),
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_names_its_place(name: str) -> None:
    """File, line and field of the address that cannot be, never a guess in its stead."""
    case = WRONG[name]
    with pytest.raises(UsageError) as caught:
        assign(case.rules, case.nodes, case.given)
    assert case.expected in caught.value.message
    assert caught.value.where == case.where
    assert caught.value.remedy


def test_a_fleet_is_assigned_at_once() -> None:
    """4,096 nodes with ten interfaces each: every address of the site is another."""
    rails = tuple(
        IpoibRule(f"ib{n}", address=AddressRule(AddressSource.NUMBER, f"10.{100 + n}.0.0/16", where="x"))
        for n in range(8)
    )
    rule = HostRule(
        ("*",), (PortRule("mgmt0", "boot", AddressRule(AddressSource.NUMBER, "10.20.0.0/16", where="x")),), ipoib=rails
    )
    nodes = [Addressee(f"node{n}", f"10.9.{n // 256}.{n % 256}", f"bmcs.csv:{n}") for n in range(1, 4097)]
    found = assign(NetworkRules((rule,)), nodes)
    assert len({address for own in found.interfaces.values() for address in own.values()}) == 4096 * 9
    assert found.management["node4096"] == "10.20.16.0"
