"""Flashes one image onto one machine: sent once, its task followed to its end, by this run or the one after a kill."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.acts import Act, ActResult, FlashDetails, FlashState
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.payloads.node import ActObserved
from clusterctl.fleet.settings.baseline import Baseline, FirmwareWish, Restarts
from clusterctl.fleet.settings.drift import Stand, firmware_drift
from clusterctl.fleet.settings.history import Flash
from clusterctl.fleet.settings.updates import Task, TaskState
from clusterctl.ports import BmcClient, Deadline
from clusterctl.steps.settings.machine_session import MachineSession

_STEADY = 3
"""A BMC must report its new version so many times in a row: some report it before they restart."""


@dataclass(frozen=True, slots=True)
class Flasher:
    """Brings one component's image into the BMC. The machine's next boot is not its business."""

    session: MachineSession
    wish: FirmwareWish

    def flash(self) -> None:
        """Flash it until it runs, or waits for the boot. Raise where the BMC does not take it, or that is unknown."""
        known = self.session.memory().of(self.wish)
        updates = self.session.idle()
        if known is not None and not known.rebooted and known.step is not FlashState.FAILED:
            young = known.tasks or tuple(sorted(updates.paths - known.before))
            if known.step is FlashState.OVER or young:
                self._finish(known, young)
                return
        self._send()

    def _finish(self, known: Flash, tasks: tuple[str, ...]) -> None:
        """Follow what an earlier run has sent."""
        if known.step is not FlashState.OVER:
            self._follow(known.before, tasks)

    def _send(self) -> None:
        session, wish = self.session, self.wish
        if wish.image is None:
            raise EdgeError(f"the baseline names no image for {wish.component}")
        with session.services.images.opened(wish.image) as file, session.bmc() as bmc:
            before = bmc.updates(session.deadline).value.paths
            self._intend(FlashState.SENDING, before)
            try:
                given = bmc.push_firmware(wish, file, session.serial, session.deadline)
            except OutcomeUnknownError:
                raise  # the intent stays open: the next run looks first
            except EdgeError as error:
                session.observed(self._observed(error.message, ActResult.FAILED))
                raise
        if not given.value:
            raise OutcomeUnknownError(
                f"the BMC took {wish.component} and reports no task: it is unknown when it is done",
                remedy="look at the BMC by hand; once it is done, reboot the machine, then run settings check",
            )
        self._follow(before, tuple(task.path for task in given.value), given.evidence)

    def _follow(self, before: frozenset[str], tasks: tuple[str, ...], evidence: tuple[Evidence, ...] = ()) -> None:
        """Wait until none of its tasks runs, and the BMC is back. Raise what the BMC reports of a task that failed."""
        self._intend(FlashState.FOLLOWING, before, tasks)

        def look(bmc: BmcClient, limit: Deadline) -> tuple[Task, ...] | None:
            found = tuple(bmc.task(path, limit).value for path in tasks)
            return None if any(task.state is TaskState.RUNNING for task in found) else found

        ended = self.session.until(f"waiting for the BMC to take {self.wish.component}", self.session.pace.task, look)
        failed = [task for task in ended if task.state is TaskState.FAILED]
        words = ", ".join(map(str, failed or ended)) or "the BMC reports no task"
        if failed:
            self.session.observed(self._observed(words, ActResult.FAILED), evidence)
            raise EdgeError(
                f"the BMC could not flash {self.wish.component}: {words}",
                remedy="check that the image is for this machine; see the BMC's log",
            )
        self._back()
        self.session.observed(self._observed(words, ActResult.DONE), evidence)

    def _back(self) -> None:
        """Wait for a BMC that has flashed itself: it is back once it reports the version, several times in a row."""
        if self.wish.restarts is not Restarts.BMC:
            return
        row: list[bool] = []

        def look(bmc: BmcClient, limit: Deadline) -> bool | None:
            only = Baseline(self.session.baseline.name, firmware=(self.wish,))
            drifts = firmware_drift(only, bmc.updates(limit).value.firmware)
            if any(one.stand is not Stand.RIGHT for one in drifts):
                row.clear()
                return None
            row.append(True)
            return True if len(row) >= _STEADY else None

        self.session.until(f"waiting for the BMC to come back with {self.wish.wants}", self.session.pace.back, look)

    def _intend(self, state: FlashState, before: frozenset[str], tasks: tuple[str, ...] = ()) -> None:
        image = self.wish.image
        details = FlashDetails(
            component=self.wish.component,
            version=self.wish.wants,
            sha256=image.sha256 if image else "",
            state=state,
            before=tuple(sorted(before)),
            tasks=tasks,
        )
        self.session.intend(Act.SETTINGS_FIRMWARE, details)

    def _observed(self, message: str, result: ActResult) -> ActObserved:
        return ActObserved(act=Act.SETTINGS_FIRMWARE, result=result, message=message, component=self.wish.component)
