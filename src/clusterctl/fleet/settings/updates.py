"""Firmware on its way: what runs on a BMC, what waits for a boot, what is over."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from clusterctl.fleet.node import Firmware, Serial


class TaskState(enum.Enum):
    """RUNNING: nothing may be switched off; WAITING: for the machine's next boot; GONE: the BMC no longer knows it."""

    RUNNING = "running"
    WAITING = "waiting"
    DONE = "done"
    FAILED = "failed"
    GONE = "gone"

    @property
    def live(self) -> bool:
        return self in (TaskState.RUNNING, TaskState.WAITING)


@dataclass(frozen=True, slots=True)
class Task:
    """One of a BMC's tasks, by its path; `words` are the BMC's own."""

    path: str
    state: TaskState
    percent: int | None = None
    message: str = ""

    def __str__(self) -> str:
        percent = "" if self.percent is None else f" {self.percent} %"
        message = f": {self.message}" if self.message else ""
        return f"task {self.path.rsplit('/', 1)[-1]} {self.state.value}{percent}{message}"


@dataclass(frozen=True, slots=True)
class Updates:
    """What the BMC of machine `serial` runs and works on. `firmware` None: it could not be read."""

    serial: Serial
    firmware: tuple[Firmware, ...] | None
    tasks: tuple[Task, ...] = ()

    @property
    def running(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.state is TaskState.RUNNING)

    @property
    def waiting(self) -> tuple[Task, ...]:
        return tuple(task for task in self.tasks if task.state is TaskState.WAITING)

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(task.path for task in self.tasks)
