"""Sends a firmware image to a BMC: once, to the proven machine, while nothing else runs. Then finds its task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, BinaryIO

from clusterctl.edges.redfish.connection import BUSY, Reply
from clusterctl.edges.redfish.session import RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.upload import multipart, plain
from clusterctl.edges.redfish.write import RefusedError, require_machine
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import FirmwareWish, Image, Restarts
from clusterctl.fleet.settings.updates import Task, Updates
from clusterctl.formats.redfish.updates import APPLY_TIME, UpdateControl, accepted_task, read_updates, task_of
from clusterctl.ports import Deadline

_NOTHING_DONE = frozenset({401, 406})
"""The session ended, or our encoding is refused."""


class FirmwareUpdate:
    """Firmware of machine `serial` through one session. `steps` records requests and readings."""

    def __init__(self, session: RedfishSession, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._serial = serial
        self.steps: list[str] = []

    def push(self, wish: FirmwareWish, file: BinaryIO, deadline: Deadline) -> tuple[Task, ...]:
        """Send the image and return its tasks. After a lost answer its task is looked for; it is not sent again."""
        refusals = 0
        while True:
            control = self._read(deadline)
            try:
                reply = self._send(control, wish, file, deadline)
            except OutcomeUnknownError as error:
                self.steps.append(error.message)
                return self._tasks_after_loss(control, deadline, error)
            self.steps.append(f"image {wish.wants}: {reply.summary}")
            if reply.ok:
                return self._tasks(control, reply, deadline)
            refusals += 1
            if not self._is_temporary(reply) or refusals >= self._timing.refusals:
                remedy = self._session.quirks.remedy(reply.messages) or "read the BMC's message, and check the image"
                raise RefusedError(f"the BMC refuses the image: {reply.summary}", remedy=remedy)
            pause = self._timing.refusal_pause(refusals, reply.retry_after)
            deadline.sleep(pause, "waiting until the BMC accepts a firmware image")

    def _read(self, deadline: Deadline) -> UpdateControl:
        """Prove that it is the right machine, and that no task runs on its BMC."""
        control = self._session.walk(read_updates, deadline)[0]
        require_machine(control.serial, self._serial)
        if control.updates.running:
            running = ", ".join(map(str, control.updates.running))
            raise EdgeError(f"the BMC runs another task: {running}", remedy="wait until it ends, then try again")
        return control

    def _send(self, control: UpdateControl, wish: FirmwareWish, file: BinaryIO, deadline: Deadline) -> Reply:
        image = wish.image
        if image is None:
            raise EdgeError(f"the baseline names no image for {wish.component}")

        def check() -> None:
            deadline.check("sending a firmware image")

        if control.multipart:
            parameters = _parameters(wish, on_reset=control.multipart_on_reset)
            upload = multipart(parameters, PurePath(image.file).name, file, check)
            return self._session.upload(control.multipart, upload, deadline)
        if control.push and not image.url:
            return self._session.upload(control.push, plain(file, check), deadline)
        if control.simple and image.url:
            return self._session.write(control.simple, _simple(wish, image, control), deadline)
        raise EdgeError(
            "this BMC accepts no file: it fetches images itself",
            where=image.where,
            remedy="put the image where BMCs can fetch it, and name that place as url",
        )

    def _tasks(self, control: UpdateControl, reply: Reply, deadline: Deadline) -> tuple[Task, ...]:
        """Return the task that the answer names, else new tasks, else the state of a BMC without tasks."""
        path = accepted_task(reply.body, reply.headers.get("location", ""))
        if path:
            return (task_of(path, self._session.read(path, deadline)),)
        after = self._session.walk(read_updates, deadline)[0].updates
        new = tuple(task for task in after.tasks if task.path not in control.updates.paths)
        return new or after.running or _of_service(after)

    def _tasks_after_loss(
        self, control: UpdateControl, deadline: Deadline, error: OutcomeUnknownError
    ) -> tuple[Task, ...]:
        limit = deadline.within(self._timing.unknown)
        while True:
            after = self._session.walk(read_updates, deadline)[0].updates
            new = tuple(task for task in after.tasks if task.path not in control.updates.paths) or after.running
            if new:
                return new
            if limit.remaining <= self._timing.poll:
                raise OutcomeUnknownError(
                    f"it is unknown whether the BMC took the image: {error.message}",
                    remedy="run the same command again: it sends the image again only if it never arrived",
                ) from error
            deadline.sleep(self._timing.poll, "checking whether the BMC took the image")

    def _is_temporary(self, reply: Reply) -> bool:
        return reply.status in BUSY | _NOTHING_DONE or self._session.quirks.means_later(reply.messages)


def _of_service(updates: Updates) -> tuple[Task, ...]:
    """Return what a BMC without a task reports in its UpdateService (iLO)."""
    return tuple(task for task in updates.tasks if task.path.endswith("/UpdateService"))


def _parameters(wish: FirmwareWish, *, on_reset: bool) -> Mapping[str, Any]:
    """Return the update parameters; never `Immediate`, with which some BMCs reset the machine by themselves."""
    wait = {APPLY_TIME: "OnReset"} if on_reset and wish.restarts is Restarts.HOST else {}
    return {"Targets": list(wish.targets), **wait}


def _simple(wish: FirmwareWish, image: Image, control: UpdateControl) -> Mapping[str, Any]:
    targets = {"Targets": list(wish.targets)} if wish.targets else {}
    wait = {APPLY_TIME: "OnReset"} if control.simple_on_reset and wish.restarts is Restarts.HOST else {}
    return {"ImageURI": image.url, **targets, **wait}
