"""Where an installed node is reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.finding_code import Code
from clusterctl.fleet.node import Step
from clusterctl.fleet.state import NodeState
from clusterctl.ports import HostAddress
from clusterctl.steps.step import Outcome


@dataclass(frozen=True, slots=True)
class Reach:
    """The controller's login on all hosts."""

    user: str
    key_file: str

    def address(self, node: NodeState) -> HostAddress | None:
        """None where the node has no address or no pinned host key: nothing is trusted on first use."""
        if not (node.address and node.host_key):
            return None
        return HostAddress(node.name, node.address, self.user, node.host_key, self.key_file)

    def split(self, nodes: Iterable[NodeState], step: Step) -> tuple[dict[str, HostAddress], list[Outcome]]:
        """Addresses by node name, and an outcome for every node that has none."""
        hosts, lost = {}, []
        for node in nodes:
            host = self.address(node)
            if host is not None:
                hosts[node.name] = host
            else:
                cause = "its address or host key is unknown"
                finding = Finding(
                    check=step.value,
                    verdict=Verdict.INCONCLUSIVE,
                    code=Code.HOST_UNKNOWN,
                    cause=cause,
                    remedy="run clusterctl install on it",
                )
                lost.append(Outcome(node.id, (finding,)))
        return hosts, lost
