"""The InfiniBand fabric: reading it, and setting single ports of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.fabric.alarms import AlarmList, ManagedLink, ManagedSystem
from clusterctl.fleet.fabric.manager_jobs import ManagerJob
from clusterctl.fleet.fabric.topology import PortState
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Guid
from clusterctl.ports.deadline import Deadline


class FabricReader(Protocol):
    """Reads the InfiniBand fabric as it is now: the raw text of `ibnetdiscover`."""

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]: ...


@dataclass(frozen=True, slots=True)
class MasterActivity:
    """How many packets (modulo 2^32) the master subnet manager at the port `guid` has sent."""

    guid: Guid
    packets: int


class MasterReader(Protocol):
    """Asks the master subnet manager."""

    def activity(self, deadline: Deadline) -> MasterActivity: ...


class TableReader(Protocol):
    """Reads the forwarding tables of all switches: the raw text of `dump_fts`."""

    def dump_fts(self, deadline: Deadline) -> Observed[str]: ...


class CounterReader(Protocol):
    """Reads the counters of all ports: the raw text of `ibqueryerrors`."""

    def ibqueryerrors(self, deadline: Deadline) -> Observed[str]:
        """Read the error counters."""
        ...

    def traffic(self, deadline: Deadline) -> Observed[str]:
        """Read the error counters, then what passed each port (`--counters`); both in one text."""
        ...


class TelemetryReader(Protocol):
    """Reads fabric, counters, transceivers and temperatures at once: the raw text of ibdiagnet2's `db_csv`."""

    def db_csv(self, deadline: Deadline) -> Observed[str]: ...


class AlarmReader(Protocol):
    """Reads what a fabric manager reports: the events that it still has, or the entries of its log."""

    def alarms(self, deadline: Deadline) -> Observed[AlarmList]: ...


class LinkModel(Protocol):
    """Reads the links of the fabric as a fabric manager has them."""

    def links(self, deadline: Deadline) -> Observed[tuple[ManagedLink, ...]]: ...


class SystemReader(Protocol):
    """Reads hosts and switches as a fabric manager has them, with their firmware."""

    def systems(self, deadline: Deadline) -> Observed[tuple[ManagedSystem, ...]]: ...


class JobReader(Protocol):
    """Reads the jobs of a fabric manager."""

    def jobs(self, deadline: Deadline, parent: str = "") -> Observed[tuple[ManagerJob, ...]]:
        """Return all jobs, or the parts of one."""
        ...

    def job(self, id_: str, deadline: Deadline) -> Observed[ManagerJob]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchImage:
    """Where switches load new software from. `protocol`: scp or ftp; `path`: the folder; `name`: the file."""

    protocol: str
    server: str
    user: str
    password: str = field(repr=False)
    path: str
    name: str


class SwitchUpdater(Protocol):
    """Orders a fabric manager to act on a switch. Raises `OutcomeUnknownError` where it may have taken the order."""

    def upgrade(self, switch: Guid, image: SwitchImage, deadline: Deadline) -> str:
        """Let the switch load and install the image; return the number of the manager's job."""
        ...

    def reboot(self, switch: Guid, deadline: Deadline) -> str:
        """Reboot the switch; return the number of the manager's job."""
        ...


class ManagerService(Protocol):
    """The fabric manager as a service of its host."""

    def is_active(self, deadline: Deadline) -> bool:
        """Return whether it runs on the host that `restart` reaches."""
        ...

    def restart(self, deadline: Deadline) -> None: ...


class PortAdmin(Protocol):
    """Looks at and sets single ports of switches, each by its number at the switch that has `lid` now."""

    def device(self, lid: int, deadline: Deadline) -> Observed[Guid]:
        """Return the GUID of the device at that LID."""
        ...

    def state(self, lid: int, port: int, deadline: Deadline) -> Observed[PortState]: ...
    def set_disabled(self, lid: int, port: int, disabled: bool, deadline: Deadline) -> Observed[PortState]:
        """Disable or enable it, and read back how it then is."""
        ...
