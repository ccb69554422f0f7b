"""The file `clusterctl-node` of a site: the checks of its suite, its nodes and its limits, for nodes by themselves."""

from __future__ import annotations

from pathlib import Path

from clusterctl.edges.disk import named_path_explained, write_whole
from clusterctl.edges.site import contents
from clusterctl.edges.site.roles import wanted
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import Serial, Stage, Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.operations.host_configuration import driver_of
from clusterctl_burnin.kernel_log.slot_power import accepted_slots
from clusterctl_burnin.node_check.build import build
from clusterctl_burnin.node_check.program import Content, NodeFacts, SkuFacts

NEEDS_THE_CONTROLLER = ("clock_offset", "host_network")
"""Checks that compare the node with the controller's clock or with the site's network plan."""


def _identified(context: SiteContext) -> list[tuple[Serial, NodeState]]:
    """Return the nodes that are not retired and have a serial, with it."""
    living = (node for node in context.journal.states() if node.stage is not Stage.RETIRED)
    return [(node.serial, node) for node in living if node.serial]


def _slots(node: NodeState) -> tuple[str, ...]:
    last = node.reports.get(Step.BURNIN.value)
    return tuple(sorted(accepted_slots(last.findings if last else ())))


def content(context: SiteContext) -> Content:
    """Return what the file holds. Raises `UsageError` where no node of the site is known by its serial."""
    site = context.site
    suite, roles = contents.suite(site), wanted(site)
    left_out = tuple(check.name for check in suite.checks if check.idle_only or check.name in NEEDS_THE_CONTROLLER)
    skus = {sku.name: SkuFacts(sku=sku, limits=contents.limits(site, sku.limits)) for sku in site.skus}
    nodes = {
        node.name: NodeFacts(
            serial=serial,
            sku=node.sku,
            driver_version=driver_of(roles, node),
            shared_slots=_slots(node),
        )
        for serial, node in _identified(context)
        if node.sku in skus
    }
    if not nodes:
        raise UsageError("no node's serial is known", where=site.folder.name, remedy="run clusterctl discover first")
    return Content(
        version=1,
        built=context.run,
        checks=tuple(check.name for check in suite.checks if check.name not in left_out),
        left_out=left_out,
        nodes=nodes,
        skus=skus,
        requirements=contents.host_requirements(site),
        known_lines=contents.known_lines(site),
    )


def write(context: SiteContext, target: Path) -> int:
    """Write the file, executable; return the number of its nodes. Raises `UsageError` where it is there already."""
    found = content(context)
    with named_path_explained("the file cannot be written", target):
        if target.exists():
            raise UsageError("is there already", where=str(target), remedy="remove it, or name another file")
        write_whole(target, build(found), mode=0o755, over=False)
    return len(found.nodes)
