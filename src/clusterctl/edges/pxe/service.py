"""DHCP, TFTP and HTTP of one site, for one process at a time: a run while it lasts, or `clusterctl pxe serve`.

Both servers are processes of their own: dnsmasq, and the installer service (`service_process`).
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from clusterctl.edges.disk import disk_explained, write_whole
from clusterctl.edges.pxe.accounts import DHCP_USER, HTTP_USER, account, diagnose, require_readable
from clusterctl.edges.pxe.addresses import listen, network_of
from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.channel import Setup
from clusterctl.edges.pxe.dhcp_folder import DhcpFolder
from clusterctl.edges.pxe.dnsmasq import Dnsmasq, DnsmasqFiles, configuration, reread, reservation
from clusterctl.edges.pxe.service_process import ServiceProcess
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import EnvironmentBrokenError, InstallerUnavailableError
from clusterctl.ports import Clock, InstallTarget

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Holder:
    """The serving process: its URL, its pid, and the pid of its dnsmasq."""

    base: str
    pid: int
    dnsmasq: int


class PxeService:
    """Serves the machines of one site from `ensure` until `close`, unless another process does. Thread-safe.

    `folder` is the site's `state/pxe`; `probe` the text of probe.sh.
    """

    def __init__(
        self, settings: PxeSettings, folder: Path, attempts: AttemptStore, clock: Clock, probe: Callable[[], str]
    ) -> None:
        self._settings = settings
        self._folder = folder
        self._attempts = attempts
        self._clock = clock
        self._probe = probe
        self._guard = threading.Lock()
        self._lock: int | None = None
        self._service: ServiceProcess | None = None
        self._dnsmasq: Dnsmasq | None = None
        self._since: datetime | None = None

    def ensure(self) -> None:
        with self._guard:
            if self._lock is None and not self._take():
                self._check_holder()
                return
            if self._service is None or self._dnsmasq is None:
                self._start()
                return
            if not self._dnsmasq.alive or (self._has_hosts and self._dnsmasq.hangs()):
                self._replace(self._dnsmasq)
            self._service.check()

    def serve(self) -> None:
        """Serve in this process. Raises `EnvironmentBrokenError` where another process serves."""
        with self._guard:
            taken = self._lock is not None or self._take()
        if not taken:
            holder = self._holder()
            raise EnvironmentBrokenError(
                f"process {holder.pid if holder else '?'} serves this site already",
                where=str(self._file),
                remedy="end that process, or use its service",
            )
        self.ensure()

    @property
    def holder(self) -> Holder | None:
        """Return the serving process; None where no process serves."""
        with self._guard:
            if self._lock is not None:
                return self._holder()
            if not self._file.exists() or self._take():
                self._release()
                return None
        return self._holder()

    @property
    def serving_since(self) -> datetime | None:
        """Return when HTTP or dnsmasq was started last; None where another process serves."""
        return self._since

    def answer(self, target: InstallTarget) -> None:
        """Add the machine, with all its cards, to those that DHCP answers."""
        address = target.address if self._settings.dhcp is Dhcp.RESERVE else ""
        line = reservation(target.name, target.macs, address).encode()
        file = self._hosts / target.name
        with disk_explained("cannot be written", file):
            self._make(self._hosts)
            if file.exists() and file.read_bytes() == line:
                return
            write_whole(file, line, mode=0o600, over=True)
        self._folder_of_dhcp.add_host(target.name, line)
        holder = self._holder()
        if holder is not None:
            reread(holder.dnsmasq, self._folder_of_dhcp.configuration)

    def close(self) -> None:
        with self._guard:
            if self._service is not None:
                self._service.close()
            if self._dnsmasq is not None:
                self._dnsmasq.close()
            if self._lock is not None and self._dnsmasq is not None:
                self._folder_of_dhcp.remove()
            self._service = self._dnsmasq = None
            self._release()

    # --- lock and serving process -------------------------------------------------------------------------------------

    def _take(self) -> bool:
        """Take the lock; the kernel releases it when this process ends."""
        self._make(self._folder)
        with disk_explained("cannot be locked", self._file):
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._lock = descriptor
        return True

    def _release(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _check_holder(self) -> None:
        """Raise where the process that serves does not serve at the URL of this site."""
        holder = self._holder()
        if holder is not None and holder.base != self._settings.base:
            raise EnvironmentBrokenError(
                f"process {holder.pid} serves this site at {holder.base}, and site.yml has {self._settings.base}",
                where=str(self._file),
                remedy="restart clusterctl pxe serve",
            )

    def _holder(self) -> Holder | None:
        try:
            return Holder(**json.loads(self._state_file.read_bytes()))
        except (OSError, ValueError, TypeError):
            return None  # it has just started and has not written the file

    def _start(self) -> None:
        network = network_of(self._settings.interface, self._settings.address)
        diagnosis = diagnose()
        if diagnosis.health is not Health.OK:
            _LOG.warning("PXE: %s: %s", diagnosis.found, diagnosis.remedy)
        service = self._http()
        try:
            for path in (self._dhcp, self._hosts):
                self._make(path)
            folder = self._folder_of_dhcp
            folder.prepare(self._hosts, self._settings.boot_folder / "tftp")
            files = DnsmasqFiles(folder.hosts, folder.leases, folder.tftp)
            folder.write_configuration(configuration(self._settings, network, files))
            self._dnsmasq = Dnsmasq(folder.configuration, folder.account)
        except BaseException:
            service.close()
            raise
        self._service = service
        self._record(self._dnsmasq)

    def _http(self) -> ServiceProcess:
        boot_folder = self._settings.boot_folder
        if not boot_folder.is_dir():
            raise EnvironmentBrokenError(
                "there is no such folder", where=str(boot_folder), remedy="run clusterctl image build"
            )
        own, tls = account(HTTP_USER), self._settings.tls
        require_readable(boot_folder, own)
        setup = Setup(
            self._settings.base,
            str(boot_folder),
            self._probe(),
            self._settings.downloads_at_once,
            own.user if own is not None else None,
            own.group if own is not None else None,
            *((tls.certificate, tls.private_key) if tls is not None else ()),
        )
        handlers = BootHandlers(self._settings.base, self._attempts, self._clock)
        listener = listen(self._settings.address, self._settings.port)
        return ServiceProcess(setup, listener, handlers.answer, self._begun)

    def _begun(self) -> None:
        self._since = self._clock.now()

    @property
    def _has_hosts(self) -> bool:
        return any(self._folder_of_dhcp.hosts.glob("*"))

    def _replace(self, lost: Dnsmasq) -> None:
        """Start dnsmasq again; one that hangs is killed.

        Raises `InstallerUnavailableError` where it does not start: machines wait meanwhile.
        """
        _LOG.warning("installer service lost: %s; it is started again", lost.ending)
        folder = self._folder_of_dhcp
        lost.close()
        try:
            self._dnsmasq = Dnsmasq(folder.configuration, folder.account)
        except EnvironmentBrokenError as error:
            raise InstallerUnavailableError(
                f"installer service lost: {error.message}", where=error.where, remedy=error.remedy
            ) from None
        self._begun()
        self._record(self._dnsmasq)

    def _record(self, dnsmasq: Dnsmasq) -> None:
        """Record which process serves, for the others."""
        holder = Holder(self._settings.base, os.getpid(), dnsmasq.pid)
        write_whole(self._state_file, json.dumps(asdict(holder)).encode(), mode=0o600, over=True)

    # --- files --------------------------------------------------------------------------------------------------------

    @property
    def _file(self) -> Path:
        return self._folder / "service.lock"

    @property
    def _state_file(self) -> Path:
        return self._folder / "service.json"

    @property
    def _dhcp(self) -> Path:
        return self._folder / "dnsmasq"

    @property
    def _hosts(self) -> Path:
        return self._dhcp / "hosts"

    @property
    def _folder_of_dhcp(self) -> DhcpFolder:
        return DhcpFolder(self._dhcp, account(DHCP_USER))

    def _make(self, folder: Path) -> None:
        with disk_explained("cannot be made", folder):
            for path in (self._folder, self._dhcp, folder):
                path.mkdir(mode=0o700, exist_ok=True)
