"""Networks that a site may want for a host, by the name of their goldens' folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from clusterctl.fleet.network.host_network import Addressing, HostBond, HostIpoib, HostNetwork, HostPort, HostVlan

GOLDENS = Path(__file__).parent / "data" / "host_network"
BOOT, FIRST, SECOND = "5c:ed:8c:00:00:01", "5c:ed:8c:00:00:02", "5c:ed:8c:00:00:03"

STATIC = HostNetwork(
    ports=(HostPort(BOOT, "mgmt0", Addressing(("10.20.0.17/16",), gateway="10.20.0.1")),),
    nameservers=("10.20.0.2", "10.20.0.3"),
    search=("cluster.example", "example"),
)
DHCP = HostNetwork(ports=(HostPort(BOOT, "", Addressing(dhcp=True)),), nameservers=("10.20.0.2",))
TWO_FAMILIES = HostNetwork(
    ports=(HostPort(BOOT, "mgmt0", Addressing(("10.20.0.17/16", "fd20::17/64"), gateway="fd20::1", mtu=1500)),),
    nameservers=("fd20::2",),
)
BONDED = HostNetwork(
    ports=(
        HostPort(BOOT, "mgmt0", Addressing(("10.20.0.17/16",), gateway="10.20.0.1")),
        HostPort(FIRST, "data0"),
        HostPort(SECOND),
    ),
    bonds=(HostBond("bond0", (FIRST, SECOND), addressing=Addressing(mtu=9000)),),
    vlans=(
        HostVlan("storage", "bond0", 120, Addressing(("10.30.0.17/16",), mtu=9000)),
        HostVlan("ipmi", BOOT, 7, Addressing(("10.40.0.17/24",))),
    ),
    nameservers=("10.20.0.2",),
)
RAILS = HostNetwork(
    ports=(HostPort(BOOT, "", Addressing(dhcp=True)),),
    ipoib=(
        HostIpoib("ib0", addressing=Addressing(("10.100.0.17/16",), mtu=2044), guid="a088c20300000101"),
        HostIpoib("ib1", connected=True, addressing=Addressing(("10.101.0.17/16",), mtu=65520)),
    ),
)
NETWORKS: Mapping[str, HostNetwork] = {
    "static": STATIC,
    "dhcp": DHCP,
    "two_families": TWO_FAMILIES,
    "bonded": BONDED,
    "rails": RAILS,
}
