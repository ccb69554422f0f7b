"""A host's network as files, in the words that its release understands. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl.edges.pxe.answers.job import Series
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.formats.host import netplan, networkd
from clusterctl.formats.host import network as resolv_conf


def network_files(network: HostNetwork, series: Series) -> Mapping[str, str]:
    """Path → text, for `AnswerJob.files`; none where the site says nothing of the network.

    What debian-installer leaves has neither netplan nor systemd-resolved: networkd's files, and name servers in
    resolv.conf.
    """
    if not network:
        return {}
    if series is not Series.BOOKWORM:
        return {netplan.FILE: netplan.netplan_file(network)} | networkd.udev_rules(network)
    text = resolv_conf.resolv_conf(network)
    return networkd.files(network) | ({resolv_conf.FILE: text} if text else {})
