"""What `bootstrap` would do with each node, and the network that each host would get. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from clusterctl.cabling.ethernet.verify import is_bmc
from clusterctl.cabling.names import short
from clusterctl.cabling.plan_nodes import WiringGap, no_cables, wiring_gaps
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import Site
from clusterctl.edges.site.contents import ethernet_plan, wiring_plan
from clusterctl.edges.site.host_networks import HostNetworks, host_networks
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.hardware.sku import Sku
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.selectors import matching
from clusterctl.fleet.state import NodeState, NodeSummary
from clusterctl.formats.host.netplan import FILE, netplan, netplan_file
from clusterctl.formats.host.networkd import udev_rules
from clusterctl.operations.context import SiteContext
from clusterctl.operations.night_policy import in_service, nightly_problem
from clusterctl.operations.site_facts import never_installed, other_drives
from clusterctl.operations.trust import notices


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """`nodes`: names and patterns; all nodes of the site without any."""

    nodes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNode:
    """One node. `steps`: what bootstrap would do; `destroys`: what of it destroys data, empty where nothing does."""

    node: NodeSummary
    steps: str
    destroys: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanResult:
    """The nodes, what the operator must know before a bootstrap, and where nodes and wiring plan do not fit."""

    nodes: tuple[PlannedNode, ...]
    warnings: tuple[str, ...]
    wiring: tuple[WiringGap, ...] = ()

    @property
    def exit_code(self) -> int:
        """1: nodes lack cables in the wiring plan, and cannot pass the step cable."""
        return 1 if any(gap.stops for gap in self.wiring) else 0


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


def run(context: SiteContext, request: PlanRequest) -> PlanResult:
    """Return what bootstrap would do with each node."""
    nodes = _selected(context, request)
    return PlanResult(
        nodes=tuple(planned(context.site, node) for node in nodes),
        warnings=(*notices(context.site), *_nightly(context)),
        wiring=_wiring(context, nodes, all_nodes=not request.nodes),
    )


def _nightly(context: SiteContext) -> tuple[str, ...]:
    """Return why no night will test a node, were all of them gold."""
    problem = nightly_problem(context.site, in_service(context.nodes()))
    return (f"no night will test a node: {problem.message}; {problem.remedy}",) if problem is not None else ()


def _wiring(context: SiteContext, nodes: Sequence[NodeSummary], *, all_nodes: bool) -> tuple[WiringGap, ...]:
    """Return where nodes and the site's wiring plan do not fit; of chosen nodes only their own gaps.

    Before a node's discovery its SKU is unknown, unless the site has one SKU only. RoCE nodes have no InfiniBand cable:
    the Ethernet plan has those of their adapters, among others.
    """
    gaps = _all_gaps(context)
    if all_nodes:
        return gaps
    chosen = {node.name for node in nodes}
    return tuple(gap for gap in gaps if chosen & set(gap.hosts))


def _all_gaps(context: SiteContext) -> tuple[WiringGap, ...]:
    sku_of = _skus(context)
    roce = {name for name, sku in sku_of.items() if sku is not None and sku.hca_link_layer == "Ethernet"}
    gaps = _ethernet_gaps(context, roce)
    if fleet := {name: sku.hca_count if sku else None for name, sku in sku_of.items() if name not in roce}:
        gaps += wiring_gaps(wiring_plan(context.site), fleet)
    return gaps


def _skus(context: SiteContext) -> dict[str, Sku | None]:
    """Return the SKU of each node that is not retired; None where it is unknown."""
    skus = {sku.name: sku for sku in context.site.skus}
    only = next(iter(skus)) if len(skus) == 1 else ""
    return {node.name: skus.get(node.sku or only) for node in context.nodes() if node.stage is not Stage.RETIRED}


def _ethernet_gaps(context: SiteContext, nodes: AbstractSet[str]) -> tuple[WiringGap, ...]:
    """Return the RoCE nodes without any cable in the site's Ethernet plan."""
    plan = ethernet_plan(context.site) if nodes else None
    if plan is None:
        return no_cables(sorted(nodes), "the site has no Ethernet plan (fabric.ethernet), and no cable")
    planned = {short(end.device) for cable in plan.cables for end in cable.ends if not is_bmc(end, plan.hosts)}
    return no_cables([name for name in nodes if short(name) not in planned], "the Ethernet plan has no cable")


def run_networks(context: SiteContext, request: PlanRequest) -> tuple[PlannedNetwork, ...]:
    """Return the network of each node's host. Raises `UsageError` where the site's addresses are wrong."""
    known = host_networks(context.site)
    seen = {summary.name for summary in context.journal.summaries()}
    nodes = _selected(context, request)
    states = (context.journal.state(node.id) if node.name in seen else context.unseen(node.name) for node in nodes)
    return tuple(_network(known, state) for state in states)


def planned(site: Site, node: NodeSummary) -> PlannedNode:
    """Return what bootstrap would do with a node."""
    if node.held(CLOCK.now()):
        return PlannedNode(node=node, steps=f"nothing: {node.hold}", destroys="")
    if node.stage is Stage.RETIRED:
        return PlannedNode(node=node, steps=f"nothing: {node.cause}", destroys="")
    if node.stage is Stage.QUARANTINED:
        repair = f"nothing: {node.cause}; clusterctl release it once it is repaired"
        return PlannedNode(node=node, steps=repair, destroys="")
    if node.next_step is None:
        return PlannedNode(node=node, steps="nothing: it is gold", destroys="")
    steps = list(Step)[list(Step).index(node.next_step) :]
    return PlannedNode(
        node=node, steps=" → ".join(step.value for step in steps), destroys=_destroyed(site, node, steps)
    )


def _destroyed(site: Site, node: NodeSummary, steps: Sequence[Step]) -> str:
    if Step.INSTALL not in steps or never_installed(site, node):
        return ""
    disk = f"root disk {node.root_disk}" if node.root_disk else "the root disk that its SKU names"
    machine = f"serial {node.serial}" if node.serial else "once its serial is proven"
    others = other_drives(site, node.name)
    return ", ".join(filter(None, ("switches it on and off", f"overwrites {disk} ({machine})", others)))


def _selected(context: SiteContext, request: PlanRequest) -> list[NodeSummary]:
    fleet = context.nodes()
    chosen = matching((node.name for node in fleet), request.nodes)
    return [node for node in fleet if node.name in chosen]


def _network(known: HostNetworks, node: NodeState) -> PlannedNetwork:
    address = known.address(node.name)
    try:
        network = known.network(node)
    except UsageError as error:
        return PlannedNetwork(node.name, address, {}, {}, f"{error.message} — {error.remedy}")
    if not network:
        return PlannedNetwork(node.name, address, {}, {})
    return PlannedNetwork(node.name, address, netplan(network), {FILE: netplan_file(network), **udev_rules(network)})
