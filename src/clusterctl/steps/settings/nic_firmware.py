"""The firmware of the adapters of one wave of machines, by the playbook that burns it, reboots and asks again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.event import Kind, NewEvent
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, HostAddress, Journal, Playbooks, PlayOutcome
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.settings.apply_baseline import BaselineResult

ACT = "nic_firmware.play"
PLAYBOOK = "nic_firmware.yml"
OVER = "over"


@dataclass(frozen=True, slots=True)
class NicFirmwareWork:
    """`variables` are the site's; `address` is None for a node that no OS of ours runs on.

    The playbook looks before it burns, so that whoever comes back after an interruption runs it again.
    """

    playbooks: Playbooks
    journal: Journal
    address: Callable[[NodeState], HostAddress | None]
    variables: Mapping[str, Any]
    seconds: float
    acts: frozenset[str] = frozenset({ACT})

    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], acts: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]:
        """Each machine's outcome as soon as the play is over for it."""
        nodes = {node.name: node for node, _ in wave}
        addresses = {name: host for name, node in nodes.items() if (host := self.address(node)) is not None}
        for name in nodes.keys() - addresses.keys():
            yield BaselineResult(name, error=_unreachable(name))
        if not addresses:
            return
        serials = {node.name: serial for node, serial in wave if node.name in addresses}
        for name, serial in serials.items():
            acts.intend(nodes[name].id, ACT, serial)
        told = {**self.variables, "nic_firmware_serials": serials}
        fenced = acts.fenced([nodes[name].id for name in addresses], deadline)
        for play in self.playbooks.run(PLAYBOOK, list(addresses.values()), told, fenced):
            yield self._over(nodes[play.value.host], play, acts)

    def _over(self, node: NodeState, play: Observed[PlayOutcome], acts: IntentLog) -> BaselineResult:
        """Written down with the play as its evidence."""
        outcome = play.value
        result = OVER if outcome.ok else f"failed: {outcome.failed_task}: {outcome.message}"
        self.journal.store(play.evidence)
        digests = tuple(item.digest for item in play.evidence)
        event = NewEvent("node", node.id, Kind.ACT_OBSERVED, {"act": ACT, "result": result}, digests)
        self.journal.append([event], claim=acts.lease.claim(node.id))
        error = None if outcome.ok else _failed(node.name, outcome)
        return BaselineResult(node.name, error=error, changed=outcome.changed > 0)


def _unreachable(name: str) -> EdgeError:
    return EdgeError(
        "its address or host key is not known",
        where=name,
        remedy=f"clusterctl install --limit {name} first: the firmware is burnt from its OS",
    )


def _failed(name: str, outcome: PlayOutcome) -> EdgeError:
    remedy = f"clusterctl node {name} shows the play; once mended, the same command goes on"
    return EdgeError(f"task “{outcome.failed_task}” failed: {outcome.message}", where=name, remedy=remedy)
