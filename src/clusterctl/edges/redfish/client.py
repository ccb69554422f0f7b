"""BMCs over Redfish: meets `Bmcs` and `BmcClient` of the ports."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO, Self

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.accounts import AccountBook
from clusterctl.edges.redfish.bios import BiosDesk
from clusterctl.edges.redfish.boot import BootMenu
from clusterctl.edges.redfish.login import Rejections
from clusterctl.edges.redfish.logs import LogClearer
from clusterctl.edges.redfish.means import Means, opened
from clusterctl.edges.redfish.media import MediaTray
from clusterctl.edges.redfish.pins import KnownBmcs
from clusterctl.edges.redfish.power import AcCycler, PowerOnStagger, PowerSwitch, at_once, power_of
from clusterctl.edges.redfish.session import Session, Timing
from clusterctl.edges.redfish.update import Pusher
from clusterctl.fleet.baseline import FirmwareWish, Value
from clusterctl.fleet.bios import Bios
from clusterctl.fleet.bmc_accounts import Account, AccountSight, same
from clusterctl.fleet.boot import BootOnce
from clusterctl.fleet.errors import ClusterctlError, EdgeError
from clusterctl.fleet.finding import Evidence, Observed, Origin
from clusterctl.fleet.log_archive import LogArchive
from clusterctl.fleet.node import Inventory, Serial
from clusterctl.fleet.updates import Task, Updates
from clusterctl.formats.redfish.bios import read_bios, read_bios_thoroughly
from clusterctl.formats.redfish.evidence import fits, render, simulated
from clusterctl.formats.redfish.inventory import read_inventory
from clusterctl.formats.redfish.logs import read_logs
from clusterctl.formats.redfish.system import read_post
from clusterctl.formats.redfish.tree import ROOT, Answers
from clusterctl.formats.redfish.updates import read_updates, task_of
from clusterctl.ports import BmcAddress, BmcClient, Clock, Deadline, LogEntry, Post, Power
from clusterctl.ports.accounts import AccountClient

log = logging.getLogger(__name__)


class RedfishBmcs:
    """Opens BMC sessions. `known` has the pins of those that were believed on first use; `turns` staggers switching on;
    `timing` is for tests, which have no time to wait. One for a whole run: it knows which BMCs have rejected us. With
    `read_only` every change is refused before it is sent.
    """

    def __init__(
        self,
        clock: Clock,
        timing: Timing | None = None,
        *,
        known: KnownBmcs | None = None,
        turns: PowerOnStagger | None = None,
        read_only: bool = False,
        origin: Origin = Origin.REAL,
    ) -> None:
        self._means = Means(clock, timing or Timing(), known, turns, Rejections(), read_only, origin)

    def open(self, address: BmcAddress, deadline: Deadline) -> BmcClient:
        """A client that logs in when its `with` block begins, within `deadline`."""
        return _RedfishClient(address, deadline, self._means)

    def open_accounts(self, address: BmcAddress, deadline: Deadline) -> AccountClient:
        """The same, for its accounts."""
        return _RedfishClient(address, deadline, self._means, for_accounts=True)


class _RedfishClient:
    def __init__(self, address: BmcAddress, deadline: Deadline, means: Means, *, for_accounts: bool = False) -> None:
        self._host = address.host if address.port == 443 else f"{address.host}:{address.port}"
        self._deadline = deadline
        self._means = means
        self._address = address
        self._given = address
        self._for_accounts = for_accounts
        self._learnt: tuple[str, ...] = ()
        self.took_former = False
        self._redact = Redaction([address.password, *(address.former or ())[1:]])
        self._session: Session

    def __enter__(self) -> Self:
        with self._located():
            self._address = self._trusted()
            self._session, self.took_former = opened(
                self._address, self._deadline, self._means, for_accounts=self._for_accounts
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
            control = switch.look(deadline)
            self._remember(control.serial)
            found = power_of(control)
        return Observed(found, (self._evidence("redfish power", switch.answers),))

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Bring the machine to `power` and read it back; refuses unless its serial is `serial`."""
        with self._located():
            switch = self._switch()
            switch.switch(power, serial, deadline)
            self._remember(serial)
        return Observed(power, (self._steps(f"redfish set power {power.value}", switch.steps),))

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """Off, seen off, and on again; refuses unless its serial is `serial`."""
        with self._located():
            switch = self._switch()
            switch.cycle(serial, deadline)
            self._remember(serial)
        return Observed(Power.ON, (self._steps("redfish cycle power", switch.steps),))

    def ac_cycle(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        """All power off the machine and its BMC, and on again; refuses unless its serial is `serial`."""
        with self._located():
            cycler = AcCycler(self._session, self._means.timing, self._switch())
            cycler.cycle(serial, deadline)
        return Observed(Power.ON, (self._steps("redfish AC cycle", cycler.steps),))

    def boot_once(self, wish: BootOnce, serial: Serial, deadline: Deadline) -> Observed[BootOnce]:
        """Have the next boot be the wished one, and read it back; refuses unless its serial is `serial`."""
        with self._located():
            menu = BootMenu(self._session, self._means.timing, serial)
            menu.once(wish, deadline)
            self._remember(serial)
        return Observed(wish, (self._steps(f"redfish boot once from {wish}", menu.steps),))

    def boot_order_to_disk(self, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Have its disks first in the boot order, and read it back; refuses unless its serial is `serial`."""
        with self._located():
            menu = BootMenu(self._session, self._means.timing, serial)
            menu.disk_first(deadline)
        return Observed(None, (self._steps("redfish boot order to disk", menu.steps),))

    def insert_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[str]:
        """Put the image into a free virtual drive, and read it back; refuses unless its serial is `serial`."""
        with self._located():
            tray = MediaTray(self._session, self._means.timing, serial)
            tray.insert(uri, deadline)
        return Observed(uri, (self._steps(f"redfish insert {uri}", tray.steps),))

    def eject_media(self, uri: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        """Take the image out of every virtual drive, and read it back; refuses unless its serial is `serial`."""
        with self._located():
            tray = MediaTray(self._session, self._means.timing, serial)
            tray.eject(uri, deadline)
        return Observed(None, (self._steps(f"redfish eject {uri}", tray.steps),))

    def post(self, deadline: Deadline) -> Observed[Post]:
        """How far the machine's self-test is."""
        with self._located():
            found, answers = self._session.walk(read_post, deadline)
        return Observed(found, (self._evidence("redfish self-test", answers),))

    def event_log(self, deadline: Deadline) -> Observed[tuple[LogEntry, ...]]:
        """The newest entries of all hardware logs, newest first."""
        with self._located():
            entries, answers = self._session.walk(read_logs, deadline)
        return Observed(entries, (self._evidence("redfish event log", answers),))

    def archive_log(self, deadline: Deadline) -> Observed[LogArchive]:
        """All that stands in the event logs that can be cleared."""
        with self._located():
            logs, answers = LogClearer(self._session, self._means.timing).read(deadline)
            if not fits(answers):
                remedy = "export and clear it by hand at the BMC"
                raise EdgeError("the event log is longer than what is kept of one answer", remedy=remedy)
        return Observed(logs.archive, (self._evidence("redfish event log, whole", answers),))

    def clear_log(self, archive: LogArchive, deadline: Deadline) -> Observed[None]:
        """Empty the event logs of what `archive` has; refuses where they have more, or are another machine's."""
        with self._located():
            clearer = LogClearer(self._session, self._means.timing)
            clearer.clear(archive, deadline)
        return Observed(None, (self._steps("redfish clear event log", clearer.steps),))

    def bios(self, deadline: Deadline, *, thorough: bool = False) -> Observed[Bios]:
        """The BIOS attributes that are and that wait; `thorough`: with what the registry says of them."""
        with self._located():
            control, answers = self._session.walk(read_bios_thoroughly if thorough else read_bios, deadline)
        return Observed(control.bios, (self._evidence("redfish BIOS settings", answers),))

    def set_bios(self, wanted: Mapping[str, Value], serial: Serial, deadline: Deadline) -> Observed[Bios]:
        """Have the next boot bring these, and read them back; refuses unless its serial is `serial`."""
        with self._located():
            desk = BiosDesk(self._session, self._means.timing, serial)
            control = desk.prepare(wanted, deadline)
        return Observed(control.bios, (self._steps("redfish set BIOS attributes", desk.steps),))

    def updates(self, deadline: Deadline) -> Observed[Updates]:
        """The firmware that runs, and the BMC's tasks."""
        with self._located():
            control, answers = self._session.walk(read_updates, deadline)
        return Observed(control.updates, (self._evidence("redfish firmware and tasks", answers),))

    def push_firmware(
        self, wish: FirmwareWish, image: BinaryIO, serial: Serial, deadline: Deadline
    ) -> Observed[tuple[Task, ...]]:
        """Give it the image, once; the tasks that it became. Refuses unless its serial is `serial`."""
        with self._located():
            pusher = Pusher(self._session, self._means.timing, serial)
            tasks = pusher.push(wish, image, deadline)
        return Observed(tasks, (self._steps(f"redfish firmware image {wish.component} {wish.wants}", pusher.steps),))

    def task(self, path: str, deadline: Deadline) -> Observed[Task]:
        """How far one of its tasks is."""
        with self._located():
            answer = self._session.read(path, deadline)
            found = task_of(path, answer)
        return Observed(found, (self._evidence("redfish task", {ROOT: self._session.root, path: answer}),))

    def look(self, user: str, deadline: Deadline) -> AccountSight:
        """The account of this name, and whose machine it is."""
        with self._located():
            sight = self._book().look(user, deadline)
            if sight.serial is not None:
                self._remember(sight.serial)
            return sight

    def change(self, account: Account, password: str, deadline: Deadline) -> Observed[bool]:
        """Ask for the new password; only a new login tells whether it came about."""
        self._session.redact.add([password])
        with self._located():
            book = self._book()
            taken = book.change(account, password, deadline)
        return Observed(taken, (self._steps(f"redfish change password of {account.path}", book.steps),))

    def _book(self) -> AccountBook:
        return AccountBook(self._session, self._means, given=self._given, reached=self._address)

    def _trusted(self) -> BmcAddress:
        """The BMC with its pin, where it has one; that it was believed on first use goes into the log and evidence."""
        if self._means.known is None:
            return self._address
        address, learnt = self._means.known.trusted(self._address, self._deadline)
        if learnt:
            log.warning("%s: %s", self._host, learnt)
            self._learnt = (learnt,)
        return address

    def _remember(self, serial: Serial) -> None:
        """Where the certificate was believed on first use: it is this machine's from now on.

        Only of a machine that the journal has already proven to be here: else whoever answers could claim any serial.
        """
        known = self._means.known
        claimed = same(serial, self._given.machine)
        if known is not None and claimed and self._address.fingerprint and not self._given.fingerprint:
            known.keep_machine(serial, self._address.fingerprint)

    def _evidence(self, source: str, answers: Answers, problems: Sequence[str] = ()) -> Evidence:
        content = self._redact.bytes(render(answers, (*self._learnt, *problems)))
        return self._kept(source, answers.get(ROOT), content)

    def _steps(self, source: str, steps: Sequence[str]) -> Evidence:
        content = self._redact.bytes(json.dumps({"steps": list(steps)}).encode())
        return self._kept(source, self._session.root, content)

    def _kept(self, source: str, root: Any, content: bytes) -> Evidence:
        origin = self._means.origin.of_peer(simulated=simulated(root))
        return Evidence(source, self._host, self._means.clock.now(), origin, content)

    def _switch(self) -> PowerSwitch:
        turns = self._means.turns
        return PowerSwitch(self._session, self._means.timing, turns.turn(self._address.host) if turns else at_once)

    @contextmanager
    def _located(self) -> Iterator[None]:
        """Errors from inside name this BMC, and repeat no secret that it may have echoed."""
        try:
            yield
        except ClusterctlError as error:
            error.message = self._redact(error.message)
            error.args = (error.message,)
            if not error.where.startswith(self._host):
                error.where = f"{self._host}{error.where}" if error.where.startswith("/") else error.where or self._host
            raise
