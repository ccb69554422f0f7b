"""One host's network: the site's rule on the ports that its BMC reports; an unknown port is an error, not guessed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.network.host_network import Addressing, HostBond, HostIpoib, HostNetwork, HostPort, HostVlan
from clusterctl.fleet.network.plan import HostParts, plan_network
from clusterctl.fleet.network.rules import (
    AddressRule,
    AddressSource,
    BondRule,
    HostRule,
    IpoibRule,
    NetworkRules,
    PortRule,
    VlanRule,
)
from clusterctl.fleet.node import Guid, Hca, Inventory, Mac, Nic, Serial

BOOT, ONE, TWO = Mac("5c:ed:8c:00:00:01"), Mac("5c:ed:8c:00:00:02"), Mac("5c:ed:8c:00:00:03")
INVENTORY = Inventory(
    "Dell Inc.",
    "PowerEdge XE9680",
    Serial("S1"),
    nics=(Nic("NIC.Embedded.1-1-1", BOOT, boots=True), Nic("NIC.Slot.1", ONE), Nic("NIC.Slot.2", TWO)),
    hcas=(Hca("IB.Slot.40", "ConnectX-7", guid=Guid("a088c20300000101")), Hca("IB.Slot.41", "ConnectX-7")),
)
RULE = HostRule(
    ("gpu*",),
    (
        PortRule("mgmt0", "boot", AddressRule(AddressSource.SHEET, gateway="10.20.0.1")),
        PortRule("data0", "NIC.Slot.1"),
        PortRule("data1", "NIC.Slot.2"),
    ),
    (BondRule("bond0", ("data0", "data1"), "active-backup", AddressRule(mtu=9000)),),
    (
        VlanRule("storage", "bond0", 120, AddressRule(AddressSource.NUMBER, mtu=9000)),
        VlanRule("oob", "mgmt0", 7, AddressRule(AddressSource.DHCP)),
    ),
    (
        IpoibRule("rail0", "IB.Slot.40", connected=True, address=AddressRule(AddressSource.NUMBER)),
        IpoibRule("ib1", address=AddressRule(AddressSource.NUMBER, mtu=2044)),
    ),
)
RULES = NetworkRules((RULE,), ("10.20.0.2",), ("cluster.example",))
ADDRESSES = {"mgmt0": "10.20.0.7/16", "storage": "10.30.0.7/24", "rail0": "10.100.0.7/16", "ib1": "10.101.0.7/16"}
PARTS = HostParts("gpu007", INVENTORY, addresses=ADDRESSES)


def test_a_rule_becomes_the_network_of_one_host() -> None:
    """Names become MACs and GUIDs; addresses stand at their interfaces."""
    assert plan_network(RULES, PARTS) == HostNetwork(
        ports=(
            HostPort(BOOT, "mgmt0", Addressing(("10.20.0.7/16",), gateway="10.20.0.1")),
            HostPort(ONE, "data0"),
            HostPort(TWO, "data1"),
        ),
        bonds=(HostBond("bond0", (ONE, TWO), "active-backup", Addressing(mtu=9000)),),
        vlans=(
            HostVlan("storage", "bond0", 120, Addressing(("10.30.0.7/24",), mtu=9000)),
            HostVlan("oob", BOOT, 7, Addressing(dhcp=True)),
        ),
        ipoib=(
            HostIpoib("rail0", connected=True, addressing=Addressing(("10.100.0.7/16",)), guid="a088c20300000101"),
            HostIpoib("ib1", addressing=Addressing(("10.101.0.7/16",), mtu=2044)),
        ),
        nameservers=("10.20.0.2",),
        search=("cluster.example",),
    )


def test_a_node_that_no_rule_fits_keeps_its_installers_way() -> None:
    """Nothing is laid on it, its ports need not be known."""
    assert not plan_network(RULES, HostParts("login1"))


def test_the_sites_word_on_a_mac_goes_before_the_bmcs() -> None:
    """Where a BMC reports none, or the wrong one, a sheet does: per interface, or as `boot_mac`."""
    reported = {"mgmt0": Mac("02:00:00:00:00:01"), "data0": Mac("02:00:00:00:00:02")}
    assert [port.mac for port in plan_network(RULES, replace(PARTS, macs=reported)).ports] == [*reported.values(), TWO]
    by_boot_mac = plan_network(RULES, replace(PARTS, boot_mac=Mac("02:00:00:00:00:09")))
    assert by_boot_mac.ports[0].mac == "02:00:00:00:00:09"


def test_an_only_port_is_the_one_that_boots() -> None:
    """Also where the BMC does not report that it does."""
    rules = NetworkRules((HostRule(("*",), RULE.ports[:1]),))
    alone = replace(INVENTORY, nics=(Nic("1", ONE),))
    assert plan_network(rules, replace(PARTS, inventory=alone)).ports[0].mac == ONE


def _with(**changes: object) -> Callable[[], HostParts]:
    return lambda: replace(PARTS, inventory=replace(INVENTORY, **changes))


UNKNOWN: dict[str, tuple[Callable[[], HostParts], str]] = {
    "never discovered": (lambda: HostParts("gpu007", addresses=ADDRESSES), "it was not discovered yet"),
    "two that boot": (
        _with(nics=(Nic("1", BOOT, boots=True), Nic("2", ONE, boots=True))),
        "from which it boots, is not known",
    ),
    "no such slot": (
        _with(nics=INVENTORY.nics[:2]),
        "MAC of data1 in slot 'NIC.Slot.2'; its BMC reports NIC.Embedded.1-1-1",
    ),
    "one slot twice": (
        _with(nics=(*INVENTORY.nics, Nic("NIC.Slot.2", Mac("02:00:00:00:00:05")))),
        "the slot of 2 ports",
    ),
    "one port twice": (lambda: replace(PARTS, macs={"data1": ONE}), "data1 and data0 are the same port"),
    "no such adapter": (_with(hcas=()), "no InfiniBand port 'IB.Slot.40', for rail0; its BMC reports none"),
    "no GUID": (_with(hcas=(replace(INVENTORY.hcas[0], guid=None),)), "does not report the GUID"),
}


@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_part_is_reported(name: str) -> None:
    """With the node, what its BMC reports instead, and what to do."""
    parts, expected = UNKNOWN[name]
    with pytest.raises(UsageError) as caught:
        plan_network(RULES, parts())
    assert expected in caught.value.message
    assert caught.value.where == "gpu007"
    assert caught.value.remedy
