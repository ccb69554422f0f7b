"""MAAS's side of a machine that boots by itself: the node's state in MAAS decides the machine's task.

Commissioning, Testing: inspect the machine, which is then refused and switches itself off. Deploying: write the image,
boot from the disk, and report. Otherwise: boot from the disk. Other features of MAAS (erase disks, rescue mode) fail
with an error. The messages are those of `docs/how-to/pxe.md`; here MAAS is the installer.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.emulators.maas import machine_work
from clusterctl_lab.emulators.maas.lifecycle import Lifecycle
from clusterctl_lab.emulators.maas.metal import boot_files as scripts
from clusterctl_lab.emulators.maas.metal.boot_files import BootFiles
from clusterctl_lab.emulators.maas.metal.commissioning import commission, machine_of
from clusterctl_lab.emulators.maas.metal.overlay import HostSetup, overlay
from clusterctl_lab.emulators.maas.metal.report import FoundDisk, MachineReport, parse
from clusterctl_lab.emulators.maas.metal.sessions import Session, Sessions
from clusterctl_lab.emulators.maas.model import Node
from clusterctl_lab.emulators.maas.status import Status
from clusterctl_lab.hosts.cloud_config import CloudConfig
from clusterctl_lab.hosts.cloud_config import parse as parse_user_data

log = logging.getLogger(__name__)

SERVED = frozenset({Status.COMMISSIONING, Status.TESTING, Status.DEPLOYING})
NOT_REHEARSED = {
    Status.DISK_ERASING: "the lab's virtual metal is not erased",
    Status.ENTERING_RESCUE_MODE: "the lab's virtual metal has no rescue mode",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """A status and one line."""

    status: int
    text: str = "ok\n"


GONE = Reply(404, "not found\n")


class BootService:
    """`base` is the URL that machines reach it at, without a slash at its end."""

    def __init__(self, lifecycle: Lifecycle, files: BootFiles, base: str) -> None:
        self._lifecycle = lifecycle
        self._store = lifecycle.store
        self._files = files
        self._base = base
        self._sessions = Sessions()
        self._handlers: Mapping[str, Callable[[Session, str], Reply]] = {
            "report": self._reported,
            "progress": self._progress,
            "host-key": self._host_key,
            "log": self._log,
            "failed": self._failed,
            "done": self._done,
            "booted": self._booted,
        }

    def entry(self) -> str:
        """Return the script that every machine starts with."""
        return scripts.entry(self._base)

    def script(self, mac: str) -> str:
        """What the machine with this card boots now."""
        node = self._store.by_mac(mac)
        if node is None or not self._lifecycle.faults.rack_reaches:
            return scripts.local_disk("this machine is unknown")
        if node.status in NOT_REHEARSED:
            self._lifecycle.fail(node, NOT_REHEARSED[node.status], "mark_failed")
        if node.status not in SERVED or (node.status is Status.DEPLOYING and not node.netboot):
            return scripts.local_disk(f"{node.hostname} boots from its disk")
        session = self._sessions.begin(node)
        self._restart_timeout(session)
        return scripts.ephemeral(self._base, self._files, mac, session.token)

    def knows(self, token: str) -> bool:
        """Return whether the machine may receive anything."""
        return self._sessions.find(token) is not None

    def overlay(self, token: str) -> bytes | None:
        """Return the host's own files; None where the order to write was not given."""
        session = self._sessions.find(token)
        return session.overlay or None if session is not None else None

    def handle(self, token: str, name: str, text: str) -> Reply:
        """Handle a message that a machine posts."""
        session, handler = self._sessions.find(token), self._handlers.get(name)
        if session is None or handler is None:
            return GONE
        self._restart_timeout(session)
        return handler(session, text)

    def _restart_timeout(self, session: Session) -> None:
        """Restart the timeout of the operation, as MAAS does at each report."""
        self._lifecycle.watch(session.node, self._lifecycle.world.delays.netboot_timeout)

    def _reported(self, session: Session, text: str) -> Reply:
        try:
            report = parse(text)
        except ValueError as error:
            return Reply(400, f"{error}\n")
        if session.purpose is Status.DEPLOYING:
            return self._order(session, report)
        if session.node.hostname not in self._lifecycle.faults.stuck:
            work = commission(self._lifecycle, session.node, report)
            self._lifecycle.background.spawn(session.node.system_id, work)
        return Reply(409, "MAAS has seen what it needs: nothing is to be written\n")

    def _order(self, session: Session, report: MachineReport) -> Reply:
        """To write the root disk that MAAS has chosen, where exactly one disk of the machine has its serial."""
        node, target = session.node, session.node.root_disk
        disks = [disk for disk in report.disks if target is not None and disk.serial == target.serial]
        if len(disks) != 1 or node.ephemeral:
            return self._refused(session, f"{len(disks)} disks of the machine are its root disk")
        try:
            config = parse_user_data(node.user_data)
            files = overlay(config, self._setup(session, disks[0]))
        except UsageError as error:
            return self._refused(session, str(error))
        if not session.overlay:
            self._lifecycle.world.states[machine_of(self._lifecycle.world, node).name].installs += 1
        session.overlay, session.host_key = files, config.host_key_public
        self._warn(node, config)
        orders = {
            "root": disks[0].path,
            "time": int(time.time()),
            "image": f"/files/{self._files.image}",
            "sha256": self._files.sha256,
            "size": self._files.size,
            "hostname": config.hostname or node.hostname,
        }
        return Reply(200, "".join(f"{name}={value}\n" for name, value in orders.items()))

    def _setup(self, session: Session, disk: FoundDisk) -> HostSetup:
        node = session.node
        booted = f"{self._base}/t/{session.token}/booted"
        return HostSetup(node.hostname, machine_of(self._lifecycle.world, node).boot_mac, disk.serial, booted)

    @staticmethod
    def _warn(node: Node, config: CloudConfig) -> None:
        for key in config.ignored:
            log.warning("%s: the lab's hosts do not honour `%s` of the user-data", node.hostname, key)

    def _refused(self, session: Session, why: str) -> Reply:
        self._failed(session, why)
        return Reply(409, f"{why}\n")

    def _progress(self, session: Session, text: str) -> Reply:
        kind = "Installing OS" if session.purpose is Status.DEPLOYING else session.purpose.label
        self._store.log(session.node, kind, _line(text))
        return Reply(200)

    @staticmethod
    def _log(session: Session, text: str) -> Reply:
        """Record a log line; the machine's console has the same text."""
        del session, text
        return Reply(200)

    def _host_key(self, session: Session, text: str) -> Reply:
        """Accept only the host key that the user-data contains."""
        if session.host_key and text.split()[:2] != session.host_key.split()[:2]:
            return self._refused(session, "the host has another SSH key than its user-data gives it")
        return Reply(200)

    def _failed(self, session: Session, text: str) -> Reply:
        log.error("%s: %s", session.node.hostname, _line(text))
        deploys = session.purpose is Status.DEPLOYING
        if deploys:
            self._store.log(session.node, "Node installation failure", _line(text), "ERROR")
        why = machine_work.INSTALLATION_FAILED if deploys else _line(text)
        self._lifecycle.fail(session.node, why, "mark_failed")
        return Reply(200)

    def _done(self, session: Session, text: str) -> Reply:
        """Record the end of the installation. A repeated message, after a lost answer, counts once."""
        del text
        if session.purpose is not Status.DEPLOYING or not session.overlay:
            return Reply(409, "nothing was to be written\n")
        if session.node.netboot and session.node.hostname not in self._lifecycle.faults.stuck:
            machine_work.image_deployed(self._lifecycle, session.node)
        return Reply(200)

    def _booted(self, session: Session, text: str) -> Reply:
        del text
        machine_work.deployed(self._lifecycle, session.node)
        return Reply(200)


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
