"""One image onto one machine: sent once, its task followed to its end, by this run or by the one after a kill."""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.settings.baseline import Baseline, FirmwareWish, Restarts
from clusterctl.fleet.settings.drift import Stand, firmware_drift
from clusterctl.fleet.settings.history import FIRMWARE, OVER, Flash, FlashState
from clusterctl.fleet.settings.updates import Task, TaskState
from clusterctl.ports import BmcClient, Deadline
from clusterctl.steps.settings.machine_session import MachineSession

_STEADY = 3
"""So often it must show its new version: some show it before they restart."""


@dataclass(frozen=True, slots=True)
class Flasher:
    """Brings one component's image into the BMC. The machine's next boot is somebody else's business."""

    hands: MachineSession
    wish: FirmwareWish

    def flash(self) -> None:
        """The BMC has it: it runs, or waits for the boot. Raises where it does not take it, or nobody knows."""
        known = self.hands.memory().of(self.wish)
        updates = self.hands.idle()
        if known is not None and not known.rebooted and known.step is not FlashState.FAILED:
            young = known.tasks or tuple(sorted(updates.paths - known.before))
            if known.step is FlashState.OVER or young:
                self._finish(known, young)
                return
        self._send()

    def _finish(self, known: Flash, tasks: tuple[str, ...]) -> None:
        """What an earlier run has sent."""
        if known.step is not FlashState.OVER:
            self._follow(known.before, tasks)

    def _send(self) -> None:
        hands, wish = self.hands, self.wish
        if wish.image is None:
            raise EdgeError(f"the baseline names no image for {wish.component}")
        with hands.means.images.opened(wish.image) as file, hands.bmc() as bmc:
            before = bmc.updates(hands.deadline).value.paths
            self._intend(FlashState.SENDING, before)
            try:
                given = bmc.push_firmware(wish, file, hands.serial, hands.deadline)
            except OutcomeUnknownError:
                raise  # the act stays open: whoever comes next looks first
            except EdgeError as error:
                hands.observed(FIRMWARE, f"failed: {error.message}", component=wish.component)
                raise
        if not given.value:
            raise OutcomeUnknownError(
                f"the BMC took {wish.component} and tells no task: nobody can tell when it is done with it",
                remedy="look at the BMC by hand; once it is done, reboot the machine, then run settings check",
            )
        self._follow(before, tuple(task.path for task in given.value), given.evidence)

    def _follow(self, before: frozenset[str], tasks: tuple[str, ...], evidence: tuple[Evidence, ...] = ()) -> None:
        """Until none of its tasks runs, and the BMC is back; one that failed is an error in the BMC's words."""
        self._intend(FlashState.FOLLOWING, before, tasks)

        def look(bmc: BmcClient, limit: Deadline) -> tuple[Task, ...] | None:
            found = tuple(bmc.task(path, limit).value for path in tasks)
            return None if any(task.state is TaskState.RUNNING for task in found) else found

        ended = self.hands.until(f"waiting for the BMC to take {self.wish.component}", self.hands.pace.task, look)
        failed = [task for task in ended if task.state is TaskState.FAILED]
        words = ", ".join(map(str, failed or ended)) or "the BMC tells no task"
        if failed:
            self.hands.observed(FIRMWARE, f"failed: {words}", evidence, component=self.wish.component)
            raise EdgeError(
                f"the BMC could not flash {self.wish.component}: {words}",
                remedy="check that the image is for this machine; see the BMC's log",
            )
        self._back()
        self.hands.observed(FIRMWARE, f"{OVER}: {words}", evidence, component=self.wish.component)

    def _back(self) -> None:
        """A BMC that has flashed itself is away; it is back once it runs the version, and goes on answering."""
        if self.wish.restarts is not Restarts.BMC:
            return
        row: list[bool] = []

        def look(bmc: BmcClient, limit: Deadline) -> bool | None:
            only = Baseline(self.hands.baseline.name, firmware=(self.wish,))
            drifts = firmware_drift(only, bmc.updates(limit).value.firmware)
            if any(one.stand is not Stand.RIGHT for one in drifts):
                row.clear()
                return None
            row.append(True)
            return True if len(row) >= _STEADY else None

        self.hands.until(f"waiting for the BMC to come back with {self.wish.wants}", self.hands.pace.back, look)

    def _intend(self, step: FlashState, before: frozenset[str], tasks: tuple[str, ...] = ()) -> None:
        image = self.wish.image
        self.hands.intend(
            FIRMWARE,
            {
                "component": self.wish.component,
                "version": self.wish.wants,
                "sha256": image.sha256 if image else "",
                "step": step.value,
                "before": sorted(before),
                "tasks": list(tasks),
            },
        )
