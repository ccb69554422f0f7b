"""What the steps need from the outside, as Protocols. SiteAdapters meet them; tests meet them with small fakes.

Every call takes a `Deadline` (when to give up, and whether the run was cancelled) and returns `Observed`: the value
and the evidence that it rests on. Every call raises only `ClusterctlError`s.
"""

from clusterctl.fleet.bmc.boot import Post
from clusterctl.fleet.bmc.logs import LogEntry
from clusterctl.fleet.finding import Observed
from clusterctl.ports.bmc import BmcAddress, BmcClient, Bmcs, Power
from clusterctl.ports.deadline import Clock, Deadline, Timer
from clusterctl.ports.fabric import CounterReader, FabricReader, PortAdmin, TableReader, TelemetryReader
from clusterctl.ports.hosts import HostAddress, HostKeyReader, OfferedKey, Playbooks, PlayOutcome, Ran, Shell
from clusterctl.ports.install import (
    Eraser,
    FailureKind,
    Installer,
    InstallError,
    InstallState,
    InstallStatus,
    InstallTarget,
    Milestone,
)
from clusterctl.ports.journal import LEASE_S, Claim, Claims, Journal
from clusterctl.ports.pool import Pool
from clusterctl.ports.settings import BmcSettings, Images

__all__ = [
    "LEASE_S",
    "BmcAddress",
    "BmcClient",
    "BmcSettings",
    "Bmcs",
    "Claim",
    "Claims",
    "Clock",
    "CounterReader",
    "Deadline",
    "Eraser",
    "FabricReader",
    "FailureKind",
    "HostAddress",
    "HostKeyReader",
    "Images",
    "InstallError",
    "InstallState",
    "InstallStatus",
    "InstallTarget",
    "Installer",
    "Journal",
    "LogEntry",
    "Milestone",
    "Observed",
    "OfferedKey",
    "PlayOutcome",
    "Playbooks",
    "Pool",
    "PortAdmin",
    "Post",
    "Power",
    "Ran",
    "Shell",
    "TableReader",
    "TelemetryReader",
    "Timer",
]
