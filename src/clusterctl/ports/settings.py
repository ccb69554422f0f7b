"""BIOS settings and firmware of a machine, through its BMC."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import BinaryIO, Protocol

from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Bios, FirmwareWish, Image, Value
from clusterctl.fleet.settings.updates import Task, Updates
from clusterctl.ports.deadline import Deadline


class BmcSettings(Protocol):
    """The part of a BMC that settings and firmware go through."""

    def bios(self, deadline: Deadline, *, thorough: bool = False) -> Observed[Bios]:
        """Return the current and the pending attributes; `thorough`: with the registry's mark of writable ones."""
        ...

    def set_bios(self, wanted: Mapping[str, Value], serial: Serial, deadline: Deadline) -> Observed[Bios]:
        """Have the next boot bring these, and read them back; refuses unless the machine's serial is `serial`."""
        ...

    def updates(self, deadline: Deadline) -> Observed[Updates]:
        """Return the versions of the firmware, and the BMC's tasks."""
        ...

    def push_firmware(
        self, wish: FirmwareWish, image: BinaryIO, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[Task, ...]]:
        """Upload the image once. Return the update tasks, or none where this BMC reports none.

        Refuse unless the machine's serial is `serial`, and while any task runs. Raise `OutcomeUnknownError` where it is
        unknown whether the BMC accepted the image.
        """
        ...

    def task(self, path: str, deadline: Deadline) -> Observed[Task]:
        """Return the task's progress."""
        ...


class Images(Protocol):
    """Firmware images on the controller's disk."""

    def opened(self, image: Image) -> AbstractContextManager[BinaryIO]:
        """Return the file, at its start, proven to have this digest; raise `UsageError` where it has not."""
        ...
