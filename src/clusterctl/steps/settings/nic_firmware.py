"""Firmware of the adapters of one wave of machines, by the playbook that burns it, reboots and reads it back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.acts import Act, ActResult
from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import node_event
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActObserved
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Journal, Playbooks, PlayOutcome
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.permits import NoPermitError, RebootPermits, unlimited
from clusterctl.steps.settings.apply_baseline import BaselineResult

PLAYBOOK = "nic_firmware.yml"


@dataclass(frozen=True, slots=True)
class NicFirmwareWork:
    """`variables` are the site's; `address` is None for a node without an OS of the site.

    The playbook looks before it burns: after an interruption it is run again.
    """

    playbooks: Playbooks
    journal: Journal
    address: Callable[[NodeState], HostAddress | None]
    variables: Mapping[str, Any]
    seconds: float
    acts: frozenset[Act] = frozenset({Act.NIC_FIRMWARE_PLAY})
    permits: RebootPermits = unlimited

    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], intents: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]:
        """Yield each machine's result as soon as the play is over for it; the claims are kept until the last one."""
        with intents.lease.kept():
            yield from self._run(wave, intents, deadline)

    def _run(
        self, wave: Sequence[tuple[NodeState, Serial]], intents: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]:
        hosts = {node.id: host for node, _ in wave if (host := self.address(node)) is not None}
        machines = []
        for node, serial in wave:
            if node.id in hosts:
                machines.append((node, serial))
            else:
                yield BaselineResult(node.name, error=_unreachable(node.name))
        while machines:
            try:
                with self.permits(len(machines), deadline) as count:
                    batch, machines = machines[:count], machines[count:]
                    yield from self._burn(batch, [hosts[node.id] for node, _ in batch], intents, deadline)
            except NoPermitError as error:
                yield from (BaselineResult(node.name, error=error) for node, _ in machines)
                return

    def _burn(
        self,
        machines: Sequence[tuple[NodeState, Serial]],
        hosts: Sequence[HostAddress],
        intents: IntentLog,
        deadline: Deadline,
    ) -> Iterator[BaselineResult]:
        """Run the play, which burns only the adapters of a machine that has the intended serial."""
        for node, serial in machines:
            intents.intend(node.id, Act.NIC_FIRMWARE_PLAY, serial)
        nodes = {node.name: node for node, _ in machines}
        variables = {**self.variables, "nic_firmware_serials": {node.name: serial for node, serial in machines}}
        fenced = intents.fenced([node.id for node in nodes.values()], deadline)
        for play in self.playbooks.run(PLAYBOOK, hosts, variables, fenced):
            yield self._over(nodes[play.value.host], play, intents)

    def _over(self, node: NodeState, play: Observed[PlayOutcome], intents: IntentLog) -> BaselineResult:
        """Record the result, with the play as its evidence."""
        outcome = play.value
        result = ActResult.DONE if outcome.ok else ActResult.FAILED
        message = "" if outcome.ok else f"{outcome.failed_task}: {outcome.message}"
        self.journal.store(play.evidence)
        digests = tuple(item.digest for item in play.evidence)
        event = node_event(node.id, ActObserved(act=Act.NIC_FIRMWARE_PLAY, result=result, message=message), digests)
        self.journal.append([event], claim=intents.lease.claim(node.id))
        error = None if outcome.ok else _failed(node.name, outcome)
        return BaselineResult(node.name, error=error, changed=outcome.changed > 0)


def _unreachable(name: str) -> EdgeError:
    return EdgeError(
        "its address or host key is not known",
        where=name,
        remedy=f"clusterctl install --limit {name} first: its OS burns the firmware",
    )


def _failed(name: str, outcome: PlayOutcome) -> EdgeError:
    remedy = f"clusterctl nodes {name} shows the play; repair what the task names, then repeat the command"
    return EdgeError(f"task “{outcome.failed_task}” failed: {outcome.message}", where=name, remedy=remedy)
