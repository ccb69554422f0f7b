"""Real firmware boots the deployer over HTTPS, and it installs over HTTPS; with another authority nothing boots."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from clusterctl.edges.clock import CLOCK
from clusterctl.edges.os_images import BootFolder, OsImage
from clusterctl.edges.os_images.initramfs import script
from clusterctl.edges.pxe.attempt import AttemptState, InstallAttempt
from clusterctl.edges.pxe.attempt_store import AttemptStore, start_ticket
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.channel import Setup
from clusterctl.edges.pxe.install_profiles import AttemptFactory, ImageProfile
from clusterctl.edges.pxe.server import ConnectionLimits
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.fleet.node import Mac, Serial
from clusterctl_lab.metal.efi_variables import OPTION, signature_lists
from clusterctl_lab.metal.os_image import ensure_os_image
from tests.edges.os_images.machine_kit import GATEWAY, MAC, OVMF, Drive, VirtualMachine
from tests.edges.pxe.kit import in_threads
from tests.edges.pxe.test_installer import TARGET
from tests.edges.pxe.tls_kit import BootAuthority, site_files
from tests.ports import reserve_port

BOOT = Path("/var/cache/clusterctl-lab/boot")
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "zstd")
missing = [tool for tool in TOOLS if shutil.which(tool) is None] + [str(OVMF)] * (not OVMF.is_dir())
pytestmark = [
    pytest.mark.lab,
    pytest.mark.soak,
    pytest.mark.skipif(os.geteuid() != 0 or bool(missing), reason=f"needs root and {missing or 'nothing else'}"),
    pytest.mark.timeout(7200),
]
SERIAL, ROOT = Serial("SN0001"), Serial("ROOT-1")
LONG_S = 3000.0
GIVEN_UP = f'failed to load Boot0099 "{OPTION}"'
"""OVMF's line where it loaded nothing from the given URI; the test decides by what service and machine then did not do."""


@pytest.fixture(scope="module")
def image() -> OsImage:
    """Built once for all tests and labs of this machine."""
    return ensure_os_image(print)


@dataclass(frozen=True)
class Booted:
    """A machine whose BMC was given the attempt's URI, and what the run knows of it."""

    machine: VirtualMachine
    attempts: AttemptStore

    def now(self) -> InstallAttempt:
        found = self.attempts.find("node001")
        assert found is not None
        return found

    def until(self, look: Callable[[InstallAttempt], bool], what: str) -> None:
        give_up = time.monotonic() + LONG_S
        while not look(self.now()):
            words = [step.text for step in self.now().milestones]
            assert time.monotonic() < give_up, f"{what}: {words}\n{self.machine.console[-4000:]}"
            time.sleep(1)


@contextmanager
def booted(folder: Path, image: OsImage, authority: BootAuthority) -> Iterator[Booted]:
    """The service has its certificate of authority 0, and the machine's firmware trusts `authority`."""
    port = reserve_port("127.0.0.1")
    tls = site_files(folder / "tls", GATEWAY).read(GATEWAY)
    settings = PxeSettings("eth0", GATEWAY, BOOT, port, dhcp=Dhcp.PROXY, image=image.name, tls=tls)
    attempts = AttemptStore(folder / "machines")
    factory = AttemptFactory(settings, ImageProfile(settings, BootFolder(BOOT)), CLOCK)
    target = replace(TARGET, serial=SERIAL, root_disk=ROOT, macs=(Mac("02:00:00:00:00:77"), Mac(MAC)))
    armed, documents = factory.arm(target)
    assert armed.boot is not None
    emulated = f"{armed.boot.arguments} no_timer_check"  # a starved emulator misses the timer's ticks
    attempt = attempts.put(replace(armed, boot=replace(armed.boot, arguments=emulated)), documents)
    uri = f"{settings.base}/efi/{start_ticket(attempt.token)}.efi"
    setup = Setup(
        settings.base, str(BOOT), script("probe.sh").decode(), 4, None, None, tls.certificate, tls.private_key
    )
    drives = tuple(Drive.made(folder, name, 4 << 30, name.encode() * 4096) for name in ("DATA-1", ROOT))
    machine = VirtualMachine(folder, SERIAL, drives, reserve_port("127.0.0.1"))
    trusted = folder / "authorities.esl"
    trusted.write_bytes(signature_lists([authority.pem]))
    with in_threads(setup, BootHandlers(settings.base, attempts, CLOCK), ConnectionLimits(), port):
        process = machine.boot_https(uri, trusted)
        try:
            yield Booted(machine, attempts)
        finally:
            process.kill()
            process.wait()


def test_a_machine_is_installed_over_https(image: OsImage, tmp_path: Path) -> None:
    """Firmware fetches one EFI program; the deployer in it finds the card, reports, gets the image, and is done."""
    with booted(tmp_path, image, BootAuthority(0)) as found:
        found.until(lambda attempt: not attempt.running, "the install does not end")
        done = found.now()
    assert done.state is AttemptState.DONE, done.reason
    assert (done.card, done.root) == (MAC, "/dev/nvme1n1")
    assert done.host_key.startswith("ssh-ed25519 ")
    assert done.milestones[0].text == "its firmware booted over HTTPS"


def test_with_another_authority_nothing_boots(image: OsImage, tmp_path: Path) -> None:
    """The firmware has asked, seen a certificate that it does not trust, and gone on; it never sent the ticket."""
    with booted(tmp_path, image, BootAuthority(1)) as found:
        found.until(lambda _: GIVEN_UP in found.machine.console, "the firmware does not give up")
        assert found.now().state is AttemptState.ARMED
        assert "Linux version" not in found.machine.console
        assert found.now().milestones == ()
