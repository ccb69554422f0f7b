"""What `configure` gives to hosts: the variables of their roles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.roles.selection import GroupMember, RequestedRoles, play_variables
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl.ports import HostAddress
from clusterctl.steps.executor.reachability import SshAccess


def role_variables(context: SiteContext, ssh: SshAccess, hosts: Sequence[HostAddress]) -> Mapping[str, Any]:
    """Return the variables of a play over `hosts`. The site's values win over those that clusterctl derives."""
    states = {node.name: node for node in context.journal.states()}
    known = {name: ssh.address(node) for name, node in states.items()} | {host.name: host for host in hosts}
    nodes = {
        name: {"address": host.address, "host_key": host.host_key} for name, host in known.items() if host is not None
    }
    members = [member(states[host.name]) if host.name in states else GroupMember(host.name) for host in hosts]
    given = {"ssh_access_nodes": nodes, "ssh_access_node_users": [context.site.settings.ssh.user]}
    return given | play_variables(wanted(context.site), members)


def member(node: NodeState | NodeSummary) -> GroupMember:
    return GroupMember(node.name, node.location.rack, node.sku)


def driver_of(requested: RequestedRoles, node: NodeState) -> str:
    """Return the NVIDIA driver that the node was to get; empty where the site names none."""
    return str(requested.choose(member(node)).variables.get("nvidia_driver_version") or "")
