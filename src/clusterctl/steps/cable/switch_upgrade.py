"""New software for switches, by orders to the fabric manager: identity first, then the intent, the order, and proof.

A run that is killed leaves its intents; the next one follows them to their end, and orders nothing a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from clusterctl.cabling.health.findings import fabric_labels
from clusterctl.cabling.health.judge import judge_health
from clusterctl.cabling.health.symptoms import unproven
from clusterctl.fleet.acts import Act, ActResult, FlashState, SwitchUpgradeDetails
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError
from clusterctl.fleet.event import NewEvent, Payload, Stream
from clusterctl.fleet.fabric.alarms import ManagedSystem
from clusterctl.fleet.fabric.history import link_name
from clusterctl.fleet.fabric.limits import FabricLimits
from clusterctl.fleet.fabric.manager_jobs import JobStatus, ManagerJob
from clusterctl.fleet.fabric.switch_acts import SwitchUpgrade
from clusterctl.fleet.fabric.topology import Fabric, Link
from clusterctl.fleet.fabric.wiring import WiringPlan
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.node import Guid
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.formats.infiniband.ibnetdiscover import parse_ibnetdiscover
from clusterctl.ports import Claim, Deadline, FabricReader, JobReader, Journal, SystemReader
from clusterctl.ports.fabric import SwitchImage, SwitchUpdater
from clusterctl.steps.cable.link_health import UNREADABLE, LinkReading, link_window

UPGRADE, REBOOT = "sw_upgrade", "reboot"
"""UFM's names of the actions, also among a system's capabilities."""
EVERY_S = 15.0
"""Seconds between two looks at switches that restart."""
LOOK_S = 300.0
RESTART_S = 300.0
"""Seconds in which a switch may begin to restart by itself; public documents leave open whether UFM lets it."""
UNTAKEN_S = 600.0
"""Seconds after which an order that no job of the manager is about was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenSwitch:
    """A switch that is to get new software, as it was when that was approved."""

    guid: Guid
    name: str
    serial: str
    software: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeServices:
    """What an upgrade acts through.

    read_links  reads fabric and counters, and keeps them
    claim       of the fabric: it fences each event
    """

    fabric: FabricReader
    read_links: Callable[[Deadline], LinkReading]
    systems: SystemReader
    jobs: JobReader
    updater: SwitchUpdater
    image: SwitchImage
    journal: Journal
    claim: Claim
    limits: FabricLimits
    plan: WiringPlan


@dataclass(slots=True)
class _Followed:
    """A switch that restarts. `away`: some of its links were seen down; `idle`: seconds at which all were up and its
    job over, and it still ran the old software; `cause`: why it is not back, empty where it is, None while it is open.
    """

    upgrade: SwitchUpgrade
    away: bool = False
    idle: float | None = None
    cause: str | None = None


@dataclass(frozen=True, slots=True)
class _Look:
    fabric: Fabric
    systems: Mapping[Guid, ManagedSystem]
    jobs: tuple[ManagerJob, ...]


@dataclass(frozen=True, slots=True)
class SwitchUpgrader:
    """Upgrades switches. `settle_s`: seconds over which the counters of their links are watched afterwards."""

    services: UpgradeServices
    reason: str
    settle_s: float
    on_event: Callable[[str, str], None]

    def read_fabric(self, deadline: Deadline) -> Fabric:
        """Return the fabric as it is now."""
        text = self.services.fabric.ibnetdiscover(deadline.within(LOOK_S)).value
        return parse_ibnetdiscover(text, file="ibnetdiscover")

    def order(
        self, one: ChosenSwitch, to: str, fabric: Fabric, hosts: Mapping[Guid, str], deadline: Deadline
    ) -> SwitchUpgrade:
        """Prove that the switch is the one that was approved, write the intent, and order its upgrade.

        `hosts`: the host of each adapter behind it.
        Raise `EdgeError` where it is not, or the manager refuses. An order whose answer is lost is followed.
        """
        self._prove_identity(one, fabric, deadline)
        before = SwitchUpgradeDetails(
            label=one.name,
            serial=one.serial,
            software=one.software,
            state=FlashState.SENDING,
            last_job=max((_number(job) for job in self.services.jobs.jobs(deadline.within(LOOK_S)).value), default=0),
            links={link_name(link): link.gbps for link in _links(fabric, one.guid)},
            hosts={str(guid): name for guid, name in hosts.items()},
        )
        upgrade = SwitchUpgrade(guid=one.guid, to=to, before=before)
        self._intend(upgrade)
        try:
            job = self.services.updater.upgrade(one.guid, self.services.image, deadline)
        except OutcomeUnknownError as error:
            self.on_event(one.name, str(error))
            return upgrade
        except EdgeError as error:
            self.end(upgrade, error.message)
            raise
        return self._followed(upgrade, job)

    def follow(self, upgrades: Sequence[SwitchUpgrade], deadline: Deadline) -> dict[Guid, str]:
        """Wait until the switches run the new software with all their links; return why one does not, or nothing."""
        open_ = {one.guid: _Followed(one) for one in upgrades}
        unread = ""
        while any(one.cause is None for one in open_.values()):
            try:
                look, unread = self._look(deadline), ""
            except UNREADABLE as error:  # the subnet manager, or UFM, may be busy with the switches
                unread = error.message
            else:
                for one in open_.values():
                    if one.cause is None:
                        one.cause = self._judged(one, look, deadline)
            if deadline.remaining <= EVERY_S:
                break
            if any(one.cause is None for one in open_.values()):
                deadline.sleep(EVERY_S, "waiting for switches to restart")
        return {guid: _overdue(one, unread) if one.cause is None else one.cause for guid, one in open_.items()}

    def prove(self, upgrades: Sequence[SwitchUpgrade], deadline: Deadline) -> dict[Guid, str]:
        """Watch the links' counters for a while; return what is wrong with the links of each switch, or nothing."""
        first = self.services.read_links(deadline)
        if not first.evidence:
            return {one.guid: first.judged.reason for one in upgrades}
        deadline.sleep(self.settle_s, "watching the counters of links")
        second = self.services.read_links(deadline)
        return {one.guid: self._trouble(one, first, second) for one in upgrades}

    def end(self, upgrade: SwitchUpgrade, cause: str) -> None:
        """Write what came of it: done, or failed for a cause."""
        result = ActResult.FAILED if cause else ActResult.DONE
        self._write(upgrade.guid, ActObserved(act=Act.SWITCH_UPGRADE, result=result, message=cause))

    def _prove_identity(self, one: ChosenSwitch, fabric: Fabric, deadline: Deadline) -> None:
        """Raise `EdgeError` unless fabric and manager have the switch as it was approved."""
        systems = {system.guid: system for system in self.services.systems.systems(deadline.within(LOOK_S)).value}
        found, device = systems.get(one.guid), fabric.devices.get(one.guid)
        if found is None or device is None:
            raise EdgeError("it is not in the fabric, or UFM does not have it", where=one.name, remedy="see its power")
        if (found.serial, found.software) != (one.serial, one.software):
            seen = f"serial {found.serial or 'unknown'} with {found.software or 'unknown software'}"
            message = f"UFM has {seen} there, not serial {one.serial} with {one.software}"
            raise EdgeError(message, where=one.name, remedy="look at the switch, then run again")
        if UPGRADE not in found.capabilities:
            raise EdgeError("UFM cannot update it now", where=one.name, remedy="check UFM's login to this switch")

    def _judged(self, one: _Followed, look: _Look, deadline: Deadline) -> str | None:
        """Return why the switch is not back, empty where it is, None where that is open."""
        upgrade = one.upgrade = self._with_job(one.upgrade, look.jobs)
        job = next((job for job in look.jobs if job.id == upgrade.before.job), None)
        system = look.systems.get(upgrade.guid)
        missing, new = upgrade.missing(look.fabric), system is not None and system.software == upgrade.to
        over = job.status.is_over if job is not None else not self._may_be_taken(upgrade, look.jobs)
        if missing or not over:
            one.away, one.idle = one.away or bool(missing), None
            return None
        if new:
            return ""
        if job is not None and job.status is JobStatus.ERRORS:
            return f"UFM's job {job.id} ended with errors: {self._summary(job, deadline)}"
        return None if one.away else self._idle(one, system, taken=job is not None, deadline=deadline)

    def _idle(self, one: _Followed, system: ManagedSystem | None, *, taken: bool, deadline: Deadline) -> str | None:
        """Return why a switch is not back that runs the old software with all its links; None where that is open.

        One that has the new software and does not restart is rebooted, once. A switch that was away has restarted; UFM
        looks at it again.
        """
        now = deadline.timer.now()
        one.idle = now if one.idle is None else one.idle
        if not taken and not one.upgrade.before.job:
            return "UFM has no job of the order: it was not taken" if now - one.idle >= UNTAKEN_S else None
        if now - one.idle >= RESTART_S and not one.upgrade.before.rebooted:
            if system is None or REBOOT not in system.capabilities:
                return "it has not restarted, and UFM cannot reboot it"
            one.upgrade = self._reboot(one.upgrade, deadline)
        return None

    def _reboot(self, upgrade: SwitchUpgrade, deadline: Deadline) -> SwitchUpgrade:
        rebooted = replace(upgrade, before=replace(upgrade.before, rebooted=True))
        self._intend(rebooted)
        self.on_event(upgrade.before.label, "it has the software and has not restarted: rebooting it")
        try:
            self.services.updater.reboot(upgrade.guid, deadline)
        except EdgeError as error:  # its links and its version decide
            self.on_event(upgrade.before.label, str(error))
        return rebooted

    def _with_job(self, upgrade: SwitchUpgrade, jobs: Sequence[ManagerJob]) -> SwitchUpgrade:
        """Return the upgrade with the job of an order whose answer was not recorded, once the manager shows it."""
        if upgrade.before.job:
            return upgrade
        names = (str(upgrade.guid), upgrade.before.label)
        about = (
            one for one in _new(upgrade, jobs) if any(name in (one.objects, *one.objects.split()) for name in names)
        )
        found = next(about, None)
        return upgrade if found is None else self._followed(upgrade, found.id)

    def _may_be_taken(self, upgrade: SwitchUpgrade, jobs: Sequence[ManagerJob]) -> bool:
        """Return whether a job that runs may be that of the order."""
        return any(not job.status.is_over for job in _new(upgrade, jobs))

    def _summary(self, job: ManagerJob, deadline: Deadline) -> str:
        """Return what the manager has of a job that failed; its parts have more detail than the whole."""
        try:
            parts = self.services.jobs.jobs(deadline.within(LOOK_S), parent=job.id).value
        except UNREADABLE:
            parts = ()
        bad = [part.summary for part in parts if part.status is not JobStatus.COMPLETED and part.summary]
        return "; ".join(bad) or job.summary or "no summary"

    def _followed(self, upgrade: SwitchUpgrade, job: str) -> SwitchUpgrade:
        found = replace(upgrade, before=replace(upgrade.before, state=FlashState.FOLLOWING, job=job))
        self._intend(found)
        self.on_event(upgrade.before.label, f"job {job} of UFM")
        return found

    def _look(self, deadline: Deadline) -> _Look:
        systems = self.services.systems.systems(deadline.within(LOOK_S)).value
        return _Look(
            self.read_fabric(deadline),
            {one.guid: one for one in systems},
            self.services.jobs.jobs(deadline.within(LOOK_S)).value,
        )

    def _trouble(self, upgrade: SwitchUpgrade, first: LinkReading, second: LinkReading) -> str:
        if second.fabric is None:
            return second.judged.reason
        if missing := upgrade.missing(second.fabric):
            return f"{len(missing)} of its links went down again: {missing[0]}"
        alone = Fabric(second.fabric.devices, _links(second.fabric, upgrade.guid))
        since = min(item.at for item in first.evidence)
        window = link_window(self.services.journal, alone, self.services.limits, since)
        if window is None:
            return "the counters of its links could not be read twice"
        found = judge_health(alone, window, fabric_labels(alone, self.services.plan))
        bad = [finding.cause for finding in found.findings if finding.verdict is Verdict.FAIL]
        why = (unproven(window, link) for link in alone.cables())
        unread = sum(1 for one in why if one is not None and one.doubts)
        return "; ".join(bad) or (f"the counters of {unread} of its links could not be read" if unread else "")

    def _intend(self, upgrade: SwitchUpgrade) -> None:
        payload = ActIntended(act=Act.SWITCH_UPGRADE, target=upgrade.to, reason=self.reason, details=upgrade.before)
        self._write(upgrade.guid, payload)

    def _write(self, guid: Guid, payload: Payload) -> None:
        self.services.journal.append([NewEvent(Stream.FABRIC, str(guid), payload)], claim=self.services.claim)


def _overdue(one: _Followed, unread: str) -> str:
    if unread:
        return f"it is not known how it is: {unread}"
    return "its links did not all come back in time" if one.idle is None else "it does not run the software in time"


def _links(fabric: Fabric, guid: Guid) -> tuple[Link, ...]:
    return tuple(link for link in fabric.cables() if guid in (link.a.guid, link.b.guid))


def _new(upgrade: SwitchUpgrade, jobs: Sequence[ManagerJob]) -> list[ManagerJob]:
    """Return the manager's jobs that are newer than the order."""
    return [job for job in jobs if _number(job) > upgrade.before.last_job]


def _number(job: ManagerJob) -> int:
    return int(job.id.partition(".")[0])
