"""Drift: what the roles would change on configured nodes, by Ansible's check mode. Changes and records nothing."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from clusterctl.edges.clock import CLOCK
from clusterctl.fleet.errors import CancelledError, ClusterctlError
from clusterctl.fleet.node import Stage, Step
from clusterctl.fleet.selectors import matching
from clusterctl.fleet.state import NodeState
from clusterctl.operations.adapters import Access
from clusterctl.operations.context import SiteContext
from clusterctl.operations.host_configuration import role_variables
from clusterctl.operations.known_hosts import KnownHosts
from clusterctl.operations.operation import Control
from clusterctl.ports import Deadline, HostAddress, Playbooks, PlayOutcome
from clusterctl.steps.configure.step import plays_before
from clusterctl.steps.executor.reachability import SshAccess


@dataclass(frozen=True, slots=True)
class NodeDrift:
    """What check mode reports of one node.

    changes     tasks that would change something, as far as the play came
    reboot_for  roles that need a reboot
    unmeasured  why the report is not complete; empty where it is
    """

    node: str
    changes: tuple[str, ...] = ()
    reboot_for: tuple[str, ...] = ()
    unmeasured: str = ""

    @classmethod
    def of(cls, play: PlayOutcome) -> NodeDrift:
        why = ""
        if play.unreachable:
            why = f"not reached: {play.message}"
        elif not play.ok:
            why = f"task “{play.failed_task}” failed: {play.message}" if play.failed_task else play.message
        return cls(play.host, play.changes, play.reboot_for, why)

    @property
    def clean(self) -> bool:
        return not (self.changes or self.reboot_for or self.unmeasured)


@dataclass(frozen=True, slots=True, kw_only=True)
class DriftReport:
    """`nodes`: those that were asked; `skipped`: why others were not. `complete`: every host was reachable."""

    nodes: tuple[NodeDrift, ...]
    skipped: Mapping[str, str]
    complete: bool
    cancelled: bool

    @property
    def exit_code(self) -> int:
        """0: all is as the site has it; 1: something would change or was not measured; 130: cancelled."""
        if self.cancelled:
            return CancelledError.exit_code
        return 0 if self.nodes and self.complete and all(node.clean for node in self.nodes) else 1


def read(context: SiteContext, limit: tuple[str, ...], control: Control) -> DriftReport:
    """Return the drift of the gold pool; with `limit`, of every matching node that was configured once."""
    nodes, skipped = select(context, limit)
    settings = context.site.settings
    reach = SshAccess(settings.ssh.user, context.site.path(settings.ssh.private_key))
    hosts, lost = reach.split(nodes, Step.CONFIGURE)
    skipped |= {node.name: "its address or host key is unknown" for node in nodes if node.name not in hosts}
    asked = [(node, hosts[node.name]) for node in nodes if node.name in hosts]
    with closing(context.adapters(Access.CHECK)) as adapters:
        found = tuple(_read(context, adapters.playbooks, asked, control.cancelled))
    return DriftReport(nodes=found, skipped=skipped, complete=not lost, cancelled=control.cancelled.is_set())


def select(context: SiteContext, limit: tuple[str, ...]) -> tuple[list[NodeState], dict[str, str]]:
    """Return the nodes that are read, and why other named nodes are not."""
    known = {node.name: node for node in context.nodes() if node.stage is not Stage.RETIRED}
    names = sorted(matching(known, limit))
    if not limit:
        return context.named(name for name in names if known[name].in_pool(CLOCK.now())), {}
    before = (Stage.SEEN, Stage.DISCOVERED, Stage.INSTALLED)
    skipped = {name: "it was never configured" for name in names if known[name].stage in before}
    return context.named(name for name in names if name not in skipped), skipped


def _read(
    context: SiteContext,
    playbooks: Playbooks,
    asked: Sequence[tuple[NodeState, HostAddress]],
    cancelled: threading.Event,
) -> Iterator[NodeDrift]:
    """Read in batches, as the step configures; a host without a report is unmeasured."""
    settings = context.site.settings
    known = KnownHosts(context.journal)
    size = settings.batch.configure
    for at in range(0, len(asked), size):
        nodes, hosts = zip(*asked[at : at + size], strict=True)
        deadline = Deadline.after(float(settings.deadlines.configure), cancelled)
        variables = {**role_variables(context, known(), hosts), **plays_before(nodes)}
        yield from _batch(playbooks, settings.configure.playbook, hosts, variables, deadline)


def _batch(
    playbooks: Playbooks,
    playbook: str,
    batch: Sequence[HostAddress],
    variables: Mapping[str, object],
    deadline: Deadline,
) -> Iterator[NodeDrift]:
    left = {host.name for host in batch}
    why = "the check ended without a report about it"
    try:
        for play in playbooks.run(playbook, batch, variables, deadline):
            left.discard(play.value.host)
            yield NodeDrift.of(play.value)
    except CancelledError:
        why = "the check was stopped"
    except ClusterctlError as error:
        why = str(error)
    for name in sorted(left):
        yield NodeDrift(name, unmeasured=why)
