"""The fleet as a dynamic Ansible inventory: stages, SKUs and racks as groups, and how each host is reached."""

from __future__ import annotations

import hashlib
import re
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clusterctl.edges.ansible.workspace import inventory, ssh_options
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Stage
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import current_time
from clusterctl.ports import HostAddress

_NO_FILE = Path("/dev/null")
_Hosts = Mapping[str, tuple[NodeState, HostAddress]]


def list_hosts(context: SiteContext) -> dict[str, Any]:
    """Return all groups and hosts in the form of Ansible's `--list`. Write nothing.

    A host is a node with an address and a pinned host key. Retired nodes are left out.
    """
    hosts = _hosts(context)
    groups = _groups([node for node, _ in hosts.values()])
    nodes = {name: {"address": host.address, "host_key": host.host_key} for name, (_, host) in hosts.items()}
    variables = {"ssh_access_nodes": nodes, "ssh_access_node_users": [context.site.settings.ssh.user]}
    return {
        "_meta": {"hostvars": {name: _variables(node, host) for name, (node, host) in hosts.items()}},
        "all": {"children": sorted(groups), "vars": variables},
        **{group: {"hosts": names} for group, names in sorted(groups.items())},
    }


def host_variables(context: SiteContext, name: str) -> dict[str, Any]:
    """Return the variables of one host, in the form of Ansible's `--host`. Raises `UsageError` for no host."""
    hosts = _hosts(context)
    if name not in hosts:
        remedy = "clusterctl inventory --list prints the hosts: nodes with an address and a pinned host key"
        raise UsageError(f"{name!r} is no host of the inventory", where="--host", remedy=remedy)
    return _variables(*hosts[name])


def _hosts(context: SiteContext) -> _Hosts:
    found: dict[str, tuple[NodeState, HostAddress]] = {}
    for state in context.journal.each_state():
        host = _address(context, state) if state.stage is not Stage.RETIRED else None
        if host is not None:  # without the reports, which take gigabytes for thousands of nodes
            found[state.name] = (replace(state, reports={}, inventory=None), host)
    return dict(sorted(found.items()))


def _address(context: SiteContext, node: NodeState) -> HostAddress | None:
    """Return where a node is reached; None without an address or a pinned host key: no key is trusted on use."""
    if not (node.address and node.host_key):
        return None
    ssh = context.site.settings.ssh
    return HostAddress(node.name, node.address, ssh.user, node.host_key, context.site.path(ssh.private_key))


def _groups(nodes: Sequence[NodeState]) -> dict[str, list[str]]:
    """Return the nodes by group, by names that Ansible takes: `gold`, `held`, `rack_A01`, `sku_lab_xe9680`.

    A held node is in `held` and in no group of a stage, so that `gold` is the published gold pool.
    """
    now = current_time()
    stages = _members(("held" if node.held(now) else node.stage.value, node) for node in nodes)
    racks = _named_groups("rack", _members((node.location.rack, node) for node in nodes))
    skus = _named_groups("sku", _members((node.sku, node) for node in nodes))
    return {**{_group(stage): names for stage, names in stages.items()}, **racks, **skus}


def _members(pairs: Iterable[tuple[str, NodeState]]) -> dict[str, list[str]]:
    """Return the names of the nodes by value; nodes without a value are left out."""
    members: dict[str, list[str]] = defaultdict(list)
    for value, node in pairs:
        if value:
            members[value].append(node.name)
    return members


def _named_groups(kind: str, members: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """Return groups such as `rack_A01`. Where two values give the same group, a digest of the value follows."""
    count = Counter(_group(value) for value in members)

    def name(value: str) -> str:
        digest = f"_{hashlib.sha256(value.encode()).hexdigest()[:8]}" if count[_group(value)] > 1 else ""
        return f"{kind}_{_group(value)}{digest}"

    return {name(value): names for value, names in members.items()}


def _group(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", "_", text)


def _variables(node: NodeState, host: HostAddress) -> dict[str, Any]:
    """Return how Ansible reaches the host, by its pinned key alone, and what the journal knows of the node.

    ssh takes the first value of an option, so `ssh_args` and `host_key_checking` of an ansible.cfg must not precede.
    """
    reached: dict[str, Any] = inventory([host])["all"]["hosts"][host.name]
    return reached | {
        "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=60s",
        "ansible_host_key_checking": True,
        "ansible_ssh_common_args": shlex.join(ssh_arguments(host)),
        "clusterctl_stage": node.stage.value,
        "clusterctl_serial": _literal(node.serial),
        "clusterctl_sku": node.sku,
        "clusterctl_rack": _literal(node.location.rack),
        "clusterctl_unit": node.location.unit,
    }


def ssh_arguments(host: HostAddress) -> list[str]:
    """Return arguments of ssh(1) that accept the pinned key of the host alone, and need no file of host keys.

    ssh runs `KnownHostsCommand` (OpenSSH 8.5 and later) for the keys; `%H` is the name that ssh searches for.
    """
    return ssh_options(_NO_FILE, KnownHostsCommand=f"/bin/echo %H {host.host_key}")


def _literal(value: str | None) -> object:
    """Return the value so that Ansible does not run it as a template: a machine reports its own serial."""
    is_template = value is not None and any(mark in value for mark in ("{{", "{%", "{#"))
    return {"__ansible_unsafe": value} if is_template else value
