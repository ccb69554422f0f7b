"""Firmware updates: what runs, which tasks there are, and where an image is taken (DMTF UpdateService and Task schemas;
DSP0266, "Asynchronous operations"; recorded UpdateService of Dell, HPE and Supermicro).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.fleet.node import Firmware, Serial
from clusterctl.fleet.settings.updates import Task, TaskState, Updates
from clusterctl.formats.redfish import system
from clusterctl.formats.redfish.machine import serial_of
from clusterctl.formats.redfish.tree import (
    Answer,
    Answers,
    NotYetReadError,
    ReadRequest,
    RedfishTree,
    Resource,
    Unreadable,
    normal,
)

_NOT_RUNNING = re.compile(
    r"(previous|available|staged|staging|backup|golden|capsule|redundant)\b|.*\bredundant\b", re.IGNORECASE
)
_DELL_PLACE = re.compile(r"(?:installed|current)-.*?__(.+)", re.IGNORECASE)
_NAMELESS = frozenset({"software inventory", "firmware inventory", ""})


def running_firmware(tree: RedfishTree) -> tuple[Firmware, ...]:
    """Return component and version of all that runs, sorted, each once."""
    service = tree.follow(tree.root, "UpdateService")
    running = [item for item in tree.members(service, "FirmwareInventory", whole=False) if _runs(item)]
    found = {Firmware(_component(item), item.text("Version")) for item in running}
    return tuple(sorted(found, key=lambda one: (one.component, one.version)))


def _runs(item: Resource) -> bool:
    waiting = any(_NOT_RUNNING.match(text.replace("_", " ")) for text in (item.id, item.text("Name")))
    return bool(item.text("Version")) and not item.absent and not waiting


def _component(item: Resource) -> str:
    """Name and place: eight GPUs have one name. Dell's ids hold the place, HPE's are mere numbers."""
    place = _DELL_PLACE.fullmatch(item.id)
    where = place[1] if place else item.text("Oem", "Hpe", "DeviceContext") or item.id
    name = item.text("Name")
    if name.lower() in _NAMELESS or name == where:
        return where
    return f"{name} ({where})"


APPLY_TIME = "@Redfish.OperationApplyTime"
_SUPPORT = f"{APPLY_TIME}Support"
_ON_RESET = "OnReset"
_SIMPLE = "#UpdateService.SimpleUpdate"
_OVER: Mapping[str, TaskState] = {
    "Completed": TaskState.DONE,
    "Killed": TaskState.FAILED,
    "Exception": TaskState.FAILED,
    "Cancelled": TaskState.FAILED,
}
_SCHEDULED = ("task successfully scheduled", "JCP001")
"""Dell's words for a job that waits for the next boot, whatever its TaskState (Event and Error Message Reference)."""
_ILO: Mapping[str, TaskState] = {"Idle": TaskState.DONE, "Complete": TaskState.DONE, "Error": TaskState.FAILED}
"""`Oem.Hpe.State` of an iLO's UpdateService, which has no task for an update."""


@dataclass(frozen=True, slots=True)
class UpdateControl:
    """Where an image can be given; empty: this BMC has no such way. `*_on_reset`: it can wait for a boot."""

    serial: Serial
    updates: Updates
    multipart: str = ""
    push: str = ""
    simple: str = ""
    multipart_on_reset: bool = False
    simple_on_reset: bool = False


def read_updates(answers: Answers) -> UpdateControl | ReadRequest:
    """Return the ways to update. Raises without machine or UpdateService; an unreadable firmware inventory is None."""
    tree = RedfishTree(answers)
    try:
        host = system.host_system(tree)
        serial = serial_of(tree, host)
        service = tree.follow(tree.root, "UpdateService")
        firmware = _optional(tree)
        tasks = (*_tasks(tree), *_service_task(service))
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    return UpdateControl(
        serial,
        Updates(serial, firmware, tasks),
        multipart=_inside(service.text("MultipartHttpPushUri")),
        push=_inside(service.text("HttpPushUri")),
        simple=_inside(service.text("Actions", _SIMPLE, "target")),
        multipart_on_reset=_ON_RESET in service.texts(f"MultipartHttpPushUri{_SUPPORT}", "SupportedValues")
        or _ON_RESET in service.texts("Actions", _SIMPLE, _SUPPORT, "SupportedValues"),
        simple_on_reset=_ON_RESET in service.texts("Actions", _SIMPLE, _SUPPORT, "SupportedValues"),
    )


def task_of(path: str, answer: Answer) -> Task:
    """Return one task by the answer of its path; `EdgeError` where that is no task."""
    if isinstance(answer, Unreadable):
        if answer.reason.startswith(("HTTP 404", "HTTP 410")):
            return Task(path, TaskState.GONE)
        raise EdgeError(f"could not be read: {answer.reason}", where=path)
    resource = Resource(path, answer)
    return next(iter(_service_task(resource)), None) or _task(resource)


def accepted_task(body: Mapping[str, Any], location: str) -> str:
    """Return the path of the task of an accepted request; empty where the answer has none.

    The body is the task; `Location` may be a task monitor, with shorter answers (DSP0266, "Task monitors").
    """
    own = body.get("@odata.id")
    if isinstance(own, str) and str(body.get("@odata.type", "")).startswith("#Task."):
        return normal(own, "the task's @odata.id")
    path = _path(location).replace("/TaskMonitors/", "/Tasks/")
    return normal(path, "Location") if "/Tasks/" in path or "/Jobs/" in path else ""


def _optional(tree: RedfishTree) -> Any:
    try:
        return running_firmware(tree)
    except (ParseError, EdgeError) as error:
        tree.notes.append(f"{error.where}: {error.message}")
        return None


def _tasks(tree: RedfishTree) -> tuple[Task, ...]:
    """Return all tasks of its TaskService; a BMC without one has none. What cannot be read is no empty list."""
    path = tree.root.link("Tasks")
    if path is None:
        return ()
    service = tree.get(path)
    if not service.has("Tasks"):
        return ()
    return tuple(_task(item) for item in tree.members(service, "Tasks"))


def _task(task: Resource) -> Task:
    state, words = task.text("TaskState"), _words(task)
    if not state:
        raise ParseError("the task has no state", where=task.where("TaskState"))
    return Task(task.path, _state(state, words), task.whole("PercentComplete"), words)


def _state(state: str, words: str) -> TaskState:
    if state in _OVER:
        return _OVER[state]
    scheduled = any(sign.lower() in words.lower() for sign in _SCHEDULED)
    return TaskState.WAITING if state == "Pending" or scheduled else TaskState.RUNNING


def _words(task: Resource) -> str:
    messages = [f"{one.text('MessageId')} {one.text('Message')}".strip() for one in task.each("Messages")]
    return "; ".join(word for word in messages if word)[:300]


def _service_task(service: Resource) -> tuple[Task, ...]:
    """Return the state of the update that an iLO runs."""
    state = service.text("Oem", "Hpe", "State")
    if not state:
        return ()
    return (Task(service.path, _ILO.get(state, TaskState.RUNNING), None, f"iLO: {state}"),)


def _inside(uri: str) -> str:
    """Return the path, where it can be reached as the rest is; HPE's `/cgi-bin/uploadFile` wants another protocol."""
    path = _path(uri)
    return path if path.startswith("/redfish/") else ""


def _path(uri: str) -> str:
    """Return the path without a host before it, and without a query."""
    return re.sub(r"^https?://[^/]*", "", uri.strip()).split("?", 1)[0]
