"""A host's network as netplan and networkd want it: goldens that people can read, and the real tools as judges."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.formats.host.netplan import FILE, netplan, netplan_file
from clusterctl.formats.host.network import Resolver, parse_resolv_conf, resolv_conf
from clusterctl.formats.host.networkd import UDEV_RULES, files
from tests.formats.host_networks import BONDED, DHCP, GOLDENS, NETWORKS, RAILS, STATIC

needs_netplan = pytest.mark.skipif(shutil.which("netplan") is None, reason="netplan.io is not installed")


def _golden(name: str) -> dict[str, str]:
    folder = GOLDENS / name
    return {f"/{file.relative_to(folder)}": file.read_text() for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("name", NETWORKS)
def test_each_network_is_written_as_its_golden_file_has_it(name: str) -> None:
    """Every byte of what a host is given is looked at by an operator before it changes."""
    network = NETWORKS[name]
    assert {FILE: netplan_file(network), **files(network)} == _golden(name)


@needs_netplan
@pytest.mark.parametrize("name", NETWORKS)
def test_netplan_itself_understands_what_it_is_given(name: str, tmp_path: Path) -> None:
    """`netplan generate` makes networkd's files of it, without a word of complaint."""
    made = _generated(NETWORKS[name], tmp_path)
    assert made


@needs_netplan
def test_netplan_and_our_own_files_mean_the_same(tmp_path: Path) -> None:
    """What a host is given does not depend on who installs it: address, gateway, bond, VLAN and MTU, link by link."""
    for name, network in NETWORKS.items():
        theirs = _generated(network, tmp_path / name)
        for link in network.links:
            ours = files(network)[f"/etc/systemd/network/10-clusterctl-{link.label}.network"]
            assert _meaning(ours) == _meaning(theirs[f"10-netplan-{link.label}.network"]), link.label


def test_a_boot_waits_for_the_uplink_only() -> None:
    """A missing cable anywhere else does not stall a boot for two minutes."""
    document = netplan(BONDED)["network"]
    waited = [
        name
        for kind in ("ethernets", "bonds", "vlans")
        for name, own in document[kind].items()
        if "optional" not in own
    ]
    assert waited == ["mgmt0"]


def test_an_ipoib_interface_is_named_by_its_guid_and_set_to_its_mode() -> None:
    """By the last eight bytes of its address where the GUID is known, else by the kernel's name, which it keeps."""
    assert files(RAILS)[UDEV_RULES].splitlines()[1:] == [
        'ACTION=="add", SUBSYSTEM=="net", ATTR{type}=="32", ATTR{address}=="*:a0:88:c2:03:00:00:01:01", NAME="ib0"',
        'ACTION=="add", SUBSYSTEM=="net", ATTR{type}=="32", KERNEL=="ib1", ATTR{mode}="connected"',
    ]


def test_name_servers_are_written_as_they_are_read() -> None:
    """What `resolv_conf` writes, `parse_resolv_conf` reads; where the site names none, DHCP's stand."""
    assert parse_resolv_conf(resolv_conf(STATIC)) == Resolver(STATIC.nameservers, STATIC.search)
    assert resolv_conf(RAILS) == ""
    odd = "; made by hand\noptions ndots:1\ndomain old.example\nnameserver 10.0.0.1 # first\nsearch a b\n"
    assert parse_resolv_conf(odd) == Resolver(("10.0.0.1",), ("a", "b"))


def test_an_empty_network_is_the_installers_way() -> None:
    """Without settings nothing is written but the empty document."""
    empty = HostNetwork()
    assert not empty
    assert files(empty) == {}
    assert netplan(empty) == {"network": {"version": 2, "renderer": "networkd"}}
    assert DHCP.uplink == DHCP.ports[0]


def _generated(network: HostNetwork, root: Path) -> dict[str, str]:
    """Name → text of the .network files that netplan makes."""
    file = root / FILE.lstrip("/")
    file.parent.mkdir(parents=True)
    file.write_text(netplan_file(network))
    file.chmod(0o600)
    ran = subprocess.run(["netplan", "generate", "--root-dir", str(root)], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")
    return {file.name: file.read_text() for file in (root / "run/systemd/network").glob("*.network")}


def _meaning(text: str) -> dict[str, list[str]]:
    """The addresses, routes, names and groups of a .network file."""
    keys = ("Address", "Gateway", "DNS", "Domains", "DHCP", "Bond", "VLAN", "MTUBytes", "IPv6AcceptRA")
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key in keys:
            found.setdefault(key, []).extend(value.split())
    return {key: sorted(values) for key, values in found.items()}
