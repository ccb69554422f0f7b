"""The ports to the outside systems of a site that a run acts on, apart from its journal."""

from __future__ import annotations

import enum
from typing import Protocol

from clusterctl.ports import (
    Bmcs,
    Eraser,
    FabricReader,
    HostKeyReader,
    Images,
    Installer,
    Playbooks,
    Pool,
    PortAdmin,
    Shell,
    TableReader,
    TelemetryReader,
)
from clusterctl.ports import CounterReader as FabricCounters
from clusterctl.ports.accounts import AccountBmcs, PowerLogins
from clusterctl.ports.certificates import CertificateBmcs
from clusterctl.ports.jobs import Jobs
from clusterctl.ports.scheduler import Reboots, Scheduler
from clusterctl.ports.services import ServiceBmcs


class Access(enum.Enum):
    """What the adapters may change.

    FULL   everything
    READ   no BMC
    CHECK  no BMC, and playbooks run in check mode
    """

    FULL = "full"
    READ = "read"
    CHECK = "check"


class AccountAdapters(Protocol):
    """What a change of BMC passwords acts on."""

    @property
    def accounts(self) -> AccountBmcs: ...
    @property
    def power_logins(self) -> PowerLogins: ...


class Adapters(AccountAdapters, Protocol):
    """Everything that a run acts on, apart from its journal. Each is made at its first use."""

    @property
    def bmcs(self) -> Bmcs: ...
    @property
    def services(self) -> ServiceBmcs: ...
    @property
    def certificates(self) -> CertificateBmcs: ...
    @property
    def installer(self) -> Installer: ...
    @property
    def eraser(self) -> Eraser: ...
    @property
    def shell(self) -> Shell: ...
    @property
    def host_keys(self) -> HostKeyReader: ...
    @property
    def playbooks(self) -> Playbooks: ...
    @property
    def fabric(self) -> FabricReader: ...
    @property
    def fabric_ports(self) -> PortAdmin: ...
    @property
    def tables(self) -> TableReader: ...
    @property
    def counters(self) -> FabricCounters: ...
    @property
    def telemetry(self) -> TelemetryReader | None:
        """None where the site names no command that prints a db_csv."""
        ...

    @property
    def images(self) -> Images: ...
    @property
    def pool(self) -> Pool: ...
    @property
    def scheduler(self) -> Scheduler | None:
        """None where the site names no scheduler."""
        ...

    @property
    def reboots(self) -> Reboots | None:
        """None where the site's scheduler is not Slurm."""
        ...

    @property
    def jobs(self) -> Jobs | None:
        """None where the site's scheduler is not Slurm."""
        ...

    def close(self) -> None:
        """Close the connections; no adapter is used afterwards."""
        ...
