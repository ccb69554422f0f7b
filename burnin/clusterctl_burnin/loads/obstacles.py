"""Which findings keep a node from which loads: those against a part that the load needs.

All other loads of one node run although the node has failed: one repair then finds more faults of the node. A load of
several nodes needs every part except drives, services and name servers, which none of them uses: a faulty node would
spoil the results of its partners.
"""

from __future__ import annotations

from collections.abc import Iterable

from clusterctl.fleet.finding import Finding
from clusterctl.fleet.finding_code import Code
from clusterctl_burnin.check import EVERY_AREA, Area
from clusterctl_burnin.registry import CHECKS, GROUP_LOADS, NODE_LOADS

WATCH = "load_watch"
"""Where the watch could not read the node, the load's part is as unknown as before: other loads run."""
NO_AREA: frozenset[Area] = frozenset()
_BY_CODE = {
    Code.XID: frozenset({Area.GPU}),
    Code.XID_MEMORY: frozenset({Area.GPU}),
    Code.XID_OFF_THE_BUS: frozenset({Area.GPU}),
    Code.SXID: frozenset({Area.NVLINK}),
}
"""A finding of the kernel log about a part counts against that part."""
_GROUP_NEEDS = EVERY_AREA - {Area.STORAGE, Area.SERVICES}
_NAME_SERVERS = "dns"
"""Of the areas of the network, what no load uses: loads call each other by address."""


def obstacle(needs: frozenset[Area], findings: Iterable[Finding]) -> Finding | None:
    """Return the first finding that keeps a node from a load with these needs; None where there is none."""
    wanted = needs | {Area.NODE}
    return next((one for one in findings if not one.verdict.admits and wanted & _affected_areas(one)), None)


def needs_of(load: str) -> frozenset[Area]:
    """Return what a load of the registry needs."""
    return NODE_LOADS[load].needs if load in NODE_LOADS else _GROUP_NEEDS


def _affected_areas(finding: Finding) -> frozenset[Area]:
    """Return the areas that it puts in doubt: none for a load of several nodes, all for an unknown check."""
    if finding.code in _BY_CODE:
        return _BY_CODE[finding.code]
    if finding.check == _NAME_SERVERS:
        return frozenset({Area.SERVICES})
    if finding.check in CHECKS:
        return frozenset({CHECKS[finding.check].area})
    if finding.check in NODE_LOADS:
        return NODE_LOADS[finding.check].about
    if finding.check == WATCH and finding.code is not Code.LOAD_REBOOTED:
        return NO_AREA
    return NO_AREA if finding.check in GROUP_LOADS else EVERY_AREA
