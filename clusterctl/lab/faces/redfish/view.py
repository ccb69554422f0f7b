"""What a BMC sees of its machine at one moment: all that its answers are made from."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.lab.machine import Machine
from clusterctl.lab.world import BootTarget


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


@dataclass(frozen=True, slots=True)
class View:
    """Equal views give equal trees. `running`: the OS runs (the BMC sees that its NICs have link)."""

    machine: Machine
    power: bool
    running: bool
    boot_target: BootTarget
    boot_once: bool
    sel: tuple[LogRecord, ...] = ()
    lifecycle_log: tuple[LogRecord, ...] = ()
    sessions: tuple[SessionView, ...] = ()
