"""What Prometheus scrapes, from the journal: the exporters of installed nodes, as its service discovery reads them.

https://prometheus.io/docs/prometheus/latest/configuration/configuration/#file_sd_config
https://prometheus.io/docs/prometheus/latest/http_sd/
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from clusterctl.edges.site import Site
from clusterctl.edges.site.roles import shipped_roles, wanted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Stage
from clusterctl.fleet.roles.selection import Choice, RequestedRoles
from clusterctl.fleet.roles.specification import Roles
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.operations.context import SiteContext
from clusterctl.operations.documents import write_document
from clusterctl.operations.host_configuration import member

EXPORTERS: Mapping[str, str] = {
    "node_exporter": "node_exporter_listen_address",
    "dcgm_exporter": "dcgm_exporter_listen_address",
}
"""Roles that bring an exporter, and the variable that holds its port."""
BMC = "bmc"
"""The `exporter` label of BMCs: a multi-target exporter asks them, so their targets have no port."""
_WITHOUT_SYSTEM = frozenset({Stage.SEEN, Stage.DISCOVERED, Stage.RETIRED})
_PORT = re.compile(r"[^\n]*:([0-9]{1,5})")

Node = NodeState | NodeSummary
TargetGroup = dict[str, Any]
"""`targets` (HOST:PORT) and `labels` of a group in Prometheus's file_sd and http_sd JSON."""


def scrape_targets(nodes: Iterable[Node], requested: RequestedRoles, roles: Roles) -> list[TargetGroup]:
    """Return one group per exporter and node, by exporter and node name.

    A node is in it while it has an installed system and an address: not before its install, not while it waits for a
    new one, not when it is retired. Its exporters are those of its roles. Raises `UsageError` where a variable has no
    port.
    """
    found: dict[str, list[TargetGroup]] = {exporter: [] for exporter in (*EXPORTERS, BMC)}
    for node in sorted(nodes, key=lambda node: natural_key(node.name)):
        if not has_targets(node):
            continue
        for exporter, target in _targets(node, requested.choose(member(node)), roles):
            found[exporter].append({"targets": [target], "labels": _labels(exporter, node)})
    return [group for groups in found.values() for group in groups]


class AddressedNode(Protocol):
    """A node, as far as it depends on it whether it is scraped."""

    @property
    def stage(self) -> Stage: ...
    @property
    def address(self) -> str: ...


def has_targets(node: AddressedNode) -> bool:
    """Return whether a node has an installed system and an address: only then its exporters are scraped."""
    return node.stage not in _WITHOUT_SYSTEM and bool(node.address)


def _targets(node: Node, choice: Choice, roles: Roles) -> Iterator[tuple[str, str]]:
    for exporter, variable in EXPORTERS.items():
        if exporter in choice.roles:
            value = choice.variables.get(variable, roles[exporter].variables[variable].default)
            yield exporter, f"{_host(node.address)}:{_port(variable, value, node.name)}"
    if node.bmc:
        yield BMC, node.bmc


def _labels(exporter: str, node: Node) -> dict[str, str]:
    """Return the labels; Prometheus drops those that are empty."""
    unit = "" if node.location.unit is None else str(node.location.unit)
    return {"exporter": exporter, "node": node.name, "rack": node.location.rack, "unit": unit, "sku": node.sku}


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _port(variable: str, value: object, node: str) -> int:
    """Return the port of `ADDRESS:PORT`; the address may be a template that Ansible renders on the node."""
    match = _PORT.fullmatch(str(value))
    port = int(match[1]) if match else 0
    if not 0 < port < 1 << 16:
        message = f"{variable} of {node} is {str(value)!r}, which ends in no port"
        raise UsageError(message, where="configure.variables", remedy="write ADDRESS:PORT or :PORT")
    return port


def site_targets(site: Site, nodes: Iterable[Node]) -> list[TargetGroup]:
    """Return the groups of these nodes of a site. Raises `UsageError`."""
    return scrape_targets(nodes, wanted(site), shipped_roles())


def write_targets(context: SiteContext, file: Path) -> int:
    """Write the site's targets as JSON, whole or not at all, readable for Prometheus; return how many.

    Raises `UsageError`.
    """
    groups = site_targets(context.site, context.journal.summaries())
    write_document(file, json.dumps(groups, indent=1) + "\n", option="FILE", force=True)
    file.chmod(0o644)
    return len(groups)
