"""A host's network as files, in the words that its release understands. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusterctl.edges.pxe.answers.job import Series
from clusterctl.fleet.host_network import HostNetwork
from clusterctl.formats import netplan, networkd


def network_files(network: HostNetwork, series: Series) -> Mapping[str, str]:
    """Path → text, for `AnswerJob.files`; none where the site says nothing of the network.

    What debian-installer leaves has neither netplan nor systemd-resolved: networkd's files, and name servers in
    resolv.conf. netplan of 22.04 is 0.104 and cannot say an IPoIB interface's mode: those are networkd's there.
    """
    if not network:
        return {}
    match series:
        case Series.BOOKWORM:
            return networkd.files(network) | _resolv_conf(network)
        case Series.JAMMY:
            rails = networkd.files(replace(network, ports=(), bonds=(), vlans=()))
            return {netplan.FILE: netplan.netplan_file(network, infiniband=False)} | rails
        case Series.NOBLE:
            return {netplan.FILE: netplan.netplan_file(network)} | networkd.udev_rules(network)


def _resolv_conf(network: HostNetwork) -> dict[str, str]:
    if not network.nameservers:
        return {}
    search = f"search {' '.join(network.search)}\n" if network.search else ""
    return {"/etc/resolv.conf": search + "".join(f"nameserver {server}\n" for server in network.nameservers)}
