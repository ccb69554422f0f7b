"""Tasks, and Dell's job queue over them; recorded at TaskService and Managers/iDRAC.Embedded.1/Oem/Dell/Jobs."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head
from clusterctl_lab.emulators.redfish.services.tasks import task_collection, task_resource, task_service
from clusterctl_lab.emulators.redfish.view import TaskState, TaskView, View

_STATES = {
    TaskState.SCHEDULED: "Scheduled",
    TaskState.RUNNING: "Running",
    TaskState.COMPLETED: "Completed",
    TaskState.FAILED: "Failed",
}
_MESSAGES = {
    TaskState.SCHEDULED: "JCP001",
    TaskState.RUNNING: "RED027",
    TaskState.COMPLETED: "PR19",
    TaskState.FAILED: "RED007",
}
"""Recorded: PR19. The others from Dell's Event and Error Message Reference."""


def resources(view: View) -> Iterator[Resource]:
    yield task_service(paths.TASK_SERVICE, paths.TASKS)
    yield task_collection(paths.TASKS, view.tasks)
    members = [f"{paths.JOBS}/{task.id}" for task in view.tasks]
    yield collection(paths.JOBS, "DellJobCollection", "JobQueue", members)
    yield {
        **head(paths.JOB_SERVICE, "DellJobService.v1_2_0.DellJobService", "DellJobService"),
        "Actions": {"#DellJobService.DeleteJobQueue": {"target": paths.DELETE_JOBS}},
        "CurrentNumberOfJobs": len(view.tasks),
        "MaximumNumberOfJobs": 256,
    }
    for task in view.tasks:
        yield task_resource(f"{paths.TASKS}/{task.id}", task)
        yield _job(task)


def _job(task: TaskView) -> Resource:
    return {
        **head(f"{paths.JOBS}/{task.id}", "DellJob.v1_2_0.DellJob", f"{task.kind}: {task.target}"),
        "CompletionTime": task.ended or None,
        "Description": "Job Instance",
        "JobState": _STATES[task.state],
        "JobType": task.kind,
        "Message": task.message,
        **counted("MessageArgs", []),
        "MessageId": _MESSAGES[task.state],
        "PercentComplete": task.percent,
        "StartTime": task.started,
        "TargetSettingsURI": None,
    }
