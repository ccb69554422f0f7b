"""The lab's hosts: Linux namespaces that boot systemd from an installed disk and talk over real (virtual) wires."""

from clusterctl_lab.hosts.addresses import rail_interface, rail_network
from clusterctl_lab.hosts.command import Ran
from clusterctl_lab.hosts.leftovers import default_state_dir, erase_disks, sweep_leftovers
from clusterctl_lab.hosts.namespace_hosts import HostSettings, NamespaceHosts
from clusterctl_lab.hosts.running import ExitReason, Skeleton
from clusterctl_lab.hosts.sysctls import to_raise

__all__ = [
    "ExitReason",
    "HostSettings",
    "NamespaceHosts",
    "Ran",
    "Skeleton",
    "default_state_dir",
    "erase_disks",
    "rail_interface",
    "rail_network",
    "sweep_leftovers",
    "to_raise",
]
