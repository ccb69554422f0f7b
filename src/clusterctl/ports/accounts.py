"""BMCs' accounts: looking at them, changing a password, and keeping what was changed."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Protocol, Self

from clusterctl.fleet.bmc.accounts import Account, AccountSight
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Mac, NodeId, Serial
from clusterctl.fleet.secret import NeverPickled
from clusterctl.fleet.state import NodeState
from clusterctl.ports.bmc import BmcAddress
from clusterctl.ports.deadline import Deadline


class AccountClient(Protocol):
    """One BMC, one session, closed on exit."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    @property
    def took_former(self) -> bool:
        """Whether the BMC took the former credentials of its address, and rejected the others."""
        ...

    def look(self, user: str, deadline: Deadline) -> AccountSight:
        """Return the account of this name, with the machine that its BMC is in. Changes nothing."""
        ...

    def change(self, account: Account, password: str, deadline: Deadline) -> Observed[bool]:
        """Request the new password once: False where the BMC's answer leaves the outcome open.

        Raise the error for a refusal of the BMC. Only a new login shows whether the password changed.
        """
        ...


class AccountBmcs(Protocol):
    """Opens BMC sessions for their accounts."""

    def open_accounts(self, address: BmcAddress, deadline: Deadline) -> AccountClient: ...


@dataclass(frozen=True, slots=True)
class Generation(NeverPickled):
    """A generated password of one machine, as it is kept on disk: the `number`-th of its node.

    `proven`: the BMC was seen to take it. `serial`: of the machine, empty where it was unknown.
    """

    node: NodeId
    number: int
    name: str
    bmc: str
    serial: str
    user: str
    password: str = field(repr=False)
    proven: bool = False


class Vault(Protocol):
    """The passwords that were generated for BMCs. Thread-safe."""

    def latest(self, node: NodeState) -> Generation | None:
        """Return the last one of the node's machine, proven or not."""
        ...

    def draw(self, node: NodeState, user: str, length: int, serial: str) -> Generation:
        """Return a new one, on disk when this returns."""
        ...

    def prove(self, generation: Generation, serial: Serial | None) -> None:
        """Record that the BMC takes it and is in the machine with this serial; on disk when this returns."""
        ...

    def place(self, generation: Generation) -> str:
        """Return the place where it is kept, for messages."""
        ...


@dataclass(frozen=True, slots=True)
class PowerTarget(NeverPickled):
    """A machine that an installer switches on and off, and how it is to log in to its BMC from now on."""

    name: str
    serial: Serial
    macs: tuple[Mac, ...]
    bmc: BmcAddress


class LoginUpdate(enum.Enum):
    """What became of a new password at the installer."""

    GIVEN = "it has the new password"
    HAD = "it had the new password"
    UNKNOWN = "it does not know the machine"
    OTHER = "it logs in to the BMC in another way"


class PowerLogins(Protocol):
    """An installer that logs in to BMCs by itself."""

    def give(self, target: PowerTarget, deadline: Deadline) -> Observed[LoginUpdate]:
        """Have it use the target's password, and read it back. Calling it twice does it once."""
        ...
