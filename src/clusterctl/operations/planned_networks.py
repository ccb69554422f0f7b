"""`clusterctl plan --network`: what each host will be given as its network, before anything is installed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.edges.site.host_networks import HostNetworks, host_networks
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.formats.host.netplan import FILE, netplan, netplan_file
from clusterctl.formats.host.networkd import udev_rules
from clusterctl.operations.context import SiteContext


@dataclass(frozen=True, slots=True)
class PlannedNetwork:
    """`address`: by which the host is reached, empty where the installer decides. `files` are netplan's and udev's;
    installers without netplan say the same otherwise. `problem` is why the network cannot be told, empty where it can.
    """

    name: str
    address: str
    document: dict[str, Any]
    files: dict[str, str]
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
    """Of nodes as the site and the journal know them; raises `UsageError` where the site's addresses are wrong."""
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
