"""Installs machines over clusterctl's own PXE service. Each call reads the attempt first and returns at once."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any, Protocol

from clusterctl.edges.pxe.attempt import AttemptState, InstallAttempt, finished, with_milestone
from clusterctl.edges.pxe.attempt_store import AttemptStore, start_ticket
from clusterctl.edges.pxe.install_profiles import AttemptFactory
from clusterctl.edges.pxe.settings import Dhcp
from clusterctl.edges.redaction import KNOWN
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError, UsageError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.hardware.disk_contract import same_identity
from clusterctl.ports import BmcAddress, Bmcs, Deadline, InstallState, InstallStatus, InstallTarget, Power

STATES = {
    AttemptState.READY: InstallState.READY,
    AttemptState.ARMED: InstallState.INSTALLING,
    AttemptState.SEEN: InstallState.INSTALLING,
    AttemptState.WRITING: InstallState.INSTALLING,
    AttemptState.DONE: InstallState.INSTALLED,
    AttemptState.FAILED: InstallState.FAILED,
    AttemptState.REFUSED: InstallState.FAILED,
}
ERASE_STATES = {
    **STATES,
    **dict.fromkeys((AttemptState.ARMED, AttemptState.SEEN, AttemptState.WRITING), InstallState.ERASING),
    AttemptState.DONE: InstallState.READY,
}
"""One that waits to be started has FAILED: its erase has not begun, and the next request begins it."""
ABSENT = InstallStatus(InstallState.ABSENT, "the machine has no install record")
MAX_LOG_BYTES = 16 << 20
_GZIP = b"\x1f\x8b"


def status_of(attempt: InstallAttempt, target: InstallTarget) -> InstallStatus:
    """Return the status. An attempt with a machine that has not been started is READY: the caller starts it."""
    waiting = attempt.state is AttemptState.ARMED and not attempt.started
    if attempt.erase:
        state = InstallState.FAILED if waiting else ERASE_STATES[attempt.state]
    else:
        state = InstallState.READY if waiting else STATES[attempt.state]
    last = attempt.milestones[-1].text if attempt.milestones else ""
    over = state in (InstallState.INSTALLED, InstallState.FAILED)
    return InstallStatus(
        state,
        attempt.reason or last or attempt.state.value,
        attempt.id,
        _addresses(attempt, target) if over else (),
        attempt.host_key,
        attempt.milestones,
        attempt.drives,
        makes_key=True,
        root=attempt.disk if attempt.root else None,
        decide=attempt.decide,
    )


def record_evidence(attempt: InstallAttempt, where: str, at: datetime, origin: Origin) -> Evidence:
    """Return the record as evidence, without its secrets and its long fields."""
    record = asdict(attempt)
    for name in ("token", "boot", "documents"):
        del record[name]
    content = json.dumps(record, default=_plainly, indent=1)
    return Evidence(f"pxe attempt {attempt.node}", where, at, origin, KNOWN(content).encode())


def log_evidence(attempt: InstallAttempt, log: bytes, at: datetime, origin: Origin) -> Evidence:
    """Return the machine's own log as evidence, decompressed."""
    return Evidence("the installer's log", attempt.node, at, origin, KNOWN.bytes(_unpacked(log)))


def _unpacked(log: bytes) -> bytes:
    """Decompress at most `MAX_LOG_BYTES`; return a log that is no gzip as it is."""
    if not log.startswith(_GZIP):
        return log
    try:
        return zlib.decompressobj(wbits=31).decompress(log, MAX_LOG_BYTES)
    except zlib.error:
        return log


def _addresses(attempt: InstallAttempt, target: InstallTarget) -> tuple[str, ...]:
    """Return the addresses of the host, the likeliest first: those of the site, else the one that it posted from."""
    given = target.network.answering(target.address) or (target.address, attempt.address)
    return tuple(dict.fromkeys(filter(None, given)))


def _plainly(value: Any) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(getattr(value, "value", value))


class Service(Protocol):
    """DHCP, TFTP and HTTP for the machines that are installed."""

    def ensure(self) -> None:
        """Serve, unless another process does. Raises `EnvironmentBrokenError`."""
        ...

    def answer(self, target: InstallTarget) -> None:
        """Add the machine to those that DHCP answers."""
        ...

    @property
    def serving_since(self) -> datetime | None:
        """Return when it began to serve, or was started again after a loss; None where another process serves."""
        ...


class PxeInstaller:
    """Meets `Installer`. Safe to use from many threads, for different machines."""

    def __init__(
        self,
        factory: AttemptFactory,
        attempts: AttemptStore,
        service: Service,
        bmcs: Bmcs,
        erasing: AttemptFactory | None = None,
    ) -> None:
        """Create the installer. `erasing` prepares the attempts that erase; None: it erases nothing."""
        self._erasing = erasing
        self._settings = factory.settings
        self._attempts = attempts
        self._service = service
        self._bmcs = bmcs
        self._factory = factory
        self._clock = factory.clock

    def prepare(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Record the machine as READY, once everything that the install needs is present."""
        self._check(target)
        self._service.ensure()
        found = self._find(target)
        if found is None:
            deadline.check(f"recording {target.name} for its install")
            found = self._attempts.put(_ready(target), {})
        self._service.answer(target)
        return self._status(found, target)

    def start(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Arm the machine and start it from the network by its BMC. A running or completed attempt is left alone."""
        found = self._find(target)
        if found is None:
            raise EdgeError("the machine has no install record", where=target.name, remedy="prepare it first")
        if found.erase:
            return self._start_after_erase(found, target, deadline)
        if found.state is AttemptState.DONE or (found.running and found.started):
            return self._status(found, target)
        if found.state in (AttemptState.FAILED, AttemptState.REFUSED):
            raise EdgeError(
                f"its last attempt ended: {found.reason}", where=target.name, remedy="release it, then try again"
            )
        self._check(target)
        self._service.ensure()
        if found.running:
            return self._begin(found, target, deadline)
        return self._arm(self._factory, target, deadline)

    def _arm(self, factory: AttemptFactory, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Arm the machine, and start it. For a boot over HTTPS its firmware is to trust the site's authority first."""
        evidence = self._enrolled(target, deadline)
        deadline.check(f"arming {target.name}")
        begun = self._begin(self._attempts.put(*factory.arm(target)), target, deadline)
        return Observed(begun.value, (*evidence, *begun.evidence))

    def _begin(self, found: InstallAttempt, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Start the machine of an armed attempt."""
        self._service.answer(target)
        evidence = self._boot(found, target, deadline)
        started = self._attempts.change(target.name, self._started, of=found.id)
        seen = self._status(started or found, target)
        return Observed(seen.value, (*evidence, *seen.evidence))

    def _start_after_erase(
        self, found: InstallAttempt, target: InstallTarget, deadline: Deadline
    ) -> Observed[InstallStatus]:
        """Start an install where the last attempt was an erase. One that runs is left alone."""
        if found.running and found.started:
            return self._status(found, target)
        self._check(target)
        self._service.ensure()
        return self._arm(self._factory, target, deadline)

    def power_login(self, target: InstallTarget, deadline: Deadline) -> BmcAddress | None:
        """Return None: machines are switched through our own sessions, which try a rejected login once."""
        del target, deadline
        return None

    def erases_any(self, name: str) -> bool:
        """Return whether it erases at all: the deployer needs nothing of an earlier install."""
        del name
        return self._erasing is not None

    def erase(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Arm the machine to be erased, and start it from the network. An erase that runs is left alone.

        The machine erases its drives only where it has reported the serial and exactly the drives of `target`.
        """
        if self._erasing is None or not target.erase:
            raise EdgeError("no drives are named to be erased", where=target.name, remedy="erase them by hand")
        found = self._find(target)
        running = found if found is not None and found.running else None
        if running is not None and not running.erase:
            remedy = "wait until it has ended, then run the same command again"
            raise EdgeError("it is being installed", where=target.name, remedy=remedy)
        if running is not None and running.started:
            return self._status(running, target)
        self._require_reachable(target)
        self._erasing.check(target)
        self._service.ensure()
        return self._arm(self._erasing, target, deadline)

    def observe(self, targets: Sequence[InstallTarget], deadline: Deadline) -> Mapping[str, Observed[InstallStatus]]:
        """Return the status of each machine by its record. A machine that is silent for too long has failed."""
        deadline.check("reading the install records")
        found = {target.name: self._find(target) for target in targets}
        if any(attempt is not None and attempt.running for attempt in found.values()):
            self._service.ensure()
        return {target.name: self._status(self._timed_out(found[target.name]), target) for target in targets}

    def release(self, target: InstallTarget, deadline: Deadline) -> Observed[InstallStatus]:
        """Disarm the machine: its token is invalid, and the machine may be armed again."""
        deadline.check(f"disarming {target.name}")
        return self._status(self._attempts.put(_ready(target), {}), target)

    # --- reading ------------------------------------------------------------------------------------------------------

    def _find(self, target: InstallTarget) -> InstallAttempt | None:
        """Return the node's record, unless it belongs to an earlier machine in the same place."""
        found = self._attempts.find(target.name)
        if found is None or not same_identity(found.serial, target.serial):
            return None
        return found

    def _timed_out(self, attempt: InstallAttempt | None) -> InstallAttempt | None:
        """Return the attempt; end it first if the machine has been silent for too long."""
        if attempt is None or not self._silent(attempt):
            return attempt
        minutes = self._settings.silence_s / 60
        why = f"the machine was silent for {minutes:g} minutes; last: {attempt.milestones[-1].text}"
        if note := self._attempts.noted(attempt):
            why = f"{why}; not proven: {note}"

        def give_up(now: InstallAttempt) -> InstallAttempt:
            return finished(now, AttemptState.FAILED, why, self._clock.now()) if self._silent(now) else now

        return self._attempts.change(attempt.node, give_up, of=attempt.id)

    def _silent(self, attempt: InstallAttempt) -> bool:
        """Return whether it was silent for too long, while it could report itself: a lost service receives nothing."""
        last = attempt.last_contact
        if not (attempt.running and attempt.started) or last is None:
            return False
        since = self._service.serving_since
        last = max(last, since) if since is not None else last
        return self._clock.now() - last > timedelta(seconds=self._settings.silence_s)

    def _status(self, attempt: InstallAttempt | None, target: InstallTarget) -> Observed[InstallStatus]:
        if attempt is None:
            return Observed(ABSENT)
        at, origin, where = self._clock.now(), self._settings.origin, self._settings.base
        evidence = [record_evidence(attempt, where, at, origin)]
        log = self._attempts.log(attempt) if attempt.state in (AttemptState.FAILED, AttemptState.REFUSED) else None
        if log is not None:
            evidence.append(log_evidence(attempt, log, at, origin))
        status = status_of(attempt, target)
        if attempt.running and (note := self._attempts.noted(attempt)):
            status = replace(status, detail=f"{status.detail}; not proven: {note}")
        return Observed(status, tuple(evidence))

    # --- acting -------------------------------------------------------------------------------------------------------

    def _check(self, target: InstallTarget) -> None:
        self._require_reachable(target)
        self._factory.check(target)

    def _require_reachable(self, target: InstallTarget) -> None:
        """Raise `UsageError` where DHCP could not answer the machine."""
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
                remedy="give the sheet a column address, or set provisioning.dhcp: proxy with another DHCP server",
            )

    def _enrolled(self, target: InstallTarget, deadline: Deadline) -> tuple[Evidence, ...]:
        """Enroll the site's authority through the machine's BMC, where it is not; nothing without HTTPS, or by hand."""
        tls = self._settings.tls
        if tls is None or not self._settings.enroll:
            return ()
        with self._bmcs.open(target.bmc, deadline) as bmc:
            return bmc.enroll_boot_authority(tls.authority, target.serial, deadline).evidence

    def _boot(self, attempt: InstallAttempt, target: InstallTarget, deadline: Deadline) -> tuple[Evidence, ...]:
        """Boot the machine over the network once. The BMC's machine is verified by its serial before each act.

        Over HTTPS the BMC is given the attempt's ticket, in the URI; it is masked in the evidence.
        """
        wish = BootOnce(BootSource.PXE)
        if attempt.boot is not None and attempt.boot.stub:
            uri = f"{self._settings.base}/efi/{start_ticket(attempt.token)}.efi"
            wish = BootOnce(BootSource.UEFI_HTTP, uri)
        with self._bmcs.open(target.bmc, deadline) as bmc:
            wished = bmc.boot_once(wish, target.serial, deadline)
            power = bmc.power(deadline)
            if power.value is Power.OFF:
                switched = bmc.set_power(Power.ON, target.serial, deadline)
            else:
                switched = bmc.cycle_power(target.serial, deadline)
        kept = (*wished.evidence, *power.evidence, *switched.evidence)
        return tuple(replace(one, source=KNOWN(one.source), content=KNOWN.bytes(one.content)) for one in kept)

    def _started(self, attempt: InstallAttempt) -> InstallAttempt:
        if attempt.started:
            return attempt
        words = "its BMC has started it, to boot over the network once"
        return replace(with_milestone(attempt, words, self._clock.now()), started=True)


def _ready(target: InstallTarget) -> InstallAttempt:
    return InstallAttempt(target.name, AttemptState.READY, target.serial, target.macs, target.disk)
