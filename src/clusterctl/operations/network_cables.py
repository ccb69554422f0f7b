"""The hosts' network cables: who is asked by LLDP, for the cable step and for `cable verify --live`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clusterctl.edges.site import contents
from clusterctl.fleet.state import NodeState
from clusterctl.operations.context import SiteContext
from clusterctl.ports import Shell
from clusterctl.steps.cable.ethernet import CableWithEthernet
from clusterctl.steps.cable.lldp import LldpReader
from clusterctl.steps.executor.reachability import SshAccess
from clusterctl.steps.executor.step import StepRunner


def with_neighbours(
    step: StepRunner, context: SiteContext, shell: Shell, reach: SshAccess, settle_s: float
) -> StepRunner:
    """The step itself where the site has no Ethernet plan."""
    plan = contents.ethernet_plan(context.site)
    if plan is None:
        return step

    def others(names: Iterable[str]) -> Sequence[NodeState]:
        wanted = set(names)
        known = context.journal.summaries() if wanted else ()
        return [context.journal.state(node.id) for node in known if node.name in wanted]

    return CableWithEthernet(step, plan, lldp_reader(context, shell), reach, others, settle_s)


def lldp_reader(context: SiteContext, shell: Shell) -> LldpReader:
    return LldpReader(shell, context.site.settings.parallel.lldp)
