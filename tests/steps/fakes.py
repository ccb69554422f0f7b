"""Small stand-ins for the outside; each meets its Protocol and keeps count of what was asked of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Self

from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.codec import inventory_to_data
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError
from clusterctl.fleet.event import Kind
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Drive, Inventory, Mac, Nic, Serial
from clusterctl.ports import (
    BmcAddress,
    Deadline,
    HostAddress,
    InstallState,
    InstallStatus,
    InstallTarget,
    Journal,
    LogEntry,
    Post,
    Power,
    Ran,
)
from tests.events import advances, new_event

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def seen(text: str = "seen") -> tuple[Evidence, ...]:
    return (Evidence("fake", "lab", NOW, Origin.REAL, text.encode()),)


class FixedClock:
    def now(self) -> datetime:
        return NOW


def inventory(serial: str) -> Inventory:
    return Inventory(
        "Dell Inc.",
        "PowerEdge XE9680",
        Serial(serial),
        nics=(Nic("nic0", Mac("02:00:00:00:00:01"), boots=True),),
        drives=(Drive("0", "M.2", 480_000_000_000, Serial(f"DISK-{serial}")),),
    )


def identified(book: Journal, name: str, serial: str, stage: str = "discovered") -> None:
    """Write a node into the journal as if it had been discovered."""
    node = f"id-{name}"
    data = {"inventory": inventory_to_data(inventory(serial)), "sku": "lab", "root_disk": f"DISK-{serial}"}
    book.append(
        [
            new_event("node", node, Kind.NODE_DESCRIBED, {"name": name, "bmc": "192.0.2.1", "rack": "A01", "unit": 4}),
            new_event("node", node, Kind.NODE_IDENTIFIED, data),
            *advances(node, stage),
        ]
    )


@dataclass
class FakeInstaller:
    """An installer whose machines go through their states one step a look. `fails`: these end in a failure; `reached`:
    an address of theirs is known even then. `started`: the targets of its starts.
    """

    states: dict[str, InstallState] = field(default_factory=dict)
    details: dict[str, str] = field(default_factory=dict)
    fails: set[str] = field(default_factory=set)
    reached: set[str] = field(default_factory=set)
    calls: list[tuple[str, str]] = field(default_factory=list)
    errors: list[EdgeError] = field(default_factory=list)
    login: BmcAddress | None = None
    report: InstallStatus = field(default_factory=lambda: InstallStatus(InstallState.ABSENT))
    """In addition to state, detail, handle and addresses: host key, milestones, drives."""
    started: list[InstallTarget] = field(default_factory=list)

    def _trouble(self) -> None:
        if self.errors:
            raise self.errors.pop(0)

    def _status(self, name: str) -> Observed[InstallStatus]:
        state = self.states.get(name, InstallState.ABSENT)
        known = state is InstallState.INSTALLED or name in self.reached
        addresses = ("192.0.2.100",) if known else ()
        detail = self.details.get(name, "")
        status = replace(self.report, state=state, detail=detail, handle=name, addresses=addresses)
        return Observed(status, seen(state.value))

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        return self.login

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self.calls.append(("prepare", target.name))
        self.states[target.name] = InstallState.PREPARING
        return self._status(target.name)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self.calls.append(("start", target.name))
        self.started.append(target)
        self._trouble()
        self.states[target.name] = InstallState.INSTALLING
        return self._status(target.name)

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        self.calls.append(("release", target.name))
        self.states[target.name] = InstallState.READY
        return self._status(target.name)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        answer = {target.name: self._status(target.name) for target in targets}
        for target in targets:
            state = self.states.get(target.name)
            if state is InstallState.PREPARING:
                self.states[target.name] = InstallState.READY
            elif state is InstallState.INSTALLING:
                failed = target.name in self.fails
                self.states[target.name] = InstallState.FAILED if failed else InstallState.INSTALLED
                if failed:
                    self.details[target.name] = "Failed deployment: node was never seen"
        return answer


@dataclass
class FakeShell:
    """A host that answers `answers[name]`; an absent one is unreachable.

    Its drives: `outputs` by the command's first word, else it runs from the one disk that `inventory` gives it; an error
    there is raised, and a `Ran` is returned as it is. `held`: the host keys that it was held to.
    """

    answers: dict[str, str]
    error: EdgeError | None = None
    tries: int = 0
    outputs: Mapping[str, str | Ran | ClusterctlError] = field(default_factory=dict)
    held: list[str] = field(default_factory=list)

    def run(self, host: HostAddress, argv: Sequence[str], stdin: bytes, deadline: Deadline) -> Observed[Ran]:
        self.tries += 1
        self.held.append(host.host_key)
        if self.error is not None:
            raise self.error
        if host.name not in self.answers:
            raise UnreachableError("no route")
        reported = {"cat": self.answers[host.name], **disks(f"DISK-SN-{host.name}"), **self.outputs}
        output = reported[argv[0]]
        if isinstance(output, ClusterctlError):
            raise output
        return Observed(output if isinstance(output, Ran) else Ran(0, output, "", 0.1), seen(argv[0]))


def disks(serial: str) -> dict[str, str]:
    """Return the output of lsblk and findmnt on a host with one disk."""
    root = {"target": "/", "source": "/dev/sda2", "fstype": "ext4", "options": "rw", "maj:min": "8:2"}
    part = {"path": "/dev/sda2", "maj:min": "8:2", "type": "part", "size": 479 * 10**9, "fstype": "ext4"}
    disk = {
        "path": "/dev/sda",
        "maj:min": "8:0",
        "type": "disk",
        "size": 480 * 10**9,
        "serial": serial,
        "pttype": "gpt",
    }
    devices = {"blockdevices": [disk | {"children": [part]}]}
    return {"lsblk": json.dumps(devices), "findmnt": json.dumps({"filesystems": [root]})}


@dataclass
class FakeBmc:
    """A BMC that reports what it is given, and remembers being closed."""

    report: Inventory | EdgeError
    log: tuple[LogEntry, ...] = ()
    state: Power = Power.ON
    closed: int = 0
    after_boot: Inventory | None = None
    tested: list[Post] = field(default_factory=list)
    switched: list[Power] = field(default_factory=list)
    shown: Screen | EdgeError | None = None

    def __enter__(self) -> Self:
        if isinstance(self.report, EdgeError):
            raise self.report
        return self

    def __exit__(self, *exc: object) -> None:
        self.closed += 1

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        assert isinstance(self.report, Inventory)
        booted = self.after_boot is not None and self.switched and not self.tested
        found = self.after_boot if booted and self.after_boot else self.report
        return Observed(replace(found, on=self.state is Power.ON) if found.on is not None else found, seen("inventory"))

    def power(self, deadline: Deadline) -> Observed[Power]:
        return Observed(self.state, seen("power"))

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        assert self.after_boot is not None, "no step of this test may switch power"
        deadline.check("switching power")
        assert isinstance(self.report, Inventory)
        assert serial == self.report.serial
        self.state = power
        self.switched.append(power)
        return Observed(power, seen(f"set power {power.value}"))

    def post(self, deadline: Deadline) -> Observed[Post]:
        return Observed(self.tested.pop(0) if self.tested else Post.DONE, seen("post"))

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        return Observed(self.log, seen("log"))

    def screen(self, deadline: Deadline) -> Observed[Screen | None]:
        if isinstance(self.shown, EdgeError):
            raise self.shown
        return Observed(self.shown, seen("screen") if self.shown else ())


@dataclass
class FakeBmcs:
    bmcs: dict[str, FakeBmc]

    def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
        return self.bmcs[address.host]


def address_of(name: str) -> BmcAddress:
    return BmcAddress(name, "root", "secret")
