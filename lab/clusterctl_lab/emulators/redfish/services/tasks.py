"""TaskService, and Dell's job queue over the same tasks (DMTF Task schema; recorded: Managers/…/Oem/Dell/Jobs)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import TaskState, TaskView

CLEAR_ALL = ("JID_CLEARALL", "JID_CLEARALL_FORCE")
SCHEDULED = "Task successfully scheduled."
DONE = "Job completed successfully."
_CAPACITY = 256


class Tasks:
    """What runs, waits or has run on one BMC. `collection` is the path at which their location is given."""

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        self._tasks: dict[str, TaskView] = {}
        self._last = 0
        self.collection = context.profile.paths.tasks or context.profile.paths.jobs
        self.writes: Writes = {("POST", context.profile.paths.clear_jobs): self._clear}

    @property
    def views(self) -> tuple[TaskView, ...]:
        return tuple(self._tasks.values())

    def listed(self, name: str) -> bool:
        """False for one that was removed from the queue."""
        return name in self._tasks

    def waiting(self, kind: str) -> bool:
        """True where one of that kind is not over."""
        return any(task.kind == kind and not task.state.over for task in self._tasks.values())

    def begin(self, kind: str, target: str, state: TaskState, message: str) -> str:
        """A new task, by its id; the oldest that is over goes when there are too many."""
        self._last += 1
        name = self._context.profile.traits.task_id.format(self._last)
        self._tasks[name] = TaskView(name, kind, target, state, 0, message, _now())
        over = [key for key, task in self._tasks.items() if task.state.over]
        for key in over[: max(0, len(self._tasks) - _CAPACITY)]:
            del self._tasks[key]
        return name

    def report(self, name: str, state: TaskState, percent: int, message: str) -> None:
        """How far it is. One that was removed from the queue stays removed."""
        if name in self._tasks:
            ended = _now() if state.over else ""
            self._tasks[name] = replace(self._tasks[name], state=state, percent=percent, message=message, ended=ended)

    def accepted(self, name: str, status: int = 202) -> Answer:
        """Return the answer that names the path to poll (DSP0266, "Asynchronous operations")."""
        location = f"{self.collection}/{name}"
        return Answer(status, task_resource(location, self._tasks[name]), {"Location": location})

    def _clear(self, request: Request, _: Traits) -> Answer:
        """DellJobService.DeleteJobQueue: one job, or with JID_CLEARALL all; what waits for a boot no longer does."""
        body = request.json()
        only(body, ("JobID",))
        wanted = str(required(body, "JobID"))
        if wanted not in (*CLEAR_ALL, *self._tasks):
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, wanted, "JobID")
        for name in list(self._tasks) if wanted in CLEAR_ALL else [wanted]:
            del self._tasks[name]
            self._context.state.at_boot.pop(name, None)
        return Answer(200, self._context.profile.success())


def task_resource(path: str, task: TaskView) -> Resource:
    """DMTF Task schema."""
    health = "Critical" if task.state is TaskState.FAILED else "OK"
    return {
        **head(path, "Task.v1_5_1.Task", f"{task.kind}: {task.target}"),
        "Messages": [{"Message": task.message, "Severity": health}],
        "PercentComplete": task.percent,
        "StartTime": task.started,
        **({"EndTime": task.ended} if task.ended else {}),
        "TaskState": task.state.value,
        "TaskStatus": health,
    }


def task_collection(path: str, tasks: tuple[TaskView, ...]) -> Resource:
    return collection(path, "TaskCollection", "Task Collection", [f"{path}/{task.id}" for task in tasks])


def task_service(path: str, tasks: str) -> Resource:
    return {
        **head(path, "TaskService.v1_2_0.TaskService", "Task Service"),
        "ServiceEnabled": True,
        "Status": {"Health": "OK", "State": "Enabled"},
        "Tasks": ref(tasks),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
