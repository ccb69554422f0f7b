"""What a plan does to nodes that have no work: settings and firmware under a hold, then the steps up to gold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.site import Site
from clusterctl.fleet.decisions import maintain
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.event import NewEvent
from clusterctl.fleet.maintenance.plan import MaintenancePlan
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.operations import nic_firmware, settings
from clusterctl.operations.adapters import Adapters
from clusterctl.operations.bootstrap import RunRequest, run_steps
from clusterctl.operations.context import SiteContext
from clusterctl.operations.gold_pool import publish
from clusterctl.operations.operation import Control
from clusterctl.operations.waves import WaveWork
from clusterctl.ports import Claims, Deadline
from clusterctl.site.configure import ConfigureWaves, NodeGroup
from clusterctl.steps.executor.intent_log import IntentLog

STEPS = (Step.CONFIGURE, Step.CABLE, Step.BURNIN, Step.ADMIT)
_ALL_AT_ONCE = ConfigureWaves(canary=0, at_once=None, stop_percent=100)
"""The plan's own waves decide how many nodes are configured together."""


def changed_site(site: Site, plan: MaintenancePlan, names: Sequence[str], *, back: bool) -> Site:
    """Return the site with the plan's roles and variables for these nodes, and the plan's burn-in.

    Taken back, the site's own values hold, but for those that the plan names: these may be of the plan's roles.
    """
    found = site.settings
    roles, variables = plan.change.roles, plan.change.variables
    if back:
        roles, variables = (roles if plan.back_variables else ()), plan.back_variables
    groups = found.configure.groups
    if roles or variables:
        groups = (*groups, NodeGroup(nodes=tuple(names), roles=roles, variables=dict(variables)))
    configure = replace(found.configure, groups=groups, waves=_ALL_AT_ONCE)
    return replace(site, settings=replace(found, configure=configure, burnin=suite_of(site, plan)))


def suite_of(site: Site, plan: MaintenancePlan) -> str:
    """Return the burn-in suite of the plan: its own, the site's nightly one, or the site's usual one."""
    nightly = site.settings.nightly
    return plan.suite or (nightly.suite if nightly is not None else site.settings.burnin)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanger:
    """Meets `Changer`. `context` has the site as `changed_site` makes it."""

    context: SiteContext
    adapters: Adapters
    plan: MaintenancePlan
    control: Control
    back: bool = False

    def change(self, names: Sequence[str], partners: Sequence[str]) -> Mapping[str, str]:
        """Change the nodes and take them to gold again; a node whose steps have begun goes on with them."""
        nodes = self.context.named(names)
        fresh = [node.name for node in nodes if not maintain.is_begun(node) or node.stopped_at is not None]
        left = dict(self._machines(fresh)) if fresh else {}
        left |= self._ordered([name for name in fresh if name not in left])
        publish(self.context.journal, self.adapters.pool)
        going = [name for name in names if name not in left]
        request = RunRequest(steps=STEPS, limit=tuple(going))
        if going:
            lent = self.context.summaries(partners)
            left |= run_steps(self.context, self.adapters, self.context.summaries(going), lent, request, self.control)
        return left

    def _machines(self, names: Sequence[str]) -> Mapping[str, str]:
        """Bring BIOS and firmware to what the site wants, under a hold; return the nodes that failed, and why."""
        if self.back or not (self.plan.change.settings or self.plan.change.nic_firmware):
            return {}
        left: dict[str, str] = {}
        if self.plan.change.settings:
            todos, unread = settings.todos_of(self.context, self.adapters, names, self.control)
            left |= unread
            if todos:
                work = settings.baseline_work(self.context, self.adapters, tuple(todos), todos.values())
                left |= self._worked(work, tuple(todos))
        if self.plan.change.nic_firmware:
            variables = nic_firmware.image_variables(self.context)
            burning = nic_firmware.firmware_work(self.context, self.adapters, variables)
            left |= self._worked(burning, [name for name in names if name not in left])
        return left

    def _worked(self, work: WaveWork, names: Sequence[str]) -> Mapping[str, str]:
        """Do the work on nodes that the plan holds for it; return the nodes that failed, and why."""
        left: dict[str, str] = {}
        with self._claimed(names, left) as claims:
            held = [node.name for node in self._held(names, claims, left)]
            publish(self.context.journal, self.adapters.pool)
            members = [(node, node.serial) for node in self.context.named(held) if node.serial is not None]
            known = {node.name for node, _ in members}
            left.update({name: "its serial is not known" for name in held if name not in known})
            deadline = Deadline.after(work.seconds, self.control.cancelled)
            for result in work.run(members, IntentLog(self.context.journal, claims.granted), deadline):
                if result.error is not None:
                    left[result.name] = str(result.error)
        return left

    def _held(self, names: Sequence[str], claims: Claims, left: dict[str, str]) -> Iterator[NodeState]:
        """Hold the claimed nodes; yield them."""
        for node in self.context.named(names):
            if node.id in claims.granted and self._write(node, claims, left, hold=True):
                yield node

    def _ordered(self, names: Sequence[str]) -> Mapping[str, str]:
        """Take the nodes out of the pool, back before their steps; return those that cannot be, and why."""
        left: dict[str, str] = {}
        with self._claimed(names, left) as claims:
            for node in self.context.named(names):
                if node.id in claims.granted:
                    self._write(node, claims, left, hold=False)
        return left

    def _write(self, node: NodeState, claims: Claims, left: dict[str, str], *, hold: bool) -> bool:
        """Write the events of a decision about a node; return whether it was permitted."""
        try:
            events = self._events(self.context.journal.state(node.id), hold=hold)
        except UsageError as error:
            left[node.name] = f"{error.message}; {error.remedy}"
            return False
        if events:
            self.context.journal.append(events, claim=claims.granted[node.id])
        return True

    def _events(self, node: NodeState, *, hold: bool) -> Sequence[NewEvent]:
        if hold:
            return maintain.held(node, self.plan.name, CLOCK.now())
        return maintain.ordered(node, self.plan.name, self.plan.reason, CLOCK.now())

    @contextmanager
    def _claimed(self, names: Sequence[str], left: dict[str, str]) -> Iterator[Claims]:
        """Claim the nodes that no other run holds; note the holders of the others."""
        ids = {node.id: node.name for node in self.context.summaries(names)}
        claims = self.context.journal.claim(ids, self.context.run)
        left.update({ids[node]: holder for node, holder in claims.refused.items()})
        try:
            yield claims
        finally:
            self.context.journal.release(claims.granted.values())
