"""Lease files and lists of machines, as servers and vendors write them; networks as people do."""

from __future__ import annotations

from pathlib import Path

import pytest

from clusterctl.fleet.bmc.observation import Lease
from clusterctl.fleet.bmc.targets import targets
from clusterctl.fleet.errors import UsageError
from clusterctl.formats.identifiers import read_mac
from clusterctl.formats.site.leases import read_leases
from clusterctl.formats.site.sheets import read_bmc_list

DATA = Path(__file__).parent / "data"
LEASES = (
    Lease("10.20.0.11", read_mac("02:00:00:00:00:11"), "idrac-one"),
    Lease("10.20.0.12", read_mac("02:00:00:00:00:12")),
)


@pytest.mark.parametrize("file", ["dhcpd.leases", "kea-leases4.csv", "dnsmasq.leases"])
def test_each_server(file: str) -> None:
    """Who has an address now: the last word of the server counts; who gave it back, or has no MAC, has none."""
    found = {lease.address: lease for lease in read_leases((DATA / file).read_text(), file)}
    assert found == {lease.address: lease for lease in LEASES}


def test_a_host_with_a_fixed_address() -> None:
    """Of dhcpd's own file, or of what it received over OMAPI; its name is the host's."""
    text = "host bmc7 {\n  hardware ethernet 2:0:0:0:0:7;\n}\nhost bmc8 { hardware ethernet 02:00:00:00:00:08; fixed-address 10.0.0.8; }"
    [lease] = read_leases(text, "dhcpd.conf")
    assert lease == Lease("10.0.0.8", read_mac("02:00:00:00:00:08"), "bmc8")


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", "x:1"),
        ("hello\n", "x:1"),
        ("lease 10.0.0.1 {\n hardware ethernet zz;\n}\n", "x:1 hardware ethernet"),
        ("address,hwaddr,valid_lifetime\n10.0.0.1,zz,3600\n", "x:2 hwaddr"),
        ("address,valid_lifetime\n10.0.0.1,3600\n", "x:1"),
        ("1700000000 02:00:00:00:00:01 10.0.0.1 * *\nnonsense\n", "x:2"),
        ("1700000000 zz 10.0.0.1 * *\n", "x:1"),
    ],
)
def test_what_is_no_lease_file(text: str, where: str) -> None:
    """Refused with file and line, never read as «no leases»."""
    with pytest.raises(UsageError) as caught:
        read_leases(text, "x")
    assert caught.value.where == where
    assert caught.value.remedy


def test_a_lease_that_is_being_written() -> None:
    """The server appends; a block without its end is not there yet."""
    whole = (DATA / "dhcpd.leases").read_text()
    assert len(read_leases(f"{whole}lease 10.20.0.99 {{\n  hardware eth", "x")) == len(LEASES)


@pytest.mark.parametrize(
    "text", ["02:00:00:00:00:AB", "02-00-00-00-00-ab", "0200.0000.00ab", "0200000000AB", " 0200000000ab "]
)
def test_macs(text: str) -> None:
    """In each of the ways that people write them."""
    assert read_mac(text) == "02:00:00:00:00:ab"


@pytest.mark.parametrize(
    "text", ["", "02:00:00:00:00", "02:00:00:00:00:gg", "0:0:0:0:0:1", "00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"]
)
def test_what_is_no_mac(text: str) -> None:
    """Also an impossible value."""
    with pytest.raises(ValueError, match="MAC"):
        read_mac(text)


def test_a_vendors_list() -> None:
    """Headings as vendors have them; a row shows no password."""
    text = "System S/N,BMC MAC,IPMI User,Unique Password,Rack,U\nS1,0200000000AB,ADMIN,Abc-123-xyz,A01,U4\nS2,,,,,\n"
    one, two = read_bmc_list(text, "v.csv")
    assert (one.machine.serial, one.machine.bmc_mac, one.user, one.machine.rack, one.machine.unit) == (
        "S1",
        "02:00:00:00:00:ab",
        "ADMIN",
        "A01",
        4,
    )
    assert one.password == "Abc-123-xyz"
    assert "Abc-123" not in repr(one)
    assert two.machine.bmc_mac is None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("name,rack\nn1,A01\n", "v:1"),
        ("serial,sn\nS1,S1\n", "v:1"),
        ("serial,rack\n,A01\n", "v:2"),
        ("serial,mac\nS1,zz\n", "v:2 bmc_mac"),
        ("serial,u\nS1,99\n", "v:2 unit"),
        ("serial\nS1\ns1\n", "v:3"),
        ("serial,mac\nS1,020000000001\nS2,02:00:00:00:00:01\n", "v:3"),
        ("serial,password,password_ref\nS1,geheim-geheim,file:x\n", "v:2"),
    ],
)
def test_wrong_lists(text: str, where: str) -> None:
    """Refused with file, line and column; a password is not repeated."""
    with pytest.raises(UsageError) as caught:
        read_bmc_list(text, "v")
    assert caught.value.where == where
    assert "geheim" not in str(caught.value)


def test_addresses_of_networks() -> None:
    """Each once, without network and broadcast addresses, less what is excluded."""
    assert targets(["10.0.0.0/30", "10.0.0.0/29"], ["10.0.0.4/31"]) == tuple(f"10.0.0.{n}" for n in (1, 2, 3, 6))
    assert targets(["10.0.0.7"]) == ("10.0.0.7",)
    assert targets(["fd00::/126"])[0] == "fd00::1"
    assert len(targets(["10.0.0.0/16"])) == 65_534
    assert targets(["8.8.8.8/32"], public=True) == ("8.8.8.8",)


@pytest.mark.parametrize("network", ["10.0.0.0/7", "172.16.0.0/11", "192.168.0.0/15", "0.0.0.0/32", "9.0.0.0/30"])
def test_networks_that_reach_into_the_internet(network: str) -> None:
    """A private network that is written too large is not private."""
    with pytest.raises(UsageError) as caught:
        targets([network], most=1 << 30)
    assert network in caught.value.message
