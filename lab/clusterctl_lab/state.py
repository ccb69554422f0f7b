"""The state of a machine that changes without a change of its parts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from clusterctl_lab.boot import BootTarget, Medium
from clusterctl_lab.machine import Machine

Change = Callable[[Machine], Machine]
"""A permanent change of a machine: firmware, settings, its BMC's password."""


@dataclass(slots=True)
class MachineState:
    """The state of one machine.

    posting      it is in POST, or hangs there
    boot_mode, boot_uri   of the override in force: UEFI or Legacy; what UEFI HTTP boots
    boot_authorities   certificates (PEM) that the firmware trusts for a boot over HTTPS
    boot_order   references of `boot.options`; empty: as delivered
    booted_from  the target of its last boot; NONE before the first one
    media        the images in the BMC's virtual drives, by the device's name
    at_boot      the work of its next POST in order, by the id of the job that waits for it
    sel          (UTC time, severity, message) of each entry
    installs     how often an OS was written to it, complete or not
    restarting   the OS was asked to shut down, and power comes on again after that
    """

    power: bool = False
    posting: bool = False
    boot_target: BootTarget = BootTarget.NONE
    boot_once: bool = False
    boot_mode: str = "UEFI"
    boot_uri: str = ""
    boot_authorities: tuple[str, ...] = ()
    boot_order: tuple[str, ...] = ()
    booted_from: BootTarget = BootTarget.NONE
    media: dict[str, Medium] = field(default_factory=dict)
    at_boot: dict[str, Callable[[], None]] = field(default_factory=dict)
    sel: list[tuple[str, str, str]] = field(default_factory=list)
    boots: int = 0
    installs: int = 0
    running: bool = False
    restarting: bool = False
    boot_task: asyncio.Task[None] | None = None
