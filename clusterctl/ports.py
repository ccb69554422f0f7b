"""What the steps need from the outside, as Protocols. Edges meet them; tests meet them with small fakes.

Every call takes a `Deadline` (when to give up, and whether the run was cancelled) and returns `Observed`: the value
and the evidence that it rests on. Every call raises only `ClusterctlError`s.
"""

from __future__ import annotations

import enum
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol, Self

from clusterctl.fleet.errors import CancelledError, UnreachableError
from clusterctl.fleet.event import Event, NewEvent
from clusterctl.fleet.finding import Digest, Evidence, Observed
from clusterctl.fleet.node import Inventory, Mac, NodeId, Serial
from clusterctl.fleet.state import NodeState, Summary


class Clock(Protocol):
    """Time, as an argument: `now` is UTC and aware."""

    def now(self) -> datetime: ...


@dataclass(frozen=True, slots=True)
class Deadline:
    """When to give up (`time.monotonic` seconds) and the run's cancel token."""

    at: float
    cancelled: threading.Event = field(default_factory=threading.Event)

    @classmethod
    def after(cls, seconds: float, cancelled: threading.Event | None = None) -> Deadline:
        return cls(time.monotonic() + seconds, cancelled or threading.Event())

    @property
    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.at - time.monotonic())

    def within(self, seconds: float) -> Deadline:
        """The same cancel token, at most `seconds` from now."""
        return Deadline(min(self.at, time.monotonic() + seconds), self.cancelled)

    def check(self, doing: str) -> None:
        """Raise `CancelledError` or, past the deadline, `UnreachableError` naming what was being done."""
        if self.cancelled.is_set():
            raise CancelledError(f"stopped while {doing}")
        if self.remaining <= 0:
            raise UnreachableError(f"ran out of time while {doing}")

    def sleep(self, seconds: float, doing: str) -> None:
        """Wait, but wake at once when cancelled; raises as `check`."""
        self.cancelled.wait(min(seconds, self.remaining))
        self.check(doing)


# --- BMC ------------------------------------------------------------------------------------------------------------


class Power(enum.Enum):
    ON = "on"
    OFF = "off"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BmcAddress:
    """How to reach a BMC. `password` is a secret: never in `repr`, logs, journal or evidence."""

    host: str
    user: str
    password: str = field(repr=False)
    port: int = 443
    ca_file: str = ""


@dataclass(frozen=True, slots=True)
class LogEntry:
    """One SEL / Lifecycle entry: `severity` OK, Warning or Critical."""

    at: str
    severity: str
    message: str


class BmcClient(Protocol):
    """One BMC, one session, closed on exit: `with bmcs.open(address, deadline) as bmc: …`."""

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...
    def inventory(self, deadline: Deadline) -> Observed[Inventory]: ...
    def power(self, deadline: Deadline) -> Observed[Power]: ...
    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Bring the machine to `power` and read it back; refuses unless its serial is `serial`."""
        ...

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]: ...


class Bmcs(Protocol):
    """Opens BMC sessions."""

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient: ...


# --- OS install -----------------------------------------------------------------------------------------------------


class InstallState(enum.Enum):
    """Where an installer stands with a machine. The FAILED ones rest: someone must act."""

    ABSENT = "absent"
    PREPARING = "preparing"
    READY = "ready"
    INSTALLING = "installing"
    INSTALLED = "installed"
    RELEASING = "releasing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class InstallTarget:
    """A machine to install, its identity proven (`serial`), and how it shall come up.

    `root_disk` is the drive's serial; `host_key_private` an OpenSSH ed25519 key that the installer puts on the host, so
    that the host is known before the first connection; `authorized_key` the controller's public key.
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


@dataclass(frozen=True, slots=True)
class InstallStatus:
    """`detail` is the installer's own last word (`Failed commissioning: …`); `handle` its id of the machine."""

    state: InstallState
    detail: str = ""
    handle: str = ""
    addresses: tuple[str, ...] = ()


class Installer(Protocol):
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
        """Where each machine stands, by name; one request for all."""
        ...

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Give the machine back after a failed install, so that it can be prepared again."""
        ...


# --- hosts ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HostAddress:
    """A host that SSH can reach, and the only key it may present (`ssh-ed25519 AAAA…`)."""

    name: str
    address: str
    user: str
    host_key: str
    key_file: str
    port: int = 22


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command on a host did. `exit_status` is None where it was killed at its time-out."""

    exit_status: int | None
    stdout: str
    stderr: str
    seconds: float


class Shell(Protocol):
    """Runs commands on one host over SSH; `stdin` is sent, then closed."""

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]: ...


@dataclass(frozen=True, slots=True)
class PlayOutcome:
    """What a playbook did on one host. `failed_task` and `message` are empty when it went well."""

    host: str
    ok: bool
    changed: int
    failed_task: str = ""
    message: str = ""
    unreachable: bool = False


class Playbooks(Protocol):
    """Runs a playbook on many hosts and yields each host's outcome once the play is over for it."""

    def run(
        self, playbook: str, hosts: Sequence[HostAddress], variables: Mapping[str, Any], deadline: Deadline
    ) -> Iterator[Observed[PlayOutcome]]: ...


# --- fabric ---------------------------------------------------------------------------------------------------------


class FabricReader(Protocol):
    """Reads the InfiniBand fabric as it is now: the raw text of `ibnetdiscover`."""

    def ibnetdiscover(self, deadline: Deadline) -> Observed[str]: ...


# --- pool -----------------------------------------------------------------------------------------------------------


class Pool(Protocol):
    """Publishes who is gold to those who schedule on it."""

    def publish(self, gold: Mapping[str, str]) -> None:
        """Replace the published pool: node name → address. Whole or not at all."""
        ...


# --- journal --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to act on a node until it expires: `token` fences every append and every destructive act."""

    node: NodeId
    run: str
    token: int


@dataclass(frozen=True, slots=True)
class Claims:
    """What `Journal.claim` gave: claims by node, and for the others who holds them, in words."""

    granted: Mapping[NodeId, Claim]
    refused: Mapping[NodeId, str]


class Journal(Protocol):
    """The truth: append-only events, evidence by digest, and the node states that they fold to."""

    def append(self, events: Sequence[NewEvent], *, claim: Claim | None = None) -> tuple[Event, ...]:
        """Write all or nothing, and the states with them; `ClaimLostError` when `claim` is no longer ours."""
        ...

    def store(self, evidence: Iterable[Evidence]) -> None:
        """Keep evidence; storing it twice stores it once."""
        ...

    def evidence(self, digest: Digest) -> Evidence | None: ...
    def states(self) -> tuple[NodeState, ...]:
        """All nodes, by name."""
        ...

    def summaries(self) -> tuple[Summary, ...]:
        """All nodes in a line each, by name: cheap for thousands."""
        ...

    def state(self, node: NodeId) -> NodeState: ...
    def history(self, stream: str, subject: str) -> Iterator[Event]: ...
    def claim(self, nodes: Iterable[NodeId], run: str) -> Claims: ...
    def renew(self, run: str) -> None:
        """Push the expiry of all claims of `run`."""
        ...

    def release(self, claims: Iterable[Claim]) -> None: ...
