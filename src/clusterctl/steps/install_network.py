"""The network that an installed host shall come up with, by the site's word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.finding import Finding, Verdict
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.state import NodeState
from clusterctl.steps.step import Outcome


def _installers_way(_node: NodeState) -> HostNetwork:
    return HostNetwork()


def _installers_address(_name: str) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class TargetNetworks:
    """`network_of` raises `UsageError` where a port that is meant is not known; `address_of`: the host's own address
    by a node's name, empty where the installer decides.
    """

    network_of: Callable[[NodeState], HostNetwork] = _installers_way
    address_of: Callable[[str], str] = _installers_address


INSTALLERS_WAY = TargetNetworks()


def network_unknown(node: NodeState, error: UsageError) -> Outcome:
    """Nothing is installed that would come up unreachable."""
    cause = f"its network cannot be planned: {error.message}"
    finding = Finding(
        check="install", verdict=Verdict.INCONCLUSIVE, cause=cause, remedy=error.remedy, deterministic=False
    )
    return Outcome(node.id, (finding,))
