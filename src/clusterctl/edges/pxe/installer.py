"""Installs machines through our own PXE. Each call looks at the desk first, acts where it must, and returns at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Protocol

from clusterctl.edges.pxe.arming import Armoury
from clusterctl.edges.pxe.attempt import Attempt, AttemptState, ended, told
from clusterctl.edges.pxe.desk import Desk
from clusterctl.edges.pxe.settings import Dhcp
from clusterctl.edges.pxe.telling import ABSENT, log_evidence, record_evidence, status_of
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.finding import Evidence, Observed
from clusterctl.fleet.hardware.disk_contract import same_identity
from clusterctl.ports import Bmcs, Deadline, InstallStatus, InstallTarget, Power


class Service(Protocol):
    """DHCP, TFTP and HTTP, while machines may ask."""

    def ensure(self) -> None:
        """Have it served, by us or by another process; raises `EnvironmentBrokenError` where it cannot be."""
        ...

    def answer(self, target: InstallTarget) -> None:
        """Have DHCP know the machine."""
        ...


class PxeInstaller:
    """Meets `Installer`. Safe to use from many threads, for different machines."""

    def __init__(self, armoury: Armoury, desk: Desk, service: Service, bmcs: Bmcs) -> None:
        self._settings = armoury.settings
        self._desk = desk
        self._service = service
        self._bmcs = bmcs
        self._armoury = armoury
        self._clock = armoury.clock

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Nothing has to be inventoried: READY, once all is there that the install will need."""
        self._check(target)
        self._service.ensure()
        found = self._find(target)
        if found is None:
            deadline.check(f"putting {target.name} on the desk")
            found = self._desk.put(_ready(target), {})
        self._service.answer(target)
        return self._told(found, target)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Arm the machine, and have its BMC start it from the network; one on its way, or done, is left alone."""
        found = self._find(target)
        if found is None:
            raise EdgeError("the machine is not on the desk", where=target.name, remedy="prepare it first")
        if found.state is AttemptState.DONE or (found.running and found.started):
            return self._told(found, target)
        if found.state in (AttemptState.FAILED, AttemptState.REFUSED):
            raise EdgeError(
                f"its last attempt ended: {found.reason}", where=target.name, remedy="release it, then try again"
            )
        self._check(target)
        self._service.ensure()
        if not found.running:
            deadline.check(f"arming {target.name}")
            found = self._desk.put(*self._armoury.arm(target))
        self._service.answer(target)
        evidence = self._boot(target, deadline)
        started = self._desk.change(target.name, self._started, of=found.id)
        seen = self._told(started or found, target)
        return Observed(seen.value, (*evidence, *seen.evidence))

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """From the desk alone. Whoever is silent for too long has failed."""
        deadline.check("looking at the desk")
        found = {target.name: self._find(target) for target in targets}
        if any(attempt is not None and attempt.running for attempt in found.values()):
            self._service.ensure()
        return {target.name: self._told(self._heard(found[target.name]), target) for target in targets}

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Disarm: the token is dead, and the machine may be armed anew."""
        deadline.check(f"disarming {target.name}")
        return self._told(self._desk.put(_ready(target), {}), target)

    # --- looking ------------------------------------------------------------------------------------------------------

    def _find(self, target: InstallTarget) -> Attempt | None:
        """The node's record, unless it is of a machine that stood in its place before."""
        found = self._desk.find(target.name)
        if found is None or not same_identity(found.serial, target.serial):
            return None
        return found

    def _heard(self, attempt: Attempt | None) -> Attempt | None:
        """The attempt, ended where the machine has been silent for too long."""
        if attempt is None or not self._silent(attempt):
            return attempt
        minutes = self._settings.silence_s / 60
        why = f"the machine told nothing for {minutes:g} minutes; last: {attempt.milestones[-1].words}"

        def give_up(now: Attempt) -> Attempt:
            return ended(now, AttemptState.FAILED, why, self._clock.now()) if self._silent(now) else now

        return self._desk.change(attempt.node, give_up, of=attempt.id)

    def _silent(self, attempt: Attempt) -> bool:
        heard = attempt.last_heard
        if not (attempt.running and attempt.started) or heard is None:
            return False
        return self._clock.now() - heard > timedelta(seconds=self._settings.silence_s)

    def _told(self, attempt: Attempt | None, target: InstallTarget) -> Observed[InstallStatus]:
        if attempt is None:
            return Observed(ABSENT)
        at, origin, where = self._clock.now(), self._settings.origin, self._settings.base
        evidence = [record_evidence(attempt, where, at, origin)]
        log = self._desk.log(attempt) if attempt.state in (AttemptState.FAILED, AttemptState.REFUSED) else None
        if log is not None:
            evidence.append(log_evidence(attempt, log, at, origin))
        return Observed(status_of(attempt, target), tuple(evidence))

    # --- acting -------------------------------------------------------------------------------------------------------

    def _check(self, target: InstallTarget) -> None:
        if not target.macs:
            raise UsageError(
                "no network card of the machine is known",
                where=target.name,
                remedy="give the sheet a column boot_mac with the MAC of the card that boots",
            )
        if self._settings.dhcp is Dhcp.RESERVE and not target.address:
            raise UsageError(
                "the machine has no address to reserve",
                where=target.name,
                remedy="give the sheet a column address, or set provisioning.dhcp: proxy beside another DHCP server",
            )
        self._armoury.check(target)

    def _boot(self, target: InstallTarget, deadline: Deadline) -> tuple[Evidence, ...]:
        """Over the network once, whatever it does now; the BMC proves at each act that it is in the machine meant."""
        with self._bmcs.open(target.bmc, deadline) as bmc:
            wished = bmc.boot_once(BootOnce(BootSource.PXE), target.serial, deadline)
            power = bmc.power(deadline)
            if power.value is Power.OFF:
                switched = bmc.set_power(Power.ON, target.serial, deadline)
            else:
                switched = bmc.cycle_power(target.serial, deadline)
        return (*wished.evidence, *power.evidence, *switched.evidence)

    def _started(self, attempt: Attempt) -> Attempt:
        if attempt.started:
            return attempt
        words = "its BMC has started it, to boot over the network once"
        return replace(told(attempt, words, self._clock.now()), started=True)


def _ready(target: InstallTarget) -> Attempt:
    return Attempt(target.name, AttemptState.READY, target.serial, target.macs, target.disk)
