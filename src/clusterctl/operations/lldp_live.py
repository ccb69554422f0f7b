"""What the site's hosts hear by LLDP, asked of them now."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.cabling.ethernet.findings import MissingReport
from clusterctl.edges.clock import CLOCK
from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.node import Stage, Step
from clusterctl.operations.context import SiteContext
from clusterctl.operations.network_cables import lldp_reader
from clusterctl.ports import Deadline
from clusterctl.steps.cable.lldp import LldpReadings
from clusterctl.steps.executor.reachability import SshAccess


def live_audience(context: SiteContext, hosts: Iterable[str], deadline: Deadline) -> LldpReadings:
    """All nodes of the site, asked over SSH; of `hosts` that are no installed node it is said. The evidence is kept."""
    settings = context.site.settings
    reach = SshAccess(settings.ssh.user, context.site.path(settings.ssh.private_key))
    ours = context.site.by_name
    nodes = [node for node in context.journal.states() if node.name in ours and node.stage is not Stage.RETIRED]
    addresses, _ = reach.split(nodes, Step.CABLE)
    with ParamikoShell(CLOCK, context.site.origin) as shell:
        heard = lldp_reader(context, shell).read(addresses.values(), deadline)
    for name in sorted({*hosts, *(node.name for node in nodes)} - addresses.keys()):
        heard.unheard[name] = MissingReport(
            "no installed node of that name is known", f"run clusterctl install on {name}"
        )
    context.journal.store(item for evidence in heard.evidence.values() for item in evidence)
    return heard
