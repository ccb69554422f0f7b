"""Slurm's files of a site: which nodes are in them, and how they differ from those that were written before.

A node enters when it is gold and free of holds. It leaves when it is quarantined, retired or held, once no job runs on
it. A gold node that is only measured again (a night, a revalidation) stays: the scheduler keeps jobs off it meanwhile.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from clusterctl.cabling.names import short
from clusterctl.cabling.switch_tree import switch_tree
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.disk import disk_explained, named_path_explained, write_whole
from clusterctl.edges.scheduler import SlurmScheduler
from clusterctl.edges.site import Site, contents
from clusterctl.fleet.errors import ClusterctlError, UsageError
from clusterctl.fleet.fabric.switch_tree import SwitchGroup, restricted
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.natural_order import natural_key
from clusterctl.fleet.node import Inventory, Stage
from clusterctl.fleet.state import NodeState
from clusterctl.formats.slurm_conf import ClusterFacts, ComputeNode, feature_name, gpu_type, slurm_files
from clusterctl.operations.context import SiteContext
from clusterctl.operations.operation import Control, Effect, Preview, Result, current_time
from clusterctl.ports import Deadline
from clusterctl.ports.scheduler import Use
from clusterctl.site.scheduling import SlurmClusterSettings, SlurmHardware, SlurmSettings

OPERATION = "export slurm"
LOOK_S = 60.0
FILES = ("slurm.conf", "gres.conf", "topology.conf", "cgroup.conf", "plugstack.conf")
UNPLANNED = "unplanned"
_GONE = frozenset({Stage.QUARANTINED, Stage.RETIRED})
_NODE_LINE = re.compile(r"^NodeName=(\S+) (.*)$", re.MULTILINE)
_NO_CORES = "its BMC reports no cores: write scheduler.cluster.hardware.{sku}.cores_per_socket in site.yml"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFilesRequest:
    """`folder`: where the files are written; it exists, or is made."""

    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFilesPreview(Preview):
    """`differences`: unified difference of each file that is there and changes, by its name."""

    differences: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFilesResult(Result):
    """`written`: the names of the files that were."""

    written: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    texts: Mapping[str, str]
    before: Mapping[str, str]
    skipped: Mapping[str, str]
    warnings: tuple[str, ...]

    @property
    def changed(self) -> tuple[str, ...]:
        return tuple(name for name, text in self.texts.items() if self.before.get(name) != text)


def may_stay(node: NodeState, now: datetime) -> bool:
    """Return whether a node that is in the files stays: it is gold, or a gold node that is only measured again."""
    measured = node.revalidation is not None and node.admitted_at is not None and node.stage not in _GONE
    return node.in_pool(now) or (measured and not node.held(now))


def preview(context: SiteContext, request: SlurmFilesRequest) -> SlurmFilesPreview:
    """Return which nodes enter, leave and change, and the difference of each file."""
    return _preview(_plan(context, request), request)


def _preview(plan: _Plan, request: SlurmFilesRequest) -> SlurmFilesPreview:
    changed = plan.changed
    effects = [*_node_effects(plan), *(Effect(node="", text=_file_effect(plan, name)) for name in changed)]
    return SlurmFilesPreview(
        operation=OPERATION,
        question=f"Write {', '.join(changed)} in {request.folder}?" if changed else "Nothing differs. Go on?",
        effects=tuple(effects),
        skipped=plan.skipped,
        warnings=plan.warnings,
        differences={name: _difference(name, plan) for name in changed if name in plan.before},
    )


def _file_effect(plan: _Plan, name: str) -> str:
    return f"{name}: {'changes' if name in plan.before else 'is new'}"


def _node_effects(plan: _Plan) -> Iterator[Effect]:
    old, new = (dict(_NODE_LINE.findall(texts.get("slurm.conf", ""))) for texts in (plan.before, plan.texts))
    for name in sorted({*old, *new}, key=natural_key):
        if name not in old:
            yield Effect(node=name, text="enters")
        elif name not in new:
            yield Effect(node=name, text="leaves")
        elif old[name] != new[name]:
            yield Effect(node=name, text=f"changes to {new[name]}")


def _difference(name: str, plan: _Plan) -> str:
    old, new = (text.splitlines() for text in (plan.before[name], plan.texts[name]))
    return "\n".join(difflib.unified_diff(old, new, f"{name} (old)", f"{name} (new)", lineterm="", n=1))


def run(context: SiteContext, request: SlurmFilesRequest, control: Control) -> SlurmFilesResult:
    """Write the files that differ, each whole or not at all."""
    plan = _plan(context, request)
    control.require(_preview(plan, request))
    with named_path_explained("the folder cannot be made", request.folder):
        request.folder.mkdir(exist_ok=True)
    for name in plan.changed:
        file = request.folder / name
        with disk_explained("the file cannot be written", file):
            write_whole(file, plan.texts[name].encode(), mode=0o644, over=True)
    return SlurmFilesResult(operation=OPERATION, skipped=plan.skipped, written=plan.changed)


def _serves(node: NodeState, now: datetime, there: Collection[str]) -> bool:
    """Return whether the node belongs into the files. `there`: the names that they have now."""
    return node.in_pool(now) or (node.name in there and may_stay(node, now))


def _plan(context: SiteContext, request: SlurmFilesRequest) -> _Plan:
    scheduler, settings = _settings(context.site)
    now = current_time()
    states = {node.name: node for node in context.journal.states()}
    before = _before(request.folder, FILES)
    there = {name for name, _ in _NODE_LINE.findall(before.get("slurm.conf", ""))}
    serving = {name for name, node in states.items() if _serves(node, now, there)}
    leaving = there - serving
    kept, warnings = _still_at_work(context.site, scheduler, leaving & states.keys())
    nodes, skipped = _compute_nodes(context.site, [states[name] for name in serving | kept.keys()])
    skipped |= {name: why for name, why in kept.items() if name not in skipped}
    if not nodes:
        _refuse_an_empty_cluster(skipped)
    facts = _facts(context.site, settings, nodes)
    if unplanned := _unplanned(facts):
        warnings = (*warnings, f"nodes that the wiring plan lacks; no job spans them and others: {unplanned}")
    return _Plan(slurm_files(facts), before, skipped, warnings)


def _refuse_an_empty_cluster(skipped: Mapping[str, str]) -> None:
    why = next((f"{name}: {reason}" for name, reason in skipped.items()), "no node is gold and free of holds")
    remedy = "bring a node to gold (clusterctl bootstrap): slurmctld starts with no empty cluster"
    raise UsageError(f"no node may serve: {why}", where=OPERATION, remedy=remedy)


def _settings(site: Site) -> tuple[SlurmSettings, SlurmClusterSettings]:
    match site.settings.scheduler:
        case SlurmSettings(cluster=SlurmClusterSettings() as cluster) as scheduler:
            return scheduler, cluster
        case _:
            message = "the site does not describe its Slurm"
            remedy = "write scheduler: {kind: slurm, cluster: {name, controllers}} (docs/how-to/slurm.md)"
            raise UsageError(message, where=site.where("scheduler"), remedy=remedy)


def _before(folder: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the texts of the files that are there."""
    found = {}
    for name in names:
        file = folder / name
        with named_path_explained("the file cannot be read", file):
            if file.is_file():
                found[name] = file.read_text(encoding="utf-8", errors="replace")
    return found


def _still_at_work(
    site: Site, scheduler: SlurmSettings, leaving: Collection[str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the nodes that must not leave yet, with the reason: Slurm ends the jobs of a node that it loses.

    Where Slurm cannot be asked, all of them stay.
    """
    if not leaving:
        return {}, ()
    try:
        seen = SlurmScheduler(CLOCK, site.origin, scheduler.ssh).look(Deadline.after(LOOK_S)).value
    except ClusterctlError as error:
        why = "stays in the files until Slurm reports that no job runs on it"
        return dict.fromkeys(leaving, why), (f"Slurm could not be asked, so that no node leaves: {error}",)
    busy = {name for name in leaving if name in seen and seen[name].use in (Use.BUSY, Use.UNKNOWN)}
    return {name: f"stays in the files: Slurm reports {seen[name].state}" for name in busy}, ()


def _compute_nodes(site: Site, states: Iterable[NodeState]) -> tuple[list[ComputeNode], dict[str, str]]:
    """Return the nodes as Slurm is to know them, and those of which too little is known, with what lacks."""
    skus = {sku.name: sku for sku in site.skus}
    _, settings = _settings(site)
    gold = _gold_feature(site)
    now = current_time()
    nodes, skipped = [], {}
    for state in sorted(states, key=lambda one: natural_key(one.name)):
        sku = skus.get(state.sku)
        if sku is None:
            skipped[state.name] = f"the site has no SKU {state.sku!r}"
            continue
        hardware = settings.hardware.get(sku.name, SlurmHardware())
        node = _compute_node(state, sku, hardware)
        if node is None:
            skipped[state.name] = _NO_CORES.format(sku=sku.name)
            continue
        more = (gold,) if gold and state.in_pool(now) else ()
        nodes.append(replace(node, features=(*node.features, *more)))
    return nodes, skipped


def _gold_feature(site: Site) -> str:
    """Return the feature of gold nodes: one that only scontrol sets may be lost when slurmctld is started again."""
    scheduler, _ = _settings(site)
    return scheduler.feature


def _compute_node(state: NodeState, sku: Sku, hardware: SlurmHardware) -> ComputeNode | None:
    """Return the node; None where its cores are not known."""
    cores = hardware.cores_per_socket or _reported_cores(state.inventory)
    if cores is None:
        return None
    installed = state.inventory.memory_gib if state.inventory else None
    memory = min(installed, sku.memory_gib) if installed and sku.memory_gib else installed or sku.memory_gib
    rack = (feature_name(f"rack_{state.location.rack}"),) if state.location.rack else ()
    return ComputeNode(
        name=state.name,
        address=state.address,
        sockets=hardware.sockets or sku.cpu_count,
        cores_per_socket=cores,
        threads_per_core=hardware.threads_per_core,
        memory_mib=int(memory * 1024 * hardware.memory_percent / 100),
        gpu_count=sku.gpu_count,
        gpu_type=gpu_type(sku.gpu_model) if sku.gpu_count else "",
        features=(feature_name(sku.name), *rack),
    )


def _reported_cores(inventory: Inventory | None) -> int | None:
    """Return the cores of each CPU; None unless the BMC reports all CPUs, and the same number of each."""
    reported = {cpu.cores for cpu in (inventory.cpus or ())} if inventory else set()
    return reported.pop() or None if len(reported) == 1 else None


def _facts(site: Site, settings: SlurmClusterSettings, nodes: Iterable[ComputeNode]) -> ClusterFacts:
    listed = tuple(nodes)
    whole = switch_tree(_wiring(site))
    own = {short(node.name): node.name for node in listed}
    groups = _groups_of_hosts(whole)
    return ClusterFacts(
        name=settings.name,
        controllers=settings.controllers,
        accounting=settings.accounting or settings.controllers[0].partition("(")[0],
        partition=settings.partition,
        nodes=tuple(replace(node, features=(*node.features, *groups.get(short(node.name), ()))) for node in listed),
        gpu_device=settings.gpu_device,
        tree=_whole_tree(restricted(whole, own.keys()), own),
        settings=settings.settings,
        plugins=settings.plugins,
    )


def _wiring(site: Site) -> WiringPlan:
    """Return the plan of the fabric that jobs use: the Ethernet plan where all SKUs have RoCE."""
    if site.skus and all(sku.hca_link_layer == "Ethernet" for sku in site.skus):
        return contents.ethernet_plan(site) or WiringPlan((), frozenset())
    return contents.wiring_plan(site)


def _groups_of_hosts(tree: Iterable[SwitchGroup]) -> Mapping[str, tuple[str, ...]]:
    """Return for each host the names of its groups, from the lowest tier up, without the one that holds all."""
    parents = {child: group.name for group in tree for child in group.groups}
    found = {}
    for group in tree:
        names = [group.name]
        while names[-1] in parents:
            names.append(parents[names[-1]])
        inner = tuple(name for name in names if name in parents) or (names[0],)
        found.update(dict.fromkeys(group.hosts, inner))
    return found


def _whole_tree(tree: tuple[SwitchGroup, ...], names: Mapping[str, str]) -> tuple[SwitchGroup, ...]:
    """Return the tree with the nodes' own names; nodes that are in no plan are a group without a switch above it."""
    if not tree:
        return ()
    groups = tuple(replace(group, hosts=tuple(names[host] for host in group.hosts)) for group in tree)
    cabled = {host for group in groups for host in group.hosts}
    rest = tuple(name for name in names.values() if name not in cabled)
    return (*groups, SwitchGroup(name=UNPLANNED, tier=0, switches=(), hosts=rest)) if rest else groups


def _unplanned(facts: ClusterFacts) -> str:
    return ", ".join(host for group in facts.tree if group.name == UNPLANNED for host in group.hosts)
