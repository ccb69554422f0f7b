"""Slurm's own files, written from facts: slurm.conf, gres.conf, topology.conf, cgroup.conf, plugstack.conf.

Sources: slurm.conf(5), gres.conf(5), topology.conf(5), cgroup.conf(5), https://slurm.schedmd.com/man_index.html,
of releases 22.05 to 24.05. The same facts give the same text.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.switch_tree import SwitchGroup
from clusterctl.fleet.hardware.products import product_of
from clusterctl.fleet.natural_order import natural_key

HEAD = "# Written by clusterctl export slurm: change site.yml and write it again.\n"
_DIGITS = "0123456789"
_UNFIT = re.compile(r"[^A-Za-z0-9_.-]+")
RETURNS_BROKEN_NODES = "2"
"""ReturnToService=2 lets a node serve that was down for any reason, once it registers."""
OURS = frozenset({"nodename", "partitionname", "topologyplugin", "grestypes", "include"})
"""Settings that follow from the inventory and the fabric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeNode:
    """A node as Slurm is to know it. `memory_mib`: what jobs may have; `gpu_type`: empty for a node without GPUs."""

    name: str
    address: str
    sockets: int
    cores_per_socket: int
    threads_per_core: int
    memory_mib: int
    gpu_count: int = 0
    gpu_type: str = ""
    features: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What the files are written from.

    controllers  `NAME` or `NAME(ADDRESS)` of each slurmctld, the first is the primary
    accounting   host of slurmdbd
    gpu_device   path of a GPU's device file without its number
    tree         where jobs are placed close together; empty: no topology is known
    settings     further lines of slurm.conf, or other values of those that are written
    plugins      lines of plugstack.conf
    """

    name: str
    controllers: tuple[str, ...]
    accounting: str
    partition: str
    nodes: tuple[ComputeNode, ...]
    gpu_device: str = "/dev/nvidia"
    tree: tuple[SwitchGroup, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    plugins: tuple[str, ...] = ()


def check_settings(settings: Mapping[str, str]) -> None:
    """Raise `UsageError` for a setting of slurm.conf that a site must not give."""
    for name, value in settings.items():
        if name.lower() in OURS:
            raise UsageError(f"{name} follows from the site's nodes and wiring plan", where=name, remedy="remove it")
        if name.lower() == "returntoservice" and value.strip() == RETURNS_BROKEN_NODES:
            message = "ReturnToService=2 lets broken nodes serve again without a question"
            raise UsageError(message, where=name, remedy="write 0 or 1")


def slurm_files(cluster: ClusterFacts) -> Mapping[str, str]:
    """Return each file's text by its name. Raises `UsageError` for a setting that must not be given."""
    check_settings(cluster.settings)
    return {
        "slurm.conf": _slurm_conf(cluster),
        "gres.conf": _gres_conf(cluster),
        "topology.conf": _topology_conf(cluster.tree),
        "cgroup.conf": _CGROUP,
        "plugstack.conf": HEAD + "".join(f"{line}\n" for line in cluster.plugins),
    }


_CGROUP = f"""\
{HEAD}CgroupPlugin=autodetect
ConstrainCores=yes
ConstrainDevices=yes
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
"""


def _defaults(cluster: ClusterFacts) -> dict[str, str]:
    """Return the settings of slurm.conf in their order, without the site's own."""
    return {
        "ClusterName": cluster.name,
        "SlurmctldParameters": "enable_configless",
        "SlurmUser": "slurm",
        "AuthType": "auth/munge",
        "StateSaveLocation": "/var/lib/slurm/slurmctld",
        "SlurmdSpoolDir": "/var/lib/slurm/slurmd",
        "SlurmctldPidFile": "/run/slurmctld.pid",
        "SlurmdPidFile": "/run/slurmd.pid",
        "SlurmctldLogFile": "/var/log/slurm/slurmctld.log",
        "SlurmdLogFile": "/var/log/slurm/slurmd.log",
        "ProctrackType": "proctrack/cgroup",
        "TaskPlugin": "task/affinity,task/cgroup",
        "JobAcctGatherType": "jobacct_gather/cgroup",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "MpiDefault": "none",
        "PropagateResourceLimitsExcept": "MEMLOCK",
        "AccountingStorageType": "accounting_storage/slurmdbd",
        "AccountingStorageHost": cluster.accounting,
        "AccountingStorageTRES": "gres/gpu",
        **_SERVICE,
    }


_SERVICE = {
    "ReturnToService": "1",
    "SlurmdTimeout": "300",
    "ResumeTimeout": "1800",
    "RebootProgram": "/usr/sbin/reboot",
    "UnkillableStepTimeout": "180",
    "Prolog": "/usr/local/sbin/clusterctl-prolog",
    "Epilog": "/usr/local/sbin/clusterctl-epilog",
    "PrologFlags": "Alloc",
    "PrologEpilogTimeout": "120",
    "SchedulerParameters": "nohold_on_prolog_fail",
    "HealthCheckProgram": "/usr/local/sbin/clusterctl-health",
    "HealthCheckInterval": "300",
    "HealthCheckNodeState": "ANY,CYCLE",
}
"""A node that was down because it did not answer serves again once it registers; any other stays down. GPU servers boot
slowly: past ResumeTimeout a node that reboots is down. CYCLE: not all nodes run the health check at the same time.
Alloc: the prolog runs before the job, not before its first step; a job that it refuses is queued again, and not held.
"""


_PARTITION = "Default=YES MaxTime=INFINITE OverSubscribe=EXCLUSIVE State=UP"
"""A job has whole nodes: each GPU and each rail of a node is one training's."""


def _slurm_conf(cluster: ClusterFacts) -> str:
    own = {name.lower(): (name, value) for name, value in cluster.settings.items()}
    lines = [HEAD, *(f"SlurmctldHost={host}\n" for host in cluster.controllers)]
    for name, value in _defaults(cluster).items():
        _, wanted = own.pop(name.lower(), (name, value))
        lines.append(f"{name}={wanted}\n")
    lines += [f"{name}={value}\n" for name, value in own.values()]
    lines.append("GresTypes=gpu\n")
    lines.append("TopologyPlugin=topology/tree\n\n" if cluster.tree else "\n")
    nodes = sorted(cluster.nodes, key=lambda node: natural_key(node.name))
    lines += [_node_line(node) for node in nodes]
    names = ",".join(host_lists(node.name for node in nodes))
    if nodes:
        lines.append(f"\nPartitionName={cluster.partition} Nodes={names} {_PARTITION}\n")
    return "".join(lines)


def _node_line(node: ComputeNode) -> str:
    cells = [
        f"NodeName={node.name}",
        *([f"NodeAddr={node.address}"] if node.address else []),
        f"Sockets={node.sockets} CoresPerSocket={node.cores_per_socket} ThreadsPerCore={node.threads_per_core}",
        f"RealMemory={node.memory_mib}",
        *([f"Gres=gpu:{node.gpu_type}:{node.gpu_count}"] if node.gpu_count else []),
        *([f"Feature={','.join(node.features)}"] if node.features else []),
        "State=UNKNOWN\n",
    ]
    return " ".join(cells)


def _gres_conf(cluster: ClusterFacts) -> str:
    """Return the GPUs, by nodes that have as many of the same type. No library is asked: Debian's Slurm has no NVML."""
    kinds: dict[tuple[str, int], list[str]] = defaultdict(list)
    for node in cluster.nodes:
        if node.gpu_count:
            kinds[node.gpu_type, node.gpu_count].append(node.name)
    lines = [HEAD, "AutoDetect=off\n"]
    for (kind, count), names in sorted(kinds.items()):
        numbers = "0" if count == 1 else f"[0-{count - 1}]"
        device = f"Name=gpu Type={kind} File={cluster.gpu_device}{numbers}"
        lines += [f"NodeName={listed} {device}\n" for listed in host_lists(names)]
    return "".join(lines)


def _topology_conf(tree: Sequence[SwitchGroup]) -> str:
    lines = [HEAD]
    for group in sorted(tree, key=lambda one: (one.tier, natural_key(one.name))):
        below = f"Nodes={','.join(host_lists(group.hosts))}" if group.hosts else f"Switches={','.join(group.groups)}"
        joined = _commented(group.switches)
        lines.append(f"# {group.name}: {joined}\n" if joined else "")
        lines.append(f"SwitchName={group.name} {below}\n")
    return "".join(lines)


def _commented(switches: Sequence[str]) -> str:
    names = [_UNFIT.sub("_", name) for name in switches]
    return ", ".join(names if len(names) <= 8 else [*names[:7], f"and {len(names) - 7} more"])


def feature_name(text: str) -> str:
    """Return a text as the name of a Slurm feature: other characters than letters, digits, - _ . become `_`."""
    return _UNFIT.sub("_", text).strip("_")


def gpu_type(model: str) -> str:
    """Return a GPU's model as a gres type, as Slurm users write it: `h100`, whatever its form factor."""
    return feature_name(product_of(model)).lower() or "gpu"


def host_lists(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in Slurm's short form: `node[001-064,066]`, one text for each prefix and length of the number."""
    numbered: dict[tuple[str, int], list[int]] = defaultdict(list)
    plain: list[str] = []
    for name in sorted(set(names), key=natural_key):
        prefix = name.rstrip(_DIGITS)
        if digits := name[len(prefix) :]:
            numbered[prefix, len(digits)].append(int(digits))
        else:
            plain.append(name)
    return (*plain, *(_short(prefix, width, numbers) for (prefix, width), numbers in numbered.items()))


def _short(prefix: str, width: int, numbers: Sequence[int]) -> str:
    if len(numbers) == 1:
        return f"{prefix}{numbers[0]:0{width}d}"
    ranges = (
        f"{first:0{width}d}" if first == last else f"{first:0{width}d}-{last:0{width}d}"
        for first, last in _runs(numbers)
    )
    return f"{prefix}[{','.join(ranges)}]"


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield first and last of each run of consecutive numbers."""
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
