"""What `configure` gives to hosts: the variables of their roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.roles.selection import GroupMember, RequestedRoles, play_variables
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl.operations.known_hosts import KnownHost
from clusterctl.ports import HostAddress


def role_variables(
    context: SiteContext, known: Mapping[str, KnownHost], hosts: Sequence[HostAddress]
) -> Mapping[str, Any]:
    """Return the variables of a play over `hosts`. The site's values win over those that clusterctl derives.

    known: all hosts of the site by name, so that users of one host reach the others
    """
    nodes = {
        name: {"address": host.address, "host_key": host.host_key}
        for name, host in sorted(known.items())
        if host.address and host.host_key
    }
    nodes |= {host.name: {"address": host.address, "host_key": host.host_key} for host in hosts}
    members = [
        GroupMember(one.name, one.rack, one.sku) if (one := known.get(host.name)) else GroupMember(host.name)
        for host in hosts
    ]
    given = {"ssh_access_nodes": nodes, "ssh_access_node_users": [context.site.settings.ssh.user]}
    return given | play_variables(wanted(context.site), members)


def member(node: NodeState | NodeSummary) -> GroupMember:
    return GroupMember(node.name, node.location.rack, node.sku)


def driver_of(requested: RequestedRoles, node: NodeState) -> str:
    """Return the NVIDIA driver that the node was to get; empty where the site names none."""
    return str(requested.choose(member(node)).variables.get("nvidia_driver_version") or "")
