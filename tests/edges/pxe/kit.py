"""One armed machine, the installer service on loopback, and the messages of a machine."""

from __future__ import annotations

import asyncio
import itertools
import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import requests

from clusterctl.edges.pxe import web
from clusterctl.edges.pxe.addresses import listen
from clusterctl.edges.pxe.attempt import AttemptState, BootFiles, InstallAttempt, InstallPayload
from clusterctl.edges.pxe.attempt_store import AttemptStore, new_token
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.channel import Setup
from clusterctl.edges.pxe.exchange import Exchange, LostError
from clusterctl.edges.pxe.server import ConnectionLimits
from clusterctl.fleet.hardware.disk_contract import DiskContract
from clusterctl.fleet.node import Mac, Serial

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
MAC = Mac("02:00:00:00:00:01")
SERIAL = Serial("SN0001")
ROOT_DISK = "S4NENF0K100001"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEuwSyBSkhcJCEqGmX9pjqY0rI9cCNEuwQzN4YmLkvCe"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1u0WZRaHYbFz3sUXyRF7LYWEFuDqgk0z2ZzZ0b3qTg"
HELLO = "#!/bin/sh\necho serial=SN0001\n"


class TickingClock:
    """A second later at each look."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def now(self) -> datetime:
        return NOON + timedelta(seconds=next(self._seconds))


def armed(node: str = "node001", **changes: object) -> InstallAttempt:
    message: dict[str, object] = {
        "node": node,
        "state": AttemptState.ARMED,
        "serial": SERIAL,
        "macs": (MAC,),
        "disk": DiskContract(ROOT_DISK),
        "id": "0a1b2c3d",
        "token": new_token(),
        "method": "image",
        "boot": BootFiles("deployer/d1/vmlinuz", "deployer/d1/initrd", "clusterctl.token=T BOOTIF={bootif} quiet"),
        "payload": InstallPayload("images/debian-12/d1/rootfs.tar.zst", "ab" * 32, 12),
        "documents": ("overlay.tar",),
        "at": NOON,
    }
    return InstallAttempt(**(message | changes))  # type: ignore[arg-type]


def report(serial: str = SERIAL, disks: tuple[str, ...] = (ROOT_DISK, "DATA1")) -> str:
    lines = [f"serial={serial}", "uuid=00000000-0000-0000-0000-000000000001", f"mac={MAC}"]
    lines += [
        f"disk=/dev/nvme{index}n1\t{disk}\teui.{index:016x}\t480000000000\tQEMU NVMe Ctrl\t{index:064x}"
        for index, disk in enumerate(disks)
    ]
    return "\n".join([*lines, "clock=1800000000"]) + "\n"


@dataclass(frozen=True)
class ServedAttempts:
    """The service as a machine sees it."""

    attempts: AttemptStore
    attempt: InstallAttempt
    base: str
    boot_folder: Path

    def get(self, path: str, **how: object) -> requests.Response:
        return requests.get(self.base + path, timeout=600, **how)  # type: ignore[arg-type]

    def boot(self, mac: str = MAC, serial: str = SERIAL) -> str:
        """The script that a machine ends up with: it follows the one that any card gets."""
        script = self.get(f"/boot/{mac}.ipxe?serial={serial}").text
        onward = re.fullmatch(r"#!ipxe\nchain --autofree http://[^/]+(/start/.*)\n", script)
        return self.get(onward[1]).text if onward else script

    def post(self, name: str, body: str | bytes = "", token: str = "") -> requests.Response:
        url = f"{self.base}/t/{token or self.attempt.token}/{name}"
        return requests.post(url, data=body.encode() if isinstance(body, str) else body, timeout=600)

    def another(self, number: int) -> InstallAttempt:
        """Arm another machine."""
        mac, serial = Mac(f"02:00:00:00:01:{number:02x}"), Serial(f"SN1{number:03}")
        attempt = armed(f"node1{number:02}", id=f"{number:08x}", macs=(mac,), serial=serial)
        return self.attempts.put(attempt, {"overlay.tar": b"a tar"})

    @property
    def now(self) -> InstallAttempt:
        found = self.attempts.find(self.attempt.node)
        assert found is not None
        return found


USUAL = ConnectionLimits()


@contextmanager
def serving(folder: Path, downloads_at_once: int = 4, limits: ConnectionLimits = USUAL) -> Iterator[ServedAttempts]:
    boot_folder = folder / "boot"
    boot_folder.mkdir()
    attempts = AttemptStore(folder / "pxe" / "machines")
    attempt = attempts.put(armed(), {"overlay.tar": b"a tar"})
    handlers = BootHandlers("http://192.0.2.1:8080", attempts, TickingClock())
    setup = Setup("http://192.0.2.1:8080", str(boot_folder), HELLO, downloads_at_once)
    with in_threads(setup, handlers, limits) as port:
        yield ServedAttempts(attempts, attempt, f"http://127.0.0.1:{port}", boot_folder)


@contextmanager
def in_threads(setup: Setup, handlers: BootHandlers, limits: ConnectionLimits, port: int = 0) -> Iterator[int]:
    """The run and its service, each in a thread of the tests instead of a process, over the same channel; the port."""
    listener, (ours, theirs) = listen("127.0.0.1", port), socket.socketpair()
    ready = threading.Event()

    def run() -> None:
        with suppress(LostError):
            Exchange(ours, handlers.answer).run(setup, ready.set)

    def service() -> None:
        received = web.received_setup(theirs)
        asyncio.run(web.serve(listener, theirs, received, limits, web.context_of(received)))

    with ThreadPoolExecutor(2) as pool, listener:
        both = [pool.submit(run), pool.submit(service)]
        assert ready.wait(600)
        try:
            yield listener.getsockname()[1]
        finally:
            ours.shutdown(socket.SHUT_RDWR)
            for side in both:
                side.result(60)
            ours.close()
