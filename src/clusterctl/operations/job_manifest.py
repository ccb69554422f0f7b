"""The manifest of an attempt: all that may differ between two attempts, kept as evidence in the journal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from clusterctl.edges.site.roles import wanted
from clusterctl.edges.workspace import reachable
from clusterctl.fleet.finding import Digest, Evidence
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.host_configuration import driver_of
from clusterctl.operations.operation import current_time

SOURCE = "job manifest"


def manifest(
    context: SiteContext, part: Mapping[str, Any], variables: Sequence[tuple[str, str]], nodes: Sequence[str]
) -> Evidence:
    """Return the manifest of an attempt on these nodes, in the order of their ranks.

    `services` of the user's part: names to be reached from here, or how the user's own machine has reached each.
    """
    sets: dict[str, Mapping[str, Any]] = {}
    of_nodes: dict[str, str] = {}
    for state in context.named(nodes):
        found = _versions(context, state)
        name = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:12]
        sets[name], of_nodes[state.name] = found, name
    given = part["services"]
    services = dict(given) if isinstance(given, Mapping) else {service: reachable(service) for service in given}
    document = {
        "version": 1,
        **part,
        "services": services,
        "variables": dict(variables),
        "nodes": list(nodes),
        "serials": {state.name: state.serial or "" for state in context.named(nodes)},
        "node_sets": of_nodes,
        "sets": sets,
    }
    content = json.dumps(document, sort_keys=True).encode()
    return Evidence(SOURCE, "controller", current_time(), context.site.origin, content)


def _versions(context: SiteContext, state: NodeState) -> Mapping[str, Any]:
    """Return SKU, firmware and driver of a node, as the journal has them; `driver` is what it was to get."""
    inventory = state.inventory
    firmware = {one.component: one.version for one in (inventory.firmware or ())} if inventory else {}
    adapters = sorted({f"{one.model} {one.firmware}" for one in (inventory.hcas or ())}) if inventory else []
    return {
        "sku": state.sku,
        "bios": inventory.bios_version if inventory else "",
        "bmc": inventory.bmc_firmware if inventory else "",
        "firmware": firmware,
        "adapters": adapters,
        "driver": driver_of(wanted(context.site), state),
    }


def read_manifest(context: SiteContext, digest: str) -> Mapping[str, Any]:
    """Return a kept manifest; empty where the journal does not hold it."""
    found = next(iter(context.evidence([Digest(digest)]).values()), None) if digest else None
    document = json.loads(found.content) if found is not None else {}
    return document if isinstance(document, Mapping) else {}
