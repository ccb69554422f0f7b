"""`network` of the site file: what an operator writes becomes what each host is given."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.site import load_site
from clusterctl.edges.site.host_networks import HostNetworks, host_networks
from clusterctl.fleet.network.host_network import Addressing, HostBond, HostIpoib, HostNetwork, HostPort, HostVlan
from clusterctl.fleet.node import Guid, Hca, Inventory, Mac, Nic, NodeId, Serial
from clusterctl.fleet.state import NodeState
from tests.edges.site.ready import write_ready_site
from tests.paths import ROOT, needs_checkout

NETWORK = """
network:
  addresses: addresses.csv
  nameservers: [10.20.0.2]
  search: [cluster.example]
  rules:
    - nodes: ["login*"]
      ports:
        - {name: mgmt0, port: boot, address: dhcp}
    - ports:
        - {name: mgmt0, port: boot, address: sheet, network: 10.20.0.0/16, gateway: 10.20.255.254}
        - {name: data0, port: NIC.Slot.1}
        - {name: data1}
      bonds:
        - {name: bond0, members: [data0, data1], mode: active-backup, mtu: 9000}
      vlans:
        - {name: storage, link: bond0, id: 120, address: number, network: 10.30.0.0/16, offset: 256, mtu: 9000}
      ipoib:
        rails: 2
        adapters: [IB.Slot.40, IB.Slot.41]
        network: 10.10{rail}.0.0/16
        address: number
        connected: true
        mtu: 65520
"""
SHEET = "name,bmc_address,address\nnode017,10.9.0.1,\nnode018,10.9.0.2,10.20.0.18\nlogin1,10.9.0.3,10.20.1.1\n"
ADDRESSES = "node,interface,address,mac\nnode017,mgmt0,10.20.0.17/16,\nnode017,data1,,5CED.8C00.0003\n"
INVENTORY = Inventory(
    "Dell Inc.",
    "PowerEdge XE9680",
    Serial("S1"),
    nics=(Nic("NIC.Embedded.1", Mac("5c:ed:8c:00:00:01"), boots=True), Nic("NIC.Slot.1", Mac("5c:ed:8c:00:00:02"))),
    hcas=tuple(Hca(f"IB.Slot.4{n}", "ConnectX-7", guid=Guid(f"a088c2030000010{n}")) for n in range(2)),
)


def networks(tmp_path: Path, network: str = NETWORK) -> HostNetworks:
    folder = write_ready_site(tmp_path / "site")
    site = folder / "site.yml"
    site.write_text(site.read_text() + network)
    (folder / "bmcs.csv").write_text(SHEET)
    (folder / "addresses.csv").write_text(ADDRESSES)
    return host_networks(load_site(folder))


def test_a_host_is_given_the_network_of_the_site_file(tmp_path: Path) -> None:
    """Ports by slot, by MAC and by booting; bond, VLAN, rails; addresses of both sheets and by number."""
    found = networks(tmp_path)
    assert found.network(NodeState(NodeId("1"), "node017", inventory=INVENTORY)) == HostNetwork(
        ports=(
            HostPort("5c:ed:8c:00:00:01", "mgmt0", Addressing(("10.20.0.17/16",), gateway="10.20.255.254")),
            HostPort("5c:ed:8c:00:00:02", "data0"),
            HostPort("5c:ed:8c:00:00:03", "data1"),
        ),
        bonds=(HostBond("bond0", ("5c:ed:8c:00:00:02", "5c:ed:8c:00:00:03"), "active-backup", Addressing(mtu=9000)),),
        vlans=(HostVlan("storage", "bond0", 120, Addressing(("10.30.1.17/16",), mtu=9000)),),
        ipoib=tuple(
            HostIpoib(f"rail{n}", True, Addressing((f"10.10{n}.0.17/16",), mtu=65520), f"a088c2030000010{n}")
            for n in range(2)
        ),
        nameservers=("10.20.0.2",),
        search=("cluster.example",),
    )
    assert [found.address(name) for name in ("node017", "node018", "login1")] == [
        "10.20.0.17",
        "10.20.0.18",
        "10.20.1.1",
    ]


def test_the_first_rule_that_fits_holds(tmp_path: Path) -> None:
    """A login node has its own, before the rule for all."""
    found = networks(tmp_path).network(NodeState(NodeId("3"), "login1", inventory=INVENTORY))
    assert found.ports == (HostPort("5c:ed:8c:00:00:01", "mgmt0", Addressing(dhcp=True)),)
    assert found.ipoib == ()


def test_a_site_without_networks_leaves_them_to_the_installer(tmp_path: Path) -> None:
    """Only the sheet's own address is known then."""
    found = networks(tmp_path, "")
    assert not found.network(NodeState(NodeId("1"), "node017", inventory=INVENTORY))
    assert [found.address(name) for name in ("node017", "node018")] == ["", "10.20.0.18"]


def test_rails_without_adapters_have_the_kernels_names(tmp_path: Path) -> None:
    """They count from where the site's rails count."""
    network = """
network:
  rules:
    - nodes: ["node*"]
      ipoib: {rails: 2, first_rail: 1, network: "10.10{rail}.0.0/16", address: number}
"""
    found = networks(tmp_path, network)
    node = found.network(NodeState(NodeId("1"), "node017"))
    assert node.ipoib == (
        HostIpoib("ib1", addressing=Addressing(("10.101.0.17/16",))),
        HostIpoib("ib2", addressing=Addressing(("10.102.0.17/16",))),
    )


@needs_checkout
def test_the_example_of_the_page_is_right(tmp_path: Path) -> None:
    """What docs/how-to/host-network.md shows can be copied; its bond carries the storage network, its rails count from 0."""
    page = (ROOT / "docs/how-to/host-network.md").read_text()
    example = page.split("```yaml\n")[1].split("```")[0]
    found = networks(tmp_path, f"\n{example}")
    assert found.addresses.interfaces["node017"] == {
        "mgmt0": "10.20.0.17/16",
        "storage": "10.30.0.17/16",
        **{f"rail{rail}": f"10.10{rail}.0.17/16" for rail in range(8)},
    }
