"""One machine to its SKU's baseline: the BMC's firmware, the machine's, its BIOS attributes, one reboot, and a look.

Whoever comes back after an interruption looks first: at what runs, what waits, and what the journal remembers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import Baseline
from clusterctl.fleet.settings.drift import Drift, in_words, not_right
from clusterctl.fleet.settings.history import BIOS, FIRMWARE, OVER, REBOOT, FlashState
from clusterctl.fleet.settings.plan import Todo, todo
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcClient, Deadline, Post, Power
from clusterctl.steps.executor.step import IntentLog
from clusterctl.steps.settings.flash import Flasher
from clusterctl.steps.settings.machine_session import MachineSession, SettingsServices


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """What became of one node: what is still not as wanted, and the error that ended it, if one did."""

    name: str
    left: tuple[Drift, ...] = ()
    error: ClusterctlError | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class BaselineApplier:
    """Brings one machine at a time; many threads may share it."""

    means: SettingsServices

    def settle(
        self, node: NodeState, serial: Serial, baseline: Baseline, acts: IntentLog, deadline: Deadline
    ) -> BaselineResult:
        """Its outcome, whatever happens; a run that was stopped, or lost the node, leaves its acts open."""
        hands = MachineSession(self.means, node, serial, baseline, acts, acts.fenced([node.id], deadline))
        try:
            return _Machine(hands).run()
        except ClusterctlError as error:
            return BaselineResult(node.name, error=error, changed=True)


@dataclass(frozen=True, slots=True)
class _Machine:
    hands: MachineSession

    def run(self) -> BaselineResult:
        before = self._first()
        wanted, was = todo(before), self.hands.memory().was
        self._close(wanted)
        if wanted.nothing and not was:
            return BaselineResult(self.hands.node.name, left=not_right(before))
        for wish in (*wanted.bmc, *wanted.host):
            Flasher(self.hands, wish).flash()
        trouble = self._attributes(wanted)
        if wanted.host or wanted.waiting or was or (wanted.attributes and trouble is None):
            self._reboot(was)
        if trouble is not None:
            raise trouble
        return BaselineResult(self.hands.node.name, left=self._left(), changed=True)

    def _first(self) -> tuple[Drift, ...]:
        """How it stands. Where an earlier run was at it, its BMC may be on its way back."""
        hands = self.hands
        if not hands.node.open_acts:
            return hands.drift()
        return hands.until("waiting for the BMC, at which an earlier run was", hands.pace.back, hands.drift_by)

    def _close(self, wanted: Todo) -> None:
        """What a killed run had begun, and came to its end without it."""
        due = {wish.component for wish in (*wanted.bmc, *wanted.host)}
        for component, flash in self.hands.memory().flashes.items():
            if flash.step in (FlashState.SENDING, FlashState.FOLLOWING) and component not in due:
                self.hands.idle()
                self.hands.observed(FIRMWARE, f"{OVER}: {flash.version} runs", component=component)
        if any(act.act == BIOS for act in self.hands.node.open_acts) and not wanted.attributes:
            self.hands.observed(BIOS, f"{OVER}: they are there, or wait for the boot")

    def _attributes(self, wanted: Todo) -> EdgeError | None:
        """A BIOS that takes none of them does not keep firmware that waits from its boot: said once that is over."""
        if not wanted.attributes:
            return None
        values = {name: str(value) for name, value in wanted.attributes.items()}
        self.hands.intend(BIOS, {"attributes": values})
        try:
            with self.hands.bmc() as bmc:
                seen = bmc.set_bios(wanted.attributes, self.hands.serial, self.hands.deadline)
        except EdgeError as error:
            self.hands.observed(BIOS, f"failed: {error.message}")
            return error
        self.hands.observed(BIOS, f"{OVER}: the next boot brings them", seen.evidence)
        return None

    def _reboot(self, was: str) -> None:
        """Through off and on, each seen; never while anything runs, nor amid a self-test. What was off is off again."""
        hands = self.hands
        hands.idle()
        self._tested()
        if was and todo(hands.drift()).nothing:
            self._rebooted(was)
            return
        with hands.bmc() as bmc:
            power = bmc.power(hands.deadline).value
            before = was or ("off" if power is Power.OFF else "on")
            hands.intend(REBOOT, {"was": before})
            if power is Power.OFF:
                seen = bmc.set_power(Power.ON, hands.serial, hands.deadline)
            else:
                seen = bmc.cycle_power(hands.serial, hands.deadline)
        self._rebooted(before, seen.evidence)

    def _rebooted(self, was: str, evidence: tuple[Evidence, ...] = ()) -> None:
        """Once the boot has brought what it was meant to, or nothing is on its way any more."""
        hands = self.hands
        left = self._shown()
        if was == "off":
            hands.idle()
            with hands.bmc() as bmc:
                bmc.set_power(Power.OFF, hands.serial, hands.deadline)
        words = "; ".join(map(in_words, left))
        hands.observed(REBOOT, f"{OVER}, but {words}" if left else OVER, evidence)

    def _tested(self) -> None:
        """Whoever is in its self-test may be flashing itself."""

        def look(bmc: BmcClient, limit: Deadline) -> bool | None:
            off = bmc.power(limit).value is Power.OFF
            return True if off or bmc.post(limit).value is not Post.RUNNING else None

        self.hands.until("waiting until the machine's self-test is over", self.hands.pace.boot, look)

    def _shown(self) -> Sequence[Drift]:
        """What is not as wanted, once nothing runs or waits and the BMC had its time to show it."""
        pace = self.hands.pace
        quiet: list[Deadline] = []

        def look(bmc: BmcClient, limit: Deadline) -> tuple[Drift, ...] | None:
            tasks = bmc.updates(limit).value
            left = _mendable(self.hands.drift_by(bmc, limit))
            if not left and not tasks.running:
                return left
            if tasks.running or tasks.waiting or bmc.post(limit).value is Post.RUNNING:
                quiet.clear()
                return None
            if not quiet:
                quiet.append(limit.within(pace.show))
            return left if quiet[0].remaining <= 0 else None

        return self.hands.until("waiting for the boot to bring firmware and settings", pace.boot, look)

    def _left(self) -> tuple[Drift, ...]:
        """What is by hand; raises where something else is not as it was asked for."""
        drifts = self.hands.drift()
        if left := _mendable(drifts):
            raise EdgeError(
                f"done, and still not as the baseline has it: {'; '.join(map(in_words, left))}",
                remedy="compare the baseline with what this machine's BIOS and images are; run settings check again",
            )
        return not_right(drifts)


def _mendable(drifts: Sequence[Drift]) -> tuple[Drift, ...]:
    return tuple(one for one in not_right(drifts) if not one.by_hand)
