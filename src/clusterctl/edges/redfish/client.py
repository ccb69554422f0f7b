"""BMCs over Redfish: implements `Bmcs`, `BmcClient`, `AccountBmcs`, `ServiceBmcs` and `CertificateBmcs`."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, BinaryIO, Self

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.accounts import Accounts
from clusterctl.edges.redfish.bios import BiosSettings, LogClearer
from clusterctl.edges.redfish.boot import BootOverride, VirtualMedia
from clusterctl.edges.redfish.boot_certificates import BootAuthority
from clusterctl.edges.redfish.certificates import BmcCertificate
from clusterctl.edges.redfish.pins import KnownBmcs, presented_der
from clusterctl.edges.redfish.power import PowerOnStagger, PowerSwitch, at_once, power_of
from clusterctl.edges.redfish.screen import read_screen
from clusterctl.edges.redfish.services import BmcServices
from clusterctl.edges.redfish.session import RedfishAccess, RedfishSession
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.update import FirmwareUpdate
from clusterctl.edges.redfish.write import require_machine
from clusterctl.fleet.bmc.accounts import Account, AccountSight, same
from clusterctl.fleet.bmc.boot import BootOnce
from clusterctl.fleet.bmc.certificates import CertificateWish
from clusterctl.fleet.bmc.logs import LogArchive
from clusterctl.fleet.bmc.screen import Screen
from clusterctl.fleet.bmc.services import ServiceState, WantedServices
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.settings.baseline import Bios, FirmwareWish, Value
from clusterctl.fleet.settings.updates import Task, Updates
from clusterctl.formats.redfish.bios import read_bios, read_bios_thoroughly
from clusterctl.formats.redfish.evidence import fits, render, simulated
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.logs import read_logs
from clusterctl.formats.redfish.system import read_post
from clusterctl.formats.redfish.tree import ROOT, Answers
from clusterctl.formats.redfish.updates import read_updates, task_of
from clusterctl.ports import BmcAddress, BmcClient, Clock, Deadline, LogEntry, Post, Power
from clusterctl.ports.accounts import AccountClient
from clusterctl.ports.certificates import CertificateClient
from clusterctl.ports.services import ServiceClient

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Shared:
    """What all clients of one run share."""

    clock: Clock
    access: RedfishAccess
    known: KnownBmcs | None
    stagger: PowerOnStagger | None
    origin: Origin


class RedfishBmcs:
    """Opens BMC sessions. One for a whole run: it knows the BMCs that have rejected our credentials.

    known       the certificates that were pinned on first use
    stagger     staggers power-on
    read_only   refuses every change before it is sent
    origin      whether the site is real or a rehearsal
    """

    def __init__(
        self,
        clock: Clock,
        timing: Timing | None = None,
        *,
        known: KnownBmcs | None = None,
        stagger: PowerOnStagger | None = None,
        read_only: bool = False,
        origin: Origin = Origin.REAL,
    ) -> None:
        access = RedfishAccess(timing or Timing(), read_only=read_only)
        self._shared = _Shared(clock, access, known, stagger, origin)

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient:
        """Return a client that logs in when its `with` block begins, within `deadline`."""
        return _RedfishClient(address, deadline, self._shared)

    def open_accounts(self, address: BmcAddress, deadline: Deadline) -> AccountClient:
        """Return the same for its accounts."""
        return _RedfishClient(address, deadline, self._shared, for_accounts=True)

    def open_services(self, address: BmcAddress, deadline: Deadline) -> ServiceClient:
        """Return the same for its clock, name servers and syslog target."""
        return _RedfishClient(address, deadline, self._shared)

    def open_certificates(self, address: BmcAddress, deadline: Deadline) -> CertificateClient:
        """Return the same for its certificate."""
        return _RedfishClient(address, deadline, self._shared)

    def presented(self, address: BmcAddress, deadline: Deadline) -> bytes:
        """Return the certificate (DER) that the BMC proves to have, trusted or not; no login is sent."""
        return presented_der(address, deadline)

    def move_pin(self, address: BmcAddress, before: str, now: str) -> None:
        """Pin the certificate `now` where `before` was pinned on first use."""
        if self._shared.known is not None:
            self._shared.known.move(address, before, now)


class _RedfishClient:
    def __init__(self, address: BmcAddress, deadline: Deadline, shared: _Shared, *, for_accounts: bool = False) -> None:
        self._host = address.host if address.port == 443 else f"{address.host}:{address.port}"
        self._deadline = deadline
        self._shared = shared
        self._timing = shared.access.timing
        self._address = address
        self._given = address
        self._for_accounts = for_accounts
        self._pinned_now: tuple[str, ...] = ()
        self.took_former = False
        self._redact = Redaction([address.password, *(address.former or ())[1:]])
        self._session: RedfishSession

    def __enter__(self) -> Self:
        with self._located():
            self._address = self._trusted()
            self._session, self.took_former = self._shared.access.open(
                self._address, self._deadline, for_accounts=self._for_accounts
            )
            self._redact = self._session.redact
        return self

    def __exit__(self, *exc: object) -> None:
        self._session.close()

    def inventory(self, deadline: Deadline) -> Observed[Inventory]:
        with self._located():
            reading, answers = self._session.walk(read_inventory, deadline)
            self._remember(reading.inventory.serial)
        return Observed(reading.inventory, (self._evidence("redfish walk", answers, reading.problems),))

    def power(self, deadline: Deadline) -> Observed[Power]:
        with self._located():
            switch = self._switch()
            control = switch.read(deadline)
            self._remember(control.serial)
            found = power_of(control)
        return Observed(found, (self._evidence("redfish power", switch.answers),))

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Bring the machine to `power` and verify it; refuses unless its serial is `serial`."""
        with self._located():
            switch = self._switch()
            switch.switch(power, serial, deadline)
            self._remember(serial)
        return Observed(power, (self._steps(f"redfish set power {power.value}", switch.steps),))

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Switch off, verify it, and switch on again; refuses unless its serial is `serial`."""
        with self._located():
            switch = self._switch()
            switch.cycle(serial, deadline)
            self._remember(serial)
        return Observed(Power.ON, (self._steps("redfish cycle power", switch.steps),))

    def ac_cycle(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Take all power off machine and BMC, and wait until both are back; refuses unless its serial is `serial`."""
        with self._located():
            switch = self._switch()
            switch.ac_cycle(serial, deadline)
        return Observed(Power.ON, (self._steps("redfish AC cycle", switch.steps),))

    def boot_once(self, wish: BootOnce, serial: Serial, deadline: Deadline) -> Observed[BootOnce]:
        """Set the device of the next boot, and verify it; refuses unless its serial is `serial`."""
        with self._located():
            override = BootOverride(self._session, self._timing, serial)
            override.once(wish, deadline)
            self._remember(serial)
        return Observed(wish, (self._steps(f"redfish boot once from {wish}", override.steps),))

    def enroll_boot_authority(self, pem: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Have the machine's firmware trust this authority at its boot over HTTPS, and verify it; refuses unless its
        serial is `serial`.
        """
        with self._located():
            authority = BootAuthority(self._session, self._timing, serial)
            authority.enroll(pem, deadline)
            self._remember(serial)
        return Observed(None, (self._steps("redfish enroll boot authority", authority.steps),))

    def insert_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[str]:
        """Insert the image into a free virtual drive, and verify it; refuses unless its serial is `serial`."""
        with self._located():
            media = VirtualMedia(self._session, self._timing, serial)
            media.insert(uri, deadline)
        return Observed(uri, (self._steps(f"redfish insert {uri}", media.steps),))

    def eject_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Eject the image from every virtual drive, and verify it; refuses unless its serial is `serial`."""
        with self._located():
            media = VirtualMedia(self._session, self._timing, serial)
            media.eject(uri, deadline)
        return Observed(None, (self._steps(f"redfish eject {uri}", media.steps),))

    def post(self, deadline: Deadline) -> Observed[Post]:
        """Return the progress of the machine's self-test."""
        with self._located():
            found, answers = self._session.walk(read_post, deadline)
        return Observed(found, (self._evidence("redfish self-test", answers),))

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        """Return the newest entries of all hardware logs, newest first."""
        with self._located():
            entries, answers = self._session.walk(read_logs, deadline)
        return Observed(entries, (self._evidence("redfish event log", answers),))

    def screen(self, deadline: Deadline) -> Observed[Screen | None]:
        """Return what the machine's screen or console shows, as evidence; None where the BMC does not give it."""
        with self._located():
            found = read_screen(self._session, deadline)
        if found is None:
            return Observed(None)
        content = self._redact.bytes(found.content)
        evidence = self._kept(f"redfish screen ({found.kind})", self._session.root, content)
        return Observed(replace(found, content=content), (evidence,))

    def archive_log(self, deadline: Deadline) -> Observed[LogArchive]:
        """Return all entries of the event logs that can be cleared."""
        with self._located():
            logs, answers = LogClearer(self._session, self._timing).read(deadline)
            if not fits(answers):
                remedy = "export and clear it by hand at the BMC"
                raise EdgeError("the event log is longer than the evidence of one answer may be", remedy=remedy)
        return Observed(logs.archive, (self._evidence("redfish event log, whole", answers),))

    def clear_log(self, archive: LogArchive, deadline: Deadline) -> Observed[None]:
        """Clear the event logs; refuses where they have entries that `archive` lacks, or are another machine's."""
        with self._located():
            clearer = LogClearer(self._session, self._timing)
            clearer.clear(archive, deadline)
        return Observed(None, (self._steps("redfish clear event log", clearer.steps),))

    def bios(self, deadline: Deadline, *, thorough: bool = False) -> Observed[Bios]:
        """Return the current and pending BIOS attributes; `thorough`: with the attribute registry."""
        with self._located():
            control, answers = self._session.walk(read_bios_thoroughly if thorough else read_bios, deadline)
        return Observed(control.bios, (self._evidence("redfish BIOS settings", answers),))

    def set_bios(self, wanted: Mapping[str, Value], serial: Serial, deadline: Deadline) -> Observed[Bios]:
        """Make these attributes pending for the next boot, and verify it; refuses unless its serial is `serial`."""
        with self._located():
            settings = BiosSettings(self._session, self._timing, serial)
            control = settings.prepare(wanted, deadline)
        return Observed(control.bios, (self._steps("redfish set BIOS attributes", settings.steps),))

    def updates(self, deadline: Deadline) -> Observed[Updates]:
        """Return the running firmware and the BMC's tasks."""
        with self._located():
            control, answers = self._session.walk(read_updates, deadline)
        return Observed(control.updates, (self._evidence("redfish firmware and tasks", answers),))

    def push_firmware(
        self, wish: FirmwareWish, image: BinaryIO, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[Task, ...]]:
        """Send the image once, and return its tasks; refuses unless its serial is `serial`."""
        with self._located():
            update = FirmwareUpdate(self._session, self._timing, serial)
            tasks = update.push(wish, image, deadline)
        return Observed(tasks, (self._steps(f"redfish firmware image {wish.component} {wish.wants}", update.steps),))

    def task(self, path: str, deadline: Deadline) -> Observed[Task]:
        """Return the progress of one of its tasks."""
        with self._located():
            answer = self._session.read(path, deadline)
            found = task_of(path, answer)
        return Observed(found, (self._evidence("redfish task", {ROOT: self._session.root, path: answer}),))

    def services(
        self, wanted: WantedServices, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[ServiceState, ...]]:
        """Return how clock, name servers and syslog target are; refuses where the machine's serial is not `serial`."""
        with self._located():
            control, answers = BmcServices(self._session, self._timing).read(wanted, deadline)
            require_machine(control.serial, serial)
        return Observed(control.states(wanted), (self._evidence("redfish services of the BMC", answers),))

    def set_services(
        self, wanted: WantedServices, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[ServiceState, ...]]:
        """Set what differs, and verify it; refuses unless the machine's serial is `serial`."""
        with self._located():
            services = BmcServices(self._session, self._timing)
            control = services.set(wanted, serial, deadline)
        return Observed(control.states(wanted), (self._steps("redfish set services of the BMC", services.steps),))

    def renewable(self, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Raise `EdgeError` where the BMC makes no certificate request; refuses unless its serial is `serial`."""
        with self._located():
            _, answers = BmcCertificate(self._session).control(serial, deadline)
            self._remember(serial)
        return Observed(None, (self._evidence("redfish certificate service", answers),))

    def request(self, wish: CertificateWish, serial: Serial, deadline: Deadline) -> Observed[str]:
        """Return a request for a new key of the BMC (PEM); refuses unless its serial is `serial`."""
        with self._located():
            certificate = BmcCertificate(self._session)
            found = certificate.request(wish, serial, deadline)
        return Observed(found, (self._steps("redfish certificate request", certificate.steps),))

    def replace(self, pem: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Give the BMC its certificate; refuses unless its serial is `serial`."""
        with self._located():
            certificate = BmcCertificate(self._session)
            certificate.replace(pem, serial, deadline)
        return Observed(None, (self._steps("redfish replace certificate", certificate.steps),))

    def look(self, user: str, deadline: Deadline) -> AccountSight:
        """Return the account of this name, and the machine's serial."""
        with self._located():
            sight = self._accounts().find(user, deadline)
            if sight.serial is not None:
                self._remember(sight.serial)
            return sight

    def change(self, account: Account, password: str, deadline: Deadline) -> Observed[bool]:
        """Request the new password; only a new login shows whether it changed."""
        self._session.redact.add([password])
        with self._located():
            accounts = self._accounts()
            taken = accounts.change(account, password, deadline)
        return Observed(taken, (self._steps(f"redfish change password of {account.path}", accounts.steps),))

    def _accounts(self) -> Accounts:
        shared = self._shared
        return Accounts(self._session, shared.access, shared.known, given=self._given, reached=self._address)

    def _trusted(self) -> BmcAddress:
        """Return the BMC with its pin, where it has one. A pin made now goes into the log and the evidence."""
        if self._shared.known is None:
            return self._address
        address, learnt = self._shared.known.trusted(self._address, self._deadline)
        if learnt:
            log.warning("%s: %s", self._host, learnt)
            self._pinned_now = (learnt,)
        return address

    def _remember(self, serial: Serial) -> None:
        """Keep a certificate that was pinned on first use as this machine's pin.

        Only for a machine that the journal has already proven to be here: else any BMC could claim any serial.
        """
        known = self._shared.known
        claimed = same(serial, self._given.machine)
        if known is not None and claimed and self._address.fingerprint and not self._given.fingerprint:
            known.keep_machine(serial, self._address.fingerprint)

    def _evidence(self, source: str, answers: Answers, problems: Sequence[str] = ()) -> Evidence:
        content = self._redact.bytes(render(answers, (*self._pinned_now, *problems)))
        return self._kept(source, answers.get(ROOT), content)

    def _steps(self, source: str, steps: Sequence[str]) -> Evidence:
        content = self._redact.bytes(json.dumps({"steps": list(steps)}).encode())
        return self._kept(source, self._session.root, content)

    def _kept(self, source: str, root: Any, content: bytes) -> Evidence:
        origin = self._shared.origin.of_peer(simulated=simulated(root))
        return Evidence(source, self._host, self._shared.clock.now(), origin, content)

    def _switch(self) -> PowerSwitch:
        stagger = self._shared.stagger
        return PowerSwitch(self._session, self._timing, stagger.permit(self._address.host) if stagger else at_once)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Make errors from inside name this BMC, without a secret that it may have repeated."""
        try:
            yield
        except ClusterctlError as error:
            error.message = self._redact(error.message)
            error.args = (error.message,)
            if not error.where.startswith(self._host):
                error.where = f"{self._host}{error.where}" if error.where.startswith("/") else error.where or self._host
            raise
