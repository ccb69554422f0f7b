"""The fleet as an Ansible inventory: groups by stage, SKU and rack, and how Ansible reaches each node.

Source of the form: https://docs.ansible.com/ansible/latest/dev_guide/developing_inventory.html
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.workspace import host_variables, ssh_options
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl.ports import HostAddress

Variables = Mapping[str, Any]


def read(context: SiteContext) -> Mapping[str, Any]:
    """Return the inventory of all nodes but the retired ones: what `--list` of an inventory script prints."""
    nodes = _nodes(context)
    groups = {name: {"hosts": hosts} for name, hosts in _groups(nodes).items()}
    return {"_meta": {"hostvars": {node.name: _variables(context, node) for node in nodes}}, **groups}


def read_host(context: SiteContext, name: str) -> Variables:
    """Return the variables of one node: what `--host` prints. Raises `UsageError` for a node that `read` leaves out."""
    if all(node.name != name for node in context.nodes()):
        raise UsageError(f"there is no node {name!r}", where="--host", remedy="clusterctl nodes lists their names")
    (node,) = context.states([name])
    if node.stage is Stage.RETIRED:
        raise UsageError(f"{name} is retired", where="--host", remedy="name a node that `--list` prints")
    return _variables(context, node)


def _nodes(context: SiteContext) -> list[NodeState]:
    known = {node.name: node for node in context.journal.states()}
    found = [known.get(node.name) or context.unseen(node.name) for node in context.nodes()]
    return [node for node in found if node.stage is not Stage.RETIRED]


def _address(context: SiteContext, node: NodeState) -> HostAddress | None:
    """Return where a node is reached; None without an address or a pinned host key: no key is trusted on use."""
    if not (node.address and node.host_key):
        return None
    settings = context.site.settings.ssh
    return HostAddress(node.name, node.address, settings.user, node.host_key, context.site.path(settings.private_key))


def _groups(nodes: Sequence[NodeState]) -> Mapping[str, Sequence[str]]:
    """Return the names of the nodes by group. `gold` is the gold pool, so that no job runs on a node that is held."""
    now = current_time()
    held = [node.name for node in nodes if node.held(now)]
    stages = {
        _identifier(stage.value): [node.name for node in nodes if node.stage is stage]
        for stage in Stage
        if stage is not Stage.RETIRED
    }
    pool = [node.name for node in nodes if node.in_pool(now)]
    skus = _named_groups("sku", ((node.sku, node.name) for node in nodes))
    racks = _named_groups("rack", ((node.location.rack, node.name) for node in nodes))
    return {**stages, Stage.GOLD.value: pool, "held": held, **skus, **racks}


def _named_groups(kind: str, members: Iterable[tuple[str, str]]) -> Mapping[str, Sequence[str]]:
    """Return groups such as `rack_A01`. Where two names give the same identifier, a digest keeps them apart."""
    names: dict[str, list[str]] = defaultdict(list)
    for value, node in members:
        if value:
            names[value].append(node)
    identifiers: dict[str, list[str]] = defaultdict(list)
    for value in names:
        identifiers[f"{kind}_{_identifier(value)}"].append(value)
    groups = {}
    for identifier, values in sorted(identifiers.items()):
        for value in values:
            digest = f"_{hashlib.sha256(value.encode()).hexdigest()[:8]}" if len(values) > 1 else ""
            groups[identifier + digest] = names[value]
    return groups


def _identifier(text: str) -> str:
    """Return the text with `_` for each character that Ansible does not accept in the name of a group."""
    return re.sub(r"[^A-Za-z0-9_]", "_", text)


def _variables(context: SiteContext, node: NodeState) -> Variables:
    """Return the variables of a node. One without address or pinned host key has no address, and ssh refuses it."""
    host = _address(context, node)
    reach = {**host_variables(host), "ansible_ssh_args": _ssh_args(host.host_key)} if host else {}
    known = {
        "clusterctl_stage": node.stage.value,
        "clusterctl_serial": node.serial or node.expected_serial or "",
        "clusterctl_sku": node.sku,
        "clusterctl_rack": node.location.rack,
        "clusterctl_unit": node.location.unit,
    }
    return {name: _literal(value) for name, value in {"ansible_ssh_args": _ssh_args(""), **reach, **known}.items()}


def _ssh_args(host_key: str) -> str:
    """Return arguments of ssh(1) that accept `host_key` and no other key. ssh runs echo to read it: no file is written.

    They are Ansible's `ssh_args`, which come first on its command line: ssh takes the first value of an option.
    """
    options = {"ControlMaster": "auto", "ControlPersist": "60s"}
    if host_key:
        key = " ".join(host_key.split()[:2])  # without its comment
        options["KnownHostsCommand"] = f"/bin/echo %H {key}"
    return shlex.join(ssh_options(Path("/dev/null"), **options))


def _literal(value: object) -> object:
    """Return the value so that Ansible does not run it as a template: a machine reports its own serial."""
    is_template = isinstance(value, str) and any(mark in value for mark in ("{{", "{%", "{#"))
    return {"__ansible_unsafe": value} if is_template else value
