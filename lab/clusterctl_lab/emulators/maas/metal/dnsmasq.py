"""DHCP and TFTP for the lab's machines, each with its own address: dnsmasq as the daemon's child (dnsmasq(8))."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.maas.metal.boot_files import LOADER
from clusterctl_lab.hosts.command import environment
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine

log = logging.getLogger(__name__)

UEFI_X64 = (7, 9)
"""Client architectures (RFC 4578, 2.1, and IANA's list after it)."""
STARTED = "started, "
START_SECONDS = 60.0
END_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Served:
    """The interface it listens on, the folder of iPXE, and the URL of iPXE's first script."""

    interface: str
    tftp: Path
    script_url: str


def configuration(layout: Layout, machines: Iterable[Machine], served: Served) -> str:
    """Return the configuration, one option per line. It stays root: a process that changes its user would no longer be
    killed with its parent.
    """
    return "".join(f"{line}\n" for line in _lines(layout, machines, served))


def _lines(layout: Layout, machines: Iterable[Machine], served: Served) -> Iterator[str]:
    yield from ("port=0", f"interface={served.interface}", "except-interface=lo", "bind-interfaces")
    yield from ("log-dhcp", "log-facility=-", "pid-file=", "leasefile-ro", "user=root", "group=root")
    yield f"dhcp-range={layout.network.network_address},static,{layout.network.netmask},12h"
    yield "dhcp-authoritative"
    yield "dhcp-option=option:router"
    yield from (f"dhcp-host={machine.boot_mac},{machine.address},{machine.name}" for machine in machines)
    yield from ("enable-tftp", f"tftp-root={served.tftp}")
    yield from ("dhcp-userclass=set:ipxe,iPXE", "dhcp-match=set:ipxe,175")
    yield from (f"dhcp-match=set:efi64,option:client-arch,{arch}" for arch in UEFI_X64)
    yield f"dhcp-boot=tag:!ipxe,tag:efi64,{LOADER}"
    yield f"dhcp-boot=tag:ipxe,{served.script_url}"
    yield from ("enable-ra", f"ra-param={served.interface},0,0")  # Debian 12's iPXE waits 16 s for one
    yield f"dhcp-range=::,constructor:{served.interface},ra-only,64,1h"


class Dnsmasq:
    """Runs from `start` until `close`, or the daemon's end."""

    def __init__(self, lab: str) -> None:
        self._lab = lab
        self._process: asyncio.subprocess.Process | None = None
        self._listening: asyncio.Task[None] | None = None

    async def start(self, configuration_file: Path) -> None:
        """Return when it answers. Raises `EnvironmentBrokenError` with its last output where it does not start."""
        self._process = await asyncio.create_subprocess_exec(
            *("setpriv", "--pdeathsig", "KILL", "--"),
            *("dnsmasq", "--keep-in-foreground", f"--conf-file={configuration_file}"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            env=environment(self._lab),
        )
        messages: list[str] = []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_SECONDS):
                async for line in self._lines():
                    messages.append(line)
                    if STARTED in line:
                        self._listening = asyncio.create_task(self._listen(), name="dnsmasq")
                        return
        await self.close()
        raise EnvironmentBrokenError(
            f"dnsmasq does not start: {messages[-1] if messages else 'it printed nothing'}",
            where=str(configuration_file),
            remedy="End what else serves DHCP or TFTP on that interface, then start the lab again.",
        )

    async def close(self) -> None:
        if self._process is None:
            return
        if self._listening is not None:
            self._listening.cancel()
        if self._process.returncode is None:
            self._process.terminate()
            try:
                async with asyncio.timeout(END_SECONDS):
                    await self._process.wait()
            except TimeoutError:
                self._process.kill()
        await self._process.wait()

    async def _listen(self) -> None:
        async for line in self._lines():
            log.debug("%s", line)
        log.error("dnsmasq has ended: the lab's machines boot nothing from the network any more")

    async def _lines(self) -> AsyncIterator[str]:
        """Yield its output until its end; an error message starts with an empty line."""
        if self._process is None or self._process.stderr is None:
            return
        async for line in self._process.stderr:
            if words := line.decode(errors="replace").strip():
                yield words
