"""The fleet as a dynamic Ansible inventory: stages, SKUs and racks as groups, and how each host is reached."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.workspace import inventory, known_hosts_line, ssh_options
from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import state_dir
from clusterctl.operations.context import SiteContext
from clusterctl.ports import HostAddress
from clusterctl.steps.executor.reachability import SshAccess

KNOWN_HOSTS = "known_hosts"
"""File in the site's `state` folder: the pinned host keys of all hosts of the inventory."""
_Hosts = Mapping[str, tuple[NodeState, HostAddress]]


def list_hosts(context: SiteContext) -> dict[str, Any]:
    """Return all groups and hosts in the form of Ansible's `--list`; write the pinned host keys.

    A host is a node with an address and a pinned host key. Retired nodes are left out.
    """
    hosts, file = _hosts(context), _pin(context)
    groups: dict[str, list[str]] = {}
    for name, (node, _) in hosts.items():
        for group in _groups(node):
            groups.setdefault(group, []).append(name)
    nodes = {name: {"address": host.address, "host_key": host.host_key} for name, (_, host) in hosts.items()}
    variables = {"ssh_access_nodes": nodes, "ssh_access_node_users": [context.site.settings.ssh.user]}
    return {
        "_meta": {"hostvars": {name: _variables(node, host, file) for name, (node, host) in hosts.items()}},
        "all": {"children": sorted(groups), "vars": variables},
        **{group: {"hosts": names} for group, names in sorted(groups.items())},
    }


def host_variables(context: SiteContext, name: str) -> dict[str, Any]:
    """Return the variables of one host, in the form of Ansible's `--host`. Raises `UsageError` for no host."""
    hosts = _hosts(context)
    if name not in hosts:
        remedy = "clusterctl inventory --list prints the hosts: nodes with an address and a pinned host key"
        raise UsageError(f"{name!r} is no host of the inventory", where="--host", remedy=remedy)
    return _variables(*hosts[name], _pin(context))


def _hosts(context: SiteContext) -> _Hosts:
    settings = context.site.settings
    ssh = SshAccess(settings.ssh.user, context.site.path(settings.ssh.private_key))
    states = sorted(context.journal.states(), key=lambda state: state.name)
    found = {state.name: (state, ssh.address(state)) for state in states if state.stage is not Stage.RETIRED}
    return {name: (state, host) for name, (state, host) in found.items() if host is not None}


def _pin(context: SiteContext) -> Path:
    """Write the pinned host keys where they have changed; return their file."""
    file = state_dir(context.site) / KNOWN_HOSTS
    text = "".join(known_hosts_line(host) for _, host in _hosts(context).values()).encode()
    with disk_explained("the hosts' keys cannot be written", file):
        if not file.exists() or file.read_bytes() != text:
            write_whole(file, text, mode=0o600, over=True)
    return file.resolve()


def _groups(node: NodeState) -> list[str]:
    """Return the node's groups by names that Ansible takes: `gold`, `rack_A01`, `sku_lab_xe9680`."""
    named = (("rack", node.location.rack), ("sku", node.sku))
    return [_group(node.stage.value), *(f"{kind}_{_group(value)}" for kind, value in named if value)]


def _group(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text)


def _variables(node: NodeState, host: HostAddress, known_hosts: Path) -> dict[str, Any]:
    """Return how Ansible reaches the host, by its pinned key alone, and what the journal knows of the node."""
    reached: dict[str, Any] = inventory([host])["all"]["hosts"][host.name]
    return reached | {
        "ansible_ssh_common_args": shlex.join(ssh_options(known_hosts)),
        "clusterctl_stage": node.stage.value,
        "clusterctl_serial": node.serial,
        "clusterctl_sku": node.sku,
        "clusterctl_rack": node.location.rack,
        "clusterctl_unit": node.location.unit,
    }
