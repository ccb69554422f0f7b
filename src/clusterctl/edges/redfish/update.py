"""Giving a BMC a firmware image: once, on the proven machine, while nothing else runs; then finding its task."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any, BinaryIO

from clusterctl.edges.redfish.connection import BUSY, Reply, body_of, explanation, refusal, retry_after
from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.upload import multipart, plain
from clusterctl.edges.redfish.write import RefusedError
from clusterctl.fleet.baseline import FirmwareWish, Image, Restarts
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.updates import Task, Updates
from clusterctl.formats.redfish.updates import APPLY_TIME, UpdateControl, accepted_task, read_updates, task_of
from clusterctl.ports import Deadline

_STUMBLED = frozenset({401, 406})
"""Nothing was done: the session ended, or our encoding is not liked."""


class Pusher:
    """Firmware of machine `serial` through one session. `steps` records what was asked and seen."""

    def __init__(self, session: Session, timing: Timing, serial: Serial) -> None:
        self._session = session
        self._timing = timing
        self._serial = serial
        self.steps: list[str] = []

    def push(self, wish: FirmwareWish, file: BinaryIO, deadline: Deadline) -> tuple[Task, ...]:
        """The tasks that it became. A lost answer is looked after, and the image never sent again for it."""
        refusals = 0
        while True:
            control = self._look(deadline)
            try:
                reply = self._send(control, wish, file, deadline)
            except OutcomeUnknownError as error:
                self.steps.append(error.message)
                return self._found(control, deadline, error)
            self.steps.append(f"image {wish.wants}: {refusal(reply)}")
            if reply.status in range(200, 300):
                return self._task(control, reply, deadline)
            refusals += 1
            if not self._worth_waiting(reply) or refusals >= self._timing.refusals:
                words = explanation(reply)
                remedy = self._session.quirks.remedy(words) or "see what the BMC says of it, and check the image"
                raise RefusedError(f"the BMC refuses the image: {refusal(reply)}", remedy=remedy)
            deadline.sleep(self._rest(reply, refusals), "waiting until the BMC takes a firmware image")

    def _look(self, deadline: Deadline) -> UpdateControl:
        """The right machine, and nothing runs on its BMC."""
        control = self._session.walk(read_updates, deadline)[0]
        if control.serial != self._serial:
            raise EdgeError(
                f"this BMC belongs to machine {control.serial}, not to {self._serial}: it was not touched",
                remedy="find out which address the machine's BMC has now, and correct the site file",
            )
        if control.updates.running:
            words = ", ".join(map(str, control.updates.running))
            raise EdgeError(f"the BMC is at something else: {words}", remedy="let it end, then try again")
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
            "this BMC takes no file: it fetches images itself",
            where=image.where,
            remedy="put the image where BMCs can fetch it, and name that place as url",
        )

    def _task(self, control: UpdateControl, reply: Reply, deadline: Deadline) -> tuple[Task, ...]:
        """As the answer names it, else those that are new; a BMC that knows no tasks tells what it is at."""
        path = accepted_task(body_of(reply), reply.headers.get("location", ""))
        if path:
            return (task_of(path, self._session.read(path, deadline)),)
        after = self._session.walk(read_updates, deadline)[0].updates
        young = tuple(task for task in after.tasks if task.path not in control.updates.paths)
        return young or after.running or _of_service(after)

    def _found(self, control: UpdateControl, deadline: Deadline, error: OutcomeUnknownError) -> tuple[Task, ...]:
        limit = deadline.within(self._timing.unknown)
        while True:
            after = self._session.walk(read_updates, deadline)[0].updates
            young = tuple(task for task in after.tasks if task.path not in control.updates.paths) or after.running
            if young:
                return young
            if limit.remaining <= self._timing.poll:
                raise OutcomeUnknownError(
                    f"nobody knows whether the BMC took the image: {error.message}",
                    remedy="run the same command again: it looks first, and sends it again only if it never arrived",
                ) from error
            deadline.sleep(self._timing.poll, "looking whether the BMC took the image")

    def _worth_waiting(self, reply: Reply) -> bool:
        later = self._session.quirks.means_later(explanation(reply))
        return reply.status in BUSY or reply.status in _STUMBLED or later

    def _rest(self, reply: Reply, refusals: int) -> float:
        asked = retry_after(reply, self._timing.refused_max)
        return min(self._timing.refused * 2 ** (refusals - 1), self._timing.refused_max) if asked is None else asked


def _of_service(updates: Updates) -> tuple[Task, ...]:
    """What a BMC whose UpdateService tells its own state (iLO) says of it, where it has no task."""
    return tuple(task for task in updates.tasks if task.path.endswith("/UpdateService"))


def _parameters(wish: FirmwareWish, *, on_reset: bool) -> Mapping[str, Any]:
    """Never `Immediate`: some BMCs then reset the machine by themselves."""
    wait = {APPLY_TIME: "OnReset"} if on_reset and wish.restarts is Restarts.HOST else {}
    return {"Targets": list(wish.targets), **wait}


def _simple(wish: FirmwareWish, image: Image, control: UpdateControl) -> Mapping[str, Any]:
    targets = {"Targets": list(wish.targets)} if wish.targets else {}
    wait = {APPLY_TIME: "OnReset"} if control.simple_on_reset and wish.restarts is Restarts.HOST else {}
    return {"ImageURI": image.url, **targets, **wait}
