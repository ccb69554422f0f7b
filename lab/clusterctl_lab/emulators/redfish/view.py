"""What a BMC sees of its machine at one moment: all that its answers are made from."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusterctl_lab.boot import BootTarget, Medium
from clusterctl_lab.machine import Machine


@dataclass(frozen=True, slots=True)
class LogRecord:
    """`at` is UTC in ISO 8601; `message_id` is empty where the log carries none of its own."""

    at: str
    severity: str
    message: str
    message_id: str = ""
    args: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SessionView:
    """An open session, without its token."""

    id: str
    user: str
    client: str


class TaskState(enum.Enum):
    """DMTF Task schema, TaskState: those that the engine's tasks pass through. SCHEDULED waits for a boot."""

    SCHEDULED = "Pending"
    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Exception"

    @property
    def over(self) -> bool:
        return self in (TaskState.COMPLETED, TaskState.FAILED)


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task, or a Dell job. `started` and `ended` are UTC in ISO 8601, `ended` is empty until it is over.

    kind     FirmwareUpdate or BIOSConfiguration
    target   what it works on: `BIOS`, `BMC`, …
    """

    id: str
    kind: str
    target: str
    state: TaskState
    percent: int
    message: str
    started: str
    ended: str = ""


Attributes = tuple[tuple[str, str | int], ...]
"""BIOS attributes, sorted by name."""


@dataclass(frozen=True, slots=True)
class View:
    """Equal views give equal trees.

    running          the OS runs (the BMC sees that its NICs have link)
    posting          the machine is in POST
    boot_uri         what a UefiHttp override boots
    boot_authorities what its firmware trusts for a boot over HTTPS
    boot_order       references as `Boot0000`, of `boot.options(machine)`
    bios, pending    BIOS attributes now, and those that wait for a boot
    media            what is inserted, by the device's path
    locked           wrong passwords have locked the account
    """

    machine: Machine
    power: bool
    running: bool
    boot_target: BootTarget
    boot_once: bool
    sel: tuple[LogRecord, ...] = ()
    lifecycle_log: tuple[LogRecord, ...] = ()
    sessions: tuple[SessionView, ...] = ()
    posting: bool = False
    boot_mode: str = "UEFI"
    boot_uri: str = ""
    boot_authorities: tuple[str, ...] = ()
    boot_order: tuple[str, ...] = ()
    bios: Attributes = ()
    pending: Attributes = ()
    media: tuple[tuple[str, Medium], ...] = ()
    tasks: tuple[TaskView, ...] = ()
    locked: bool = False
    must_change_password: bool = False
