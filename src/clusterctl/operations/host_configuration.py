"""What hosts are given: the variables of their roles, and their network before anything is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.edges.site.host_networks import HostNetworks, host_networks
from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.roles.selection import Member, Wanted, play_variables
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.formats.host.netplan import FILE, netplan, netplan_file
from clusterctl.formats.host.networkd import udev_rules
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
    members = [member(states[host.name]) if host.name in states else Member(host.name) for host in hosts]
    given = {"ssh_access_nodes": nodes, "ssh_access_node_users": [context.site.settings.ssh.user]}
    return given | play_variables(wanted(context.site), members)


def member(node: NodeState) -> Member:
    return Member(node.name, node.location.rack, node.sku)


def driver_of(said: Wanted, node: NodeState) -> str:
    """Return the NVIDIA driver that the node was to get; empty where the site names none."""
    return str(said.choose(member(node)).variables.get("nvidia_driver_version") or "")


@dataclass(frozen=True, slots=True)
class PlannedNetwork:
    """One host's network.

    address   of the host; empty where the installer chooses it
    document  netplan's document
    files     netplan's and udev's files by path; other installers write the same in their own form
    problem   why the network is unknown; empty where it is known
    """

    name: str
    address: str
    document: Mapping[str, Any]
    files: Mapping[str, str]
    problem: str = ""

    def json(self) -> dict[str, Any]:
        return {"name": self.name, "address": self.address, "netplan": self.document, "problem": self.problem}

    def __str__(self) -> str:
        head = f"{self.name}: {self.address or 'address by its installer'}"
        if self.problem:
            return f"{head}\n  {self.problem}\n"
        texts = [f"{path}:\n{text}" for path, text in self.files.items()] or ["  the installer's own way\n"]
        return "\n".join((head, *texts))


def planned_networks(context: SiteContext, nodes: Sequence[NodeSummary]) -> tuple[PlannedNetwork, ...]:
    """Return the networks of nodes. Raises `UsageError` where the site's addresses are wrong."""
    known = host_networks(context.site)
    seen = {summary.name for summary in context.journal.summaries()}
    states = (context.journal.state(n.id) if n.name in seen else context.unseen(n.name) for n in nodes)
    return tuple(_planned(known, state) for state in states)


def _planned(known: HostNetworks, node: NodeState) -> PlannedNetwork:
    address = known.address(node.name)
    try:
        network = known.network(node)
    except UsageError as error:
        return PlannedNetwork(node.name, address, {}, {}, f"{error.message} — {error.remedy}")
    if not network:
        return PlannedNetwork(node.name, address, {}, {})
    return PlannedNetwork(node.name, address, netplan(network), {FILE: netplan_file(network), **udev_rules(network)})
