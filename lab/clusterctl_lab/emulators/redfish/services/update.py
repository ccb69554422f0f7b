"""UpdateService: multipart push and SimpleUpdate (DMTF UpdateService schema; DSP0266, "Software update"; recorded at
Dell and Supermicro). An image is a `lab.firmware.Firmware`.

The task runs while the image is fetched and staged. Then the BMC's own firmware restarts the BMC; other parts wait for
the machine's next POST, which `@Redfish.OperationApplyTime: Immediate` brings about at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from clusterctl.fleet.errors import ClusterctlError
from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, json_object, only, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.services.tasks import DONE, SCHEDULED, Tasks
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import TaskState
from clusterctl_lab.firmware import Component, Firmware

KIND = "FirmwareUpdate"
PARAMETERS, FILE = "UpdateParameters", "UpdateFile"
APPLY = "@Redfish.OperationApplyTime"
APPLY_TIMES = ("Immediate", "OnReset")
_STEPS = (0, 25, 50, 75)
Fetch = Callable[[str], Awaitable[bytes]]
"""Gets the image at a URL; raises `ClusterctlError`, whose message a task may repeat."""


class Updates:
    def __init__(self, context: BmcContext, tasks: Tasks, fetch: Fetch, restart: Callable[[], Awaitable[None]]) -> None:
        self._context = context
        self._tasks = tasks
        self._fetch = fetch
        self._restart = restart
        paths = context.profile.paths
        self.writes: Writes = {
            ("POST", paths.multipart_push): self._push,
            ("POST", paths.simple_update): self._simple,
        }

    def _push(self, request: Request, _: Traits) -> Answer:
        if PARAMETERS not in request.parts or not request.parts.get(FILE):
            raise RefusedError(Problem.MALFORMED_PART)
        parameters = json_object(request.parts[PARAMETERS])
        image = request.parts[FILE]

        async def at_hand(_: str) -> bytes:
            return image

        return self._begin(parameters, at_hand, "")

    def _simple(self, request: Request, _: Traits) -> Answer:
        body = request.json()
        only(body, ("ImageURI", "TransferProtocol", "Targets", "Username", "Password", APPLY))
        uri = str(required(body, "ImageURI"))
        if urlsplit(uri).scheme not in ("http", "https") or not urlsplit(uri).hostname:
            raise RefusedError(Problem.VALUE_REFUSED, "ImageURI")
        return self._begin(body, self._fetch, uri)

    def _begin(self, parameters: Mapping[str, Any], fetch: Fetch, uri: str) -> Answer:
        apply = parameters.get(APPLY, "OnReset")
        if apply not in APPLY_TIMES:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(apply), APPLY)
        task = self._tasks.begin(KIND, "Firmware Update", TaskState.RUNNING, "The image is being staged.")
        self._context.background.start(self._work(task, fetch, uri, at_once=apply == "Immediate"), "firmware update of")
        return self._tasks.accepted(task)

    async def _work(self, task: str, fetch: Fetch, uri: str, *, at_once: bool) -> None:
        try:
            firmware = Firmware.read(await fetch(uri))
        except ClusterctlError as error:
            self._tasks.report(task, TaskState.FAILED, 0, error.message)
            return
        if not firmware.fits(self._context.machine):
            self._tasks.report(task, TaskState.FAILED, 0, f"The image is for {firmware.model}.")
            return
        for percent in _STEPS:
            self._tasks.report(task, TaskState.RUNNING, percent, "The image is being staged.")
            await asyncio.sleep(self._context.world.delays.flash / len(_STEPS))
        if not self._tasks.listed(task):
            return
        if firmware.component is Component.BMC:
            self._finish(task, firmware)
            await self._restart()
            return
        self._tasks.report(task, TaskState.SCHEDULED, 0, SCHEDULED)
        self._context.state.at_boot[task] = lambda: self._finish(task, firmware)
        if at_once and self._context.state.power:
            await self._context.world.reboot(self._context.name)

    def _finish(self, task: str, firmware: Firmware) -> None:
        self._context.world.rewrite(self._context.name, firmware.flashed)
        self._tasks.report(task, TaskState.COMPLETED, 100, DONE)
