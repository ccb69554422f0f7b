"""Brings one machine to its SKU's baseline: firmware of the BMC, of the machine, BIOS attributes, one reboot.

A run that follows an interrupted one looks first: at what runs, what waits, and what the journal has.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from clusterctl.fleet.acts import SETTINGS_ACTS, Act, BiosDetails, FlashState, PowerDetails
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.finding import Evidence
from clusterctl.fleet.node import Serial
from clusterctl.fleet.payloads.node import ActObserved
from clusterctl.fleet.settings.baseline import Baseline
from clusterctl.fleet.settings.drift import Drift, in_words, not_right
from clusterctl.fleet.settings.plan import Todo, todo
from clusterctl.fleet.state import NodeState
from clusterctl.ports import BmcClient, Deadline, Post, Power
from clusterctl.ports.isolation import as_error
from clusterctl.steps.executor.intent_log import IntentLog, failure
from clusterctl.steps.executor.parallel import each
from clusterctl.steps.settings.flash import Flasher
from clusterctl.steps.settings.machine_session import MachineSession, SettingsServices


@dataclass(frozen=True, slots=True)
class BaselineResult:
    """The result of one node: what still differs from the baseline, and the error that ended it, if one did."""

    name: str
    left: tuple[Drift, ...] = ()
    error: ClusterctlError | None = None
    changed: bool = False


@dataclass(frozen=True, slots=True)
class BaselineApplier:
    """Brings one machine at a time to its baseline; many threads may share it."""

    services: SettingsServices

    def apply(
        self, node: NodeState, serial: Serial, baseline: Baseline, intents: IntentLog, deadline: Deadline
    ) -> BaselineResult:
        """Return its result, whatever happens; a run that was cancelled, or lost the node, leaves its intents open."""
        fenced = intents.fenced([node.id], deadline)
        session = MachineSession(self.services, node, serial, baseline, intents, fenced)
        try:
            return _Machine(session).run()
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return BaselineResult(node.name, error=as_error(error, node.name), changed=True)


@dataclass(frozen=True, slots=True)
class BaselineWork:
    """The machines of one wave, each in a thread of its own. `baselines` by name of node; `seconds` for one wave."""

    applier: BaselineApplier
    baselines: Mapping[str, Baseline]
    seconds: float
    acts: frozenset[Act] = SETTINGS_ACTS

    def run(
        self, wave: Sequence[tuple[NodeState, Serial]], intents: IntentLog, deadline: Deadline
    ) -> Iterator[BaselineResult]:
        """Yield each machine's result as soon as it is known."""
        calls = [
            partial(self.applier.apply, node, serial, self.baselines[node.name], intents, deadline)
            for node, serial in wave
        ]
        return each(calls, len(calls), intents.lease)


@dataclass(frozen=True, slots=True)
class _Machine:
    session: MachineSession

    def run(self) -> BaselineResult:
        before = self._first()
        wanted, was = todo(before), self.session.memory().was
        self._close(wanted)
        if wanted.nothing and not was:
            return BaselineResult(self.session.node.name, left=not_right(before))
        for wish in (*wanted.bmc, *wanted.host):
            Flasher(self.session, wish).flash()
        trouble = self._attributes(wanted)
        if wanted.host or wanted.waiting or was or (wanted.attributes and trouble is None):
            self._reboot(was)
        if trouble is not None:
            raise trouble
        return BaselineResult(self.session.node.name, left=self._left(), changed=True)

    def _first(self) -> tuple[Drift, ...]:
        """Return its drift. Where an earlier run was interrupted, its BMC may be restarting: wait for it."""
        session = self.session
        if not session.node.open_acts:
            return session.drift()
        return session.until("waiting for the BMC after an interrupted run", session.pace.back, session.drift_by)

    def _close(self, wanted: Todo) -> None:
        """Record the result of what a killed run had begun, and what has ended without it."""
        due = {wish.component for wish in (*wanted.bmc, *wanted.host)}
        for component, flash in self.session.memory().flashes.items():
            if flash.step in (FlashState.SENDING, FlashState.FOLLOWING) and component not in due:
                self.session.idle()
                self.session.observed(
                    ActObserved(act=Act.SETTINGS_FIRMWARE, message=f"{flash.version} runs", component=component)
                )
        if any(act.act is Act.SETTINGS_BIOS for act in self.session.node.open_acts) and not wanted.attributes:
            self.session.observed(ActObserved(act=Act.SETTINGS_BIOS, message="they are set, or wait for the boot"))

    def _attributes(self, wanted: Todo) -> EdgeError | None:
        """Set the BIOS attributes. Return an error instead of raising it: firmware that waits still gets its boot."""
        if not wanted.attributes:
            return None
        values = {name: str(value) for name, value in wanted.attributes.items()}
        self.session.intend(Act.SETTINGS_BIOS, BiosDetails(attributes=values))
        try:
            with self.session.bmc() as bmc:
                seen = bmc.set_bios(wanted.attributes, self.session.serial, self.session.deadline)
        except EdgeError as error:
            failed = ActObserved(act=Act.SETTINGS_BIOS, result=failure(error), message=error.message)
            self.session.observed(failed)
            return error
        done = ActObserved(act=Act.SETTINGS_BIOS, message="the next boot applies them")
        self.session.observed(done, seen.evidence)
        return None

    def _reboot(self, was: str) -> None:
        """Switch it off and on, each read back; never during an update or a self-test. One that was off ends off."""
        session = self.session
        session.idle()
        self._tested()
        if was and todo(session.drift()).nothing:
            self._rebooted(was)
            return
        with session.services.permits(1, session.deadline):
            self._power_cycle(was)

    def _power_cycle(self, was: str) -> None:
        """Switch it off and on, and wait until the boot has applied what waits."""
        session = self.session
        with session.bmc() as bmc:
            power = bmc.power(session.deadline).value
            before = was or ("off" if power is Power.OFF else "on")
            session.intend(Act.SETTINGS_REBOOT, PowerDetails(was_on=before == "on"))
            if power is Power.OFF:
                seen = bmc.set_power(Power.ON, session.serial, session.deadline)
            else:
                seen = bmc.cycle_power(session.serial, session.deadline)
        self._rebooted(before, seen.evidence)

    def _rebooted(self, was: str, evidence: tuple[Evidence, ...] = ()) -> None:
        """Record the reboot once it has applied what it was meant to, or nothing is pending any more."""
        session = self.session
        left = self._shown()
        if was == "off":
            session.idle()
            with session.bmc() as bmc:
                bmc.set_power(Power.OFF, session.serial, session.deadline)
        words = "; ".join(map(in_words, left))
        session.observed(ActObserved(act=Act.SETTINGS_REBOOT, message=words), evidence)

    def _tested(self) -> None:
        """Wait until no self-test runs: a machine may flash itself during one."""

        def look(bmc: BmcClient, limit: Deadline) -> bool | None:
            off = bmc.power(limit).value is Power.OFF
            return True if off or bmc.post(limit).value is not Post.RUNNING else None

        self.session.until("waiting until the machine's self-test is over", self.session.pace.boot, look)

    def _shown(self) -> Sequence[Drift]:
        """Return what differs, once nothing runs or waits and the BMC had its time to report it."""
        pace = self.session.pace
        quiet: list[Deadline] = []

        def look(bmc: BmcClient, limit: Deadline) -> tuple[Drift, ...] | None:
            tasks = bmc.updates(limit).value
            left = _repairable(self.session.drift_by(bmc, limit))
            if not left and not tasks.running:
                return left
            if tasks.running or tasks.waiting or bmc.post(limit).value is Post.RUNNING:
                quiet.clear()
                return None
            if not quiet:
                quiet.append(limit.within(pace.show))
            return left if quiet[0].remaining <= 0 else None

        return self.session.until("waiting for the boot to apply firmware and settings", pace.boot, look)

    def _left(self) -> tuple[Drift, ...]:
        """Return what is to be done by hand. Raise where something else is not as the baseline has it."""
        drifts = self.session.drift()
        if left := _repairable(drifts):
            raise EdgeError(
                f"done, and still different from the baseline: {'; '.join(map(in_words, left))}",
                remedy="compare the baseline with this machine's BIOS and images; run settings check again",
            )
        return not_right(drifts)


def _repairable(drifts: Sequence[Drift]) -> tuple[Drift, ...]:
    return tuple(one for one in not_right(drifts) if not one.by_hand)
