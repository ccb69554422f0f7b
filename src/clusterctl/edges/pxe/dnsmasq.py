"""dnsmasq (2.86 to 2.90): its configuration, which answers known machines only and sends them iPXE, and its process."""

from __future__ import annotations

import collections
import ipaddress
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from clusterctl.edges import processes
from clusterctl.edges.pxe.accounts import InstallAccount
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.fleet.node import Mac
from clusterctl.ports import Deadline

LEASE = "12h"
UEFI_X64 = (7, 9)
UEFI_X64_HTTP = 16
BIOS = 0
"""Client architectures (RFC 4578, 2.1, and IANA's list after it)."""


@dataclass(frozen=True, slots=True)
class DnsmasqFiles:
    """The files of dnsmasq."""

    hosts: Path
    leases: Path
    tftp: Path


def configuration(settings: PxeSettings, network: ipaddress.IPv4Network, files: DnsmasqFiles) -> str:
    """Return the configuration file. It names no user: dnsmasq is started as the one that it runs as."""
    return "".join(f"{line}\n" for line in _lines(settings, network, files))


def reservation(node: str, macs: Sequence[Mac], address: str) -> str:
    """Return the line of a file in dhcp-hostsdir that has the machine answered on each of its cards."""
    return f"{','.join((*macs, *([address] if address else []), node))}\n"


def _lines(settings: PxeSettings, network: ipaddress.IPv4Network, files: DnsmasqFiles) -> Iterator[str]:
    yield "port=0"
    yield f"interface={settings.interface}"
    yield "except-interface=lo"
    yield "bind-interfaces"
    yield "log-dhcp"
    yield "log-facility=-"
    yield "pid-file="
    yield f"dhcp-hostsdir={files.hosts}"
    yield f"dhcp-leasefile={files.leases}"
    yield "dhcp-ignore=tag:!known"
    reserve = settings.dhcp is Dhcp.RESERVE
    if settings.tls is None:
        yield "enable-tftp"
        yield f"tftp-root={files.tftp}"
        yield "dhcp-userclass=set:ipxe,iPXE"
        yield "dhcp-match=set:ipxe,175"
        yield from (f"dhcp-match=set:efi64,option:client-arch,{arch}" for arch in UEFI_X64)
        yield f"dhcp-match=set:bios,option:client-arch,{BIOS}"
    yield from _reserving(settings, network) if reserve else _proxying(network)
    if settings.tls is None:  # over HTTPS each BMC names what its machine boots, and DHCP names nothing
        yield from _reserved_boots(settings) if reserve else _proxied_boots(settings)
        yield f"dhcp-boot=tag:ipxe,{settings.base}/boot.ipxe"
    if settings.announce:
        yield "enable-ra"
        yield f"ra-param={settings.interface},0,0"
        yield "dhcp-range=::,constructor:" + settings.interface + ",ra-only,64,1h"


def _reserving(settings: PxeSettings, network: ipaddress.IPv4Network) -> Iterator[str]:
    """Yield the options of the network's only DHCP server, with reserved addresses."""
    yield f"dhcp-range={network.network_address},static,{network.netmask},{LEASE}"
    yield "dhcp-authoritative"
    yield f"dhcp-option=option:router{',' + settings.gateway if settings.gateway else ''}"
    if settings.nameservers:
        yield f"dhcp-option=option:dns-server,{','.join(settings.nameservers)}"


def _reserved_boots(settings: PxeSettings) -> Iterator[str]:
    """Yield what machines boot that have their address from us."""
    yield f"dhcp-match=set:http64,option:client-arch,{UEFI_X64_HTTP}"
    yield f"dhcp-boot=tag:!ipxe,tag:efi64,{settings.loader}"
    yield "dhcp-boot=tag:!ipxe,tag:bios,undionly.kpxe"
    yield "dhcp-option-force=tag:!ipxe,tag:http64,60,HTTPClient"
    yield f"dhcp-boot=tag:!ipxe,tag:http64,{settings.base}/files/tftp/{settings.loader}"


def _proxying(network: ipaddress.IPv4Network) -> Iterator[str]:
    """Yield the options of a proxyDHCP server: another server assigns addresses (PXE 2.1, 2.2: ports 67 and 4011)."""
    yield f"dhcp-range={network.network_address},proxy,{network.netmask}"


def _proxied_boots(settings: PxeSettings) -> Iterator[str]:
    """Yield what machines boot that have their address from another server."""
    yield f'pxe-service=tag:!ipxe,X86-64_EFI,"iPXE",{settings.loader}'
    yield 'pxe-service=tag:!ipxe,X86PC,"iPXE",undionly.kpxe'
    yield f'pxe-service=tag:ipxe,X86-64_EFI,"clusterctl",{settings.base}/boot.ipxe'
    yield f'pxe-service=tag:ipxe,X86PC,"clusterctl",{settings.base}/boot.ipxe'


PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = {"PATH": PATH, "LC_ALL": "C"}
START_S = 60.0
STOP_S = 10.0
ASK_S = 30.0
"""Seconds after a sign of life before dnsmasq is asked for another one."""
HANG_S = 60.0
"""Seconds without a sign of life, after it was asked for one, after which dnsmasq hangs."""
LAST_LINES = 40
_STARTED = "started, "
_BAD_SIGNS = ("cannot", "failed to", "unknown", "not accessible", "inaccessible", "in use")
"""Parts of the log lines that give the reason for its end (src/log.c, die())."""
_LOG = logging.getLogger(__name__)


class Dnsmasq:
    """Runs until `close`. Raises `EnvironmentBrokenError` with its last message where it does not start.

    The thread that starts dnsmasq reads its log until it ends: the kernel kills dnsmasq when that thread ends, and so
    when this process ends. `monotonic` returns seconds.
    """

    def __init__(
        self,
        configuration: Path,
        account: InstallAccount | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._configuration = configuration
        self._account = account
        self._monotonic = monotonic
        self._line_count = 0
        self._lines_before = 0
        self._asked_at = -ASK_S
        self._lines: collections.deque[str] = collections.deque(maxlen=LAST_LINES)
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        test(configuration)
        self._thread = threading.Thread(target=self._live, name="pxe-dnsmasq", daemon=True)
        self._thread.start()
        self._ready.wait(START_S)
        if not self.alive or not self._has_started:
            self.close()
            raise self.trouble("dnsmasq does not start")

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None else 0

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def hangs(self) -> bool:
        """Return whether it has logged nothing for `HANG_S` since it was asked to; ask it every `ASK_S`.

        It reads its hosts again at SIGHUP and logs each file (dnsmasq(8)): there must be one.
        """
        now = self._monotonic()
        answered = self._line_count > self._lines_before
        if not answered:
            return now - self._asked_at >= HANG_S
        if now - self._asked_at >= ASK_S:
            self._lines_before, self._asked_at = self._line_count, now
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGHUP)
        return False

    @property
    def ending(self) -> str:
        """Return how it ended, or that it hangs."""
        if self._process is None:
            return "dnsmasq has not started"
        status = self._process.poll()
        return f"dnsmasq {processes.ending(status)}" if status is not None else "dnsmasq hangs"

    @property
    def _has_started(self) -> bool:
        return any(_STARTED in line for line in self._lines)

    def trouble(self, what: str) -> EnvironmentBrokenError:
        """Return the error with dnsmasq's last message."""
        messages = [line.partition(": ")[2] for line in self._lines if any(sign in line.lower() for sign in _BAD_SIGNS)]
        last = messages[0] if messages else (self._lines[-1] if self._lines else "it printed nothing")
        return EnvironmentBrokenError(
            f"{what}: {last}",
            where=str(self._configuration),
            remedy="end the other DHCP or TFTP server on that interface, then run it again",
        )

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            processes.end(self._process, STOP_S, terminate=True)
        self._thread.join(STOP_S)

    def _live(self) -> None:
        try:
            argv = command(self._configuration, self._account)
            self._process = processes.start(argv, _ENVIRONMENT, missing="apt-get install util-linux", errors=True)
            for line in self._process.stderr or ():
                self._lines.append(line.decode(errors="replace").strip())
                self._line_count += 1
                _LOG.debug("%s", self._lines[-1])
                if self._has_started:
                    self._ready.set()
            self._process.wait()
        except EnvironmentBrokenError as error:
            self._lines.append(str(error))
        finally:
            self._ready.set()


CAPABILITIES = ("net_admin", "net_bind_service", "net_raw")
"""What dnsmasq needs (dnsmasq(8), --user): ARP entries for clients, ports 67 and 69, and raw packets for a ping."""


def command(configuration: Path, account: InstallAccount | None) -> tuple[str, ...]:
    """Return the command that starts dnsmasq (setpriv(1)), as its account from its first instruction where it has one.

    dnsmasq's own way, from root by its option `user`, would keep CAP_SETUID until then, and lose the kernel's signal at
    the end of the run, which a process that changes its user forgets (PR_SET_PDEATHSIG in prctl(2)).
    """
    options: tuple[str, ...] = ()  # a user without root may have given dnsmasq's file its capabilities (setcap(8))
    if account is not None:
        kept = ",".join(f"+{name}" for name in CAPABILITIES)
        options += ("--no-new-privs", "--reuid", str(account.user), "--regid", str(account.group), "--clear-groups")
        options += (f"--inh-caps=-all,{kept}", f"--ambient-caps=-all,{kept}", f"--bounding-set=-all,{kept}")
    return processes.killed_with_us(tool(), "--keep-in-foreground", f"--conf-file={configuration}", options=options)


def tool() -> str:
    """Return the path of dnsmasq. Raises `EnvironmentBrokenError` with the package to install."""
    found = shutil.which("dnsmasq", path=PATH)
    if found is None:
        raise EnvironmentBrokenError("dnsmasq is missing", where="dnsmasq", remedy="apt-get install dnsmasq-base")
    return found


def test(configuration: Path) -> None:
    """Run `dnsmasq --test`. Raises `EnvironmentBrokenError` with its message where the file is invalid."""
    argv = (tool(), "--test", f"--conf-file={configuration}")
    ran = processes.run(argv, Deadline.after(START_S), processes.Surroundings(variables=_ENVIRONMENT))
    if ran.exit_status != 0:
        raise EnvironmentBrokenError(
            ran.stderr.strip().removeprefix("dnsmasq: "),
            where=str(configuration),
            remedy="correct provisioning in site.yml: interface, address, gateway, nameservers",
        )


def reread(pid: int, configuration: Path) -> None:
    """Have the dnsmasq of that configuration read its hosts again (SIGHUP), if it still runs."""
    try:
        if str(configuration).encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(pid, signal.SIGHUP)
    except (OSError, ValueError):
        return
