"""Putting an OS on machines, and taking it off for good."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from clusterctl.fleet.errors import EdgeError
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.hardware.disk_contract import DiskContract, KernelDrive
from clusterctl.fleet.hardware.sku import RootDisk
from clusterctl.fleet.network.host_network import HostNetwork
from clusterctl.fleet.node import Mac, Serial
from clusterctl.fleet.secret import NeverPickled
from clusterctl.ports.bmc import BmcAddress
from clusterctl.ports.deadline import Deadline


class InstallState(enum.Enum):
    """Where an installer stands with a machine. The FAILED ones rest: someone must act."""

    ABSENT = "absent"
    PREPARING = "preparing"
    READY = "ready"
    INSTALLING = "installing"
    INSTALLED = "installed"
    RELEASING = "releasing"
    ERASING = "erasing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class InstallTarget(NeverPickled):
    """A machine to install, its identity proven (`serial`), and its wanted configuration.

    root_disk         the drive's serial; empty where the host or the installer names the drive
    root_wwn          its WWN where the BMC reports one
    root_rule         the SKU's rule for the drive
    host_key_private  an OpenSSH ed25519 key that the installer puts on the host: so the host is known before the first
                      connection. A host that makes its own key reports it in its status.
    authorized_key    the controller's public key
    address           of the host's booting port; empty where the installer decides
    network           empty where the installer's default is wanted
    erase             serials of all its drives, where they are to be erased instead
    """

    name: str
    serial: Serial
    macs: tuple[Mac, ...]
    bmc: BmcAddress
    root_disk: Serial
    authorized_key: str
    user: str
    host_key_private: str = field(repr=False)
    host_key_public: str = ""
    root_wwn: str = ""
    root_rule: RootDisk | None = None
    address: str = ""
    network: HostNetwork = field(default_factory=HostNetwork)
    erase: tuple[Serial, ...] = ()

    @property
    def disk(self) -> DiskContract:
        return DiskContract(self.root_disk, self.root_wwn, self.root_rule)


@dataclass(frozen=True, slots=True)
class Milestone:
    """An event that the machine reported of its own install: when (UTC), and what, as text."""

    at: datetime
    text: str


class FailureKind(enum.StrEnum):
    """What an installer's failure is about, by the installer's states and event types, never by its wording.

    MACHINE   the attempt failed; another one may succeed
    POWER     the installer could not use the BMC; another attempt may succeed
    LOGIN     the installer logs in to the BMC with another login than the site has: no attempt succeeds
    FOREIGN   another machine, or another owner's: nothing may be done to it
    OPERATOR  an operator brought the machine there, or must bring it away; nothing is known against the machine
    """

    MACHINE = "machine"
    POWER = "power"
    LOGIN = "login"
    FOREIGN = "foreign"
    OPERATOR = "operator"

    @property
    def final(self) -> bool:
        """Whether another attempt is of no use before someone has changed something."""
        return self not in (FailureKind.MACHINE, FailureKind.POWER)


class InstallError(EdgeError):
    """The installer did not do it, or must not; the machine is where it was."""

    kind = "install"

    def __init__(self, message: str, failure: FailureKind, *, where: str = "", remedy: str = "") -> None:
        super().__init__(message, where=where, remedy=remedy)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class InstallStatus:
    """`detail` is the installer's own last message (`Failed commissioning: …`); `handle` its id of the machine.

    failure     the cause of the last attempt's failure, where the installer knows it; also where the machine is back
                in a state from which an install begins
    remedy      what to do about it, in the imperative; empty where the installer knows nothing better
    host_key    the public key that the host made for itself and the installer vouches for; empty: the one we gave it
    makes_key   True where the host makes its own key: the key is unknown until `host_key` returns it
    milestones  of the present attempt, oldest first; empty where the installer reports none
    drives      what the machine reported before the first write; None where it was not read
    blanks      the installer wipes the start and the end of each of `drives`, and writes to the root disk alone
    root        the drive that the OS goes to, as the installer names it; None where it does not
    decide      what an operator has to decide before the machine can be written; empty: nothing
    """

    state: InstallState
    detail: str = ""
    handle: str = ""
    addresses: tuple[str, ...] = ()
    host_key: str = ""
    milestones: tuple[Milestone, ...] = ()
    drives: tuple[KernelDrive, ...] | None = None
    blanks: bool = False
    makes_key: bool = False
    root: DiskContract | None = None
    decide: str = ""
    failure: FailureKind | None = None
    remedy: str = ""


class BmcUser(Protocol):
    """What switches machines through their BMCs on its own account."""

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        """Return the login with which it switches the machine, and where.

        None where that is no login over Redfish, or where it switches the machine through our own sessions.
        """
        ...


class Installer(BmcUser, Protocol):
    """Puts an OS on machines. The install step does not know which installer it is.

    Every call looks at the installer's own state first, so that calling it twice does the work once.
    """

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Make the machine known and inventoried (enrol, commission): returns at once, mostly PREPARING."""
        ...

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Begin to write the OS to the root disk: only from READY; returns at once, mostly INSTALLING."""
        ...

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """Return the install status of each machine, by name; one request for all."""
        ...

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Give the machine back, after a failed install or to reinstall it, so that it can be prepared again.

        What was INSTALLED is not afterwards, whatever is still on its disk.
        """
        ...


class Eraser(BmcUser, Protocol):
    """Erases machines: what an installer can do for those that leave for good."""

    def erases_any(self, name: str) -> bool:
        """Return whether it erases this node also where it has not installed it, or has given it back."""
        ...

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Give the machine back with every drive erased: returns at once, mostly ERASING; READY when it is done.

        Looks first, so that calling it twice erases once. Refuses unless it has itself read `target.serial` off the
        machine, and the machine is ours.
        """
        ...

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """Return the same as `Installer.observe`."""
        ...
