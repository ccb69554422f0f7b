"""What the site's hosts hear by LLDP, asked of them now."""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.cabling.ethernet.findings import MissingReport
from clusterctl.edges.ssh import ParamikoShell
from clusterctl.fleet.node import Stage, Step
from clusterctl.operations.context import CLOCK, Office
from clusterctl.operations.network_cables import listener
from clusterctl.ports import Deadline
from clusterctl.steps.cable.lldp import LldpReadings
from clusterctl.steps.executor.reachability import SshAccess


def live_audience(office: Office, hosts: Iterable[str], deadline: Deadline) -> LldpReadings:
    """All nodes of the site, asked over SSH; of `hosts` that are no installed node it is said. The evidence is kept."""
    settings = office.site.settings
    reach = SshAccess(settings.ssh.user, office.site.path(settings.ssh.private_key))
    ours = office.site.by_name
    nodes = [node for node in office.journal.states() if node.name in ours and node.stage is not Stage.RETIRED]
    addresses, _ = reach.split(nodes, Step.CABLE)
    with ParamikoShell(CLOCK, office.site.origin) as shell:
        heard = listener(office, shell).listen(addresses.values(), deadline)
    for name in sorted({*hosts, *(node.name for node in nodes)} - addresses.keys()):
        heard.unheard[name] = MissingReport(
            "no installed node of that name is known", f"run clusterctl install on {name}"
        )
    office.journal.store(item for evidence in heard.evidence.values() for item in evidence)
    return heard
