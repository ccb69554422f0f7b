"""What the steps need from the outside, as Protocols. SiteAdapters meet them; tests meet them with small fakes.

Every call takes a `Deadline` (when to give up, and whether the run was cancelled) and returns `Observed`: the value
and the evidence that it rests on. Every call raises only `ClusterctlError`s.

A port's module is imported with the first of its names: a command imports the ports that it uses.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clusterctl.fleet.bmc.boot import Post
    from clusterctl.fleet.bmc.logs import LogEntry
    from clusterctl.fleet.finding import Observed
    from clusterctl.ports.bmc import BmcAddress, BmcClient, Bmcs, Power
    from clusterctl.ports.deadline import Clock, Deadline, Timer
    from clusterctl.ports.fabric import (
        AlarmReader,
        CounterReader,
        FabricReader,
        JobReader,
        LinkModel,
        ManagerService,
        MasterActivity,
        MasterReader,
        PortAdmin,
        SystemReader,
        TableReader,
        TelemetryReader,
    )
    from clusterctl.ports.hosts import HostAddress, HostKeyReader, OfferedKey, Playbooks, PlayOutcome, Ran, Shell
    from clusterctl.ports.install import (
        BmcUser,
        Eraser,
        FailureKind,
        Installer,
        InstallError,
        InstallState,
        InstallStatus,
        InstallTarget,
        Milestone,
    )
    from clusterctl.ports.journal import LEASE_S, Append, Claim, ClaimOwner, Claims, Journal
    from clusterctl.ports.pool import Pool
    from clusterctl.ports.settings import BmcSettings, Images

__all__ = [
    "LEASE_S",
    "AlarmReader",
    "Append",
    "BmcAddress",
    "BmcClient",
    "BmcSettings",
    "BmcUser",
    "Bmcs",
    "Claim",
    "ClaimOwner",
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
    "JobReader",
    "Journal",
    "LinkModel",
    "LogEntry",
    "ManagerService",
    "MasterActivity",
    "MasterReader",
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
    "SystemReader",
    "TableReader",
    "TelemetryReader",
    "Timer",
]

_NAMES: Mapping[str, str] = {
    "clusterctl.fleet.bmc.boot": "Post",
    "clusterctl.fleet.bmc.logs": "LogEntry",
    "clusterctl.fleet.finding": "Observed",
    "clusterctl.ports.bmc": "BmcAddress BmcClient Bmcs Power",
    "clusterctl.ports.deadline": "Clock Deadline Timer",
    "clusterctl.ports.fabric": "AlarmReader CounterReader FabricReader JobReader LinkModel ManagerService "
    "MasterActivity MasterReader PortAdmin SystemReader TableReader TelemetryReader",
    "clusterctl.ports.hosts": "HostAddress HostKeyReader OfferedKey PlayOutcome Playbooks Ran Shell",
    "clusterctl.ports.install": (
        "BmcUser Eraser FailureKind InstallError InstallState InstallStatus InstallTarget Installer Milestone"
    ),
    "clusterctl.ports.journal": "LEASE_S Append Claim ClaimOwner Claims Journal",
    "clusterctl.ports.pool": "Pool",
    "clusterctl.ports.settings": "BmcSettings Images",
}
_MODULES = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    """Return a name of one of the modules, which it imports. Raise `AttributeError` for another name (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_MODULES[name]), name)
    return value
