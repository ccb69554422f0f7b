"""What a burn-in works with (services), and what it does to which nodes (plan)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Clock, Deadline, HostAddress, Shell
from clusterctl.steps.burnin.campaigns import CampaignStore
from clusterctl.steps.burnin.fleet_figures import FleetFigures
from clusterctl.steps.burnin.node_under_test import SkuLimits
from clusterctl.steps.executor.reachability import BmcProbe, SshAccess
from clusterctl_burnin.host_requirements import HostRequirements
from clusterctl_burnin.kernel_log.known_lines import KnownLines
from clusterctl_burnin.suites.suite import Suite

Introduce = Callable[[Sequence[HostAddress], Deadline], Mapping[str, str]]
"""Lets the nodes of a group log in to each other; node name → why it could not, for those where it failed."""


@dataclass(frozen=True, slots=True)
class BurninServices:
    """What a burn-in works with."""

    shell: Shell
    access: SshAccess
    bmcs: BmcProbe
    clock: Clock
    campaigns: CampaignStore
    fleet: FleetFigures
    introduce: Introduce


@dataclass(frozen=True, slots=True)
class Concurrency:
    """How many nodes are checked, how many run a load of their own, and how many jobs of a load of several nodes run,
    at the same time at most.

    Nodes do not disturb each other, and loads are to fill the fabric. Hosts that share the controller's processors
    need a bound: more at once would measure the controller.
    """

    checks: int = 256
    jobs: int = 4096
    loads: int = 4096


@dataclass(frozen=True, slots=True)
class BurninPlan:
    """What is run, and what nodes are judged by.

    limits        by SKU
    driver_of     the GPU driver version that a node is to run
    network_of    the network that a host is to have; raises `UsageError` where one of its ports is not known
    leaf_of       the leaf switches of each node, as far as the wiring plan knows them
    partners      gold nodes that an operator or the site lends for this run
    sample_s      seconds between two samples of a node under load
    """

    suite: Suite
    limits: Mapping[str, SkuLimits]
    driver_of: Callable[[NodeState], str]
    network_of: Callable[[NodeState], HostNetwork]
    known_lines: KnownLines = field(default_factory=KnownLines)
    requirements: HostRequirements = field(default_factory=HostRequirements)
    leaf_of: Mapping[str, str] = field(default_factory=dict)
    partners: Sequence[NodeState] = ()
    concurrency: Concurrency = field(default_factory=Concurrency)
    sample_s: float = 1.0
