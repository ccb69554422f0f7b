"""BIOS attributes and firmware on the lab's BMCs of every vendor, with the quirks that a change can meet."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from ipaddress import IPv4Network
from pathlib import Path
from typing import BinaryIO

import pytest
import requests

from clusterctl.edges.firmware_images import ImageFiles
from clusterctl.edges.redfish import RedfishBmcs, Timing
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UsageError
from clusterctl.fleet.node import Serial
from clusterctl.fleet.settings.baseline import FirmwareWish, Image, Restarts, Value
from clusterctl.fleet.settings.updates import Task, TaskState
from clusterctl.ports import BmcAddress, BmcClient, Deadline, Power
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish import Serving, serve_bmcs
from clusterctl_lab.firmware import Component, Firmware
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor
from clusterctl_lab.world import Delays, World
from lab.tests.loop_thread import LoopThread
from tests.edges.redfish.conftest import FixedClock
from tests.fake_timer import FakeTimer
from tests.ports import reserve_port

LAYOUT = Layout(IPv4Network("127.180.0.0/16"))
PASSWORD = "of-no-use-elsewhere"
DELAYS = Delays(power_off=0.02, post=0.05, flash=0.1, bmc_restart=0.2, netboot_timeout=0.1)
PACE = Timing(
    busy=0.02,
    busy_max=0.1,
    poll=0.02,
    settle=20,
    refused=0.05,
    refused_max=0.2,
    refusals=40,
    unknown=1,
    grace=0.2,
    rest=0,
)
URL = "http://192.0.2.9/image.bin"
CHANGES: dict[Vendor, dict[str, Value]] = {
    Vendor.DELL: {"ProcTurboMode": "Disabled", "AcPwrRcvryUserDelay": 60},
    Vendor.SUPERMICRO: {"SR_IOVSupport_0047": "Disabled"},
    Vendor.HPE: {"Sriov": "Disabled"},
    Vendor.OPENBMC: {"SRIOVEnable": "SRIOVEnableDisable"},
}
COPES = [
    (Vendor.HPE, BmcQuirk.WEAK_ETAG),
    (Vendor.OPENBMC, BmcQuirk.IF_MATCH_REQUIRED),
    (Vendor.SUPERMICRO, BmcQuirk.ENDS_SESSIONS),
    (Vendor.SUPERMICRO, BmcQuirk.REFUSES_IDENTITY),
    (Vendor.DELL, BmcQuirk.UNAVAILABLE),
    (Vendor.DELL, BmcQuirk.LOSES_ANSWERS),
    (Vendor.OPENBMC, BmcQuirk.LOSES_ANSWERS),
]
KINDS: list[tuple[Vendor, BmcQuirk | None]] = [*((vendor, None) for vendor in Vendor), *COPES]
vendors = pytest.mark.parametrize("vendor", list(Vendor), ids=lambda vendor: vendor.value)
kinds = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: f"{kind[0].value} {kind[1].value if kind[1] else ''}")


@dataclass
class Shelf:
    """What BMCs fetch by URL."""

    image: bytes = b""

    async def fetch(self, url: str) -> bytes:
        assert url == URL
        return self.image


@dataclass(frozen=True)
class Site:
    world: World
    port: int
    ca: Path
    shelf: Shelf

    def open(self, machine: Machine) -> BmcClient:
        bmc = machine.bmc
        address = BmcAddress(bmc.address, bmc.user, PASSWORD, self.port, str(self.ca))
        return RedfishBmcs(FixedClock(), PACE).open(address, soon())


def soon() -> Deadline:
    return Deadline.after(120)


def machine(kind: tuple[Vendor, BmcQuirk | None]) -> Machine:
    vendor, quirk = kind
    made = build(KINDS.index(kind) + 1, LAYOUT, PASSWORD, rails=2, vendor=vendor)
    bmc = replace(made.bmc, quirks=frozenset({quirk} if quirk else ()), latency_s=(0.0, 0.001))
    return replace(made, bmc=bmc, gpus=made.gpus[:1], drives=made.drives[:2])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served([machine(kind) for kind in KINDS], tmp_path_factory.mktemp("settings")) as found:
        yield found


@contextmanager
def served(machines: list[Machine], folder: Path) -> Iterator[Site]:
    world = World(LAYOUT, {one.name: one for one in machines}, DELAYS)
    ca = LabCa(folder / "tls", "settings")
    port = reserve_port(LAYOUT.bmc(1))
    loop, shelf = LoopThread(), Shelf()
    servers = loop.run(serve_bmcs(world, ca.certificate_for, port, Serving(fetch=shelf.fetch)))
    try:
        yield Site(world, port, ca.ca_file, shelf)
    finally:
        loop.run(servers.close())
        loop.close()


def wish(content: bytes, version: str, restarts: Restarts = Restarts.HOST) -> FirmwareWish:
    image = Image("image.bin", hashlib.sha256(content).hexdigest(), URL, "baselines/lab.yml:9 firmware.0.image")
    return FirmwareWish("*", version, image=image, restarts=restarts)


def push(site: Site, bmc: BmcClient, one: Machine, firmware: Firmware | bytes, restarts: Restarts) -> Task:
    content = firmware.image(300_000) if isinstance(firmware, Firmware) else firmware
    site.shelf.image = content
    (task,) = bmc.push_firmware(wish(content, "9.9", restarts), open_file(content), Serial(one.serial), soon()).value
    return task


def open_file(content: bytes) -> BinaryIO:
    """A file with a descriptor, which is nowhere on the disk."""
    descriptor = os.memfd_create("image")
    os.write(descriptor, content)
    return os.fdopen(descriptor, "rb")


def ended(site: Site, one: Machine, path: str) -> Task:
    """Once the task no longer runs; the BMC may be away meanwhile."""
    limit = soon()
    while limit.remaining:
        try:
            with site.open(one) as bmc:
                task = bmc.task(path, limit).value
        except ClusterctlError:
            task = Task(path, TaskState.RUNNING)
        if task.state is not TaskState.RUNNING:
            return task
        time.sleep(0.02)
    raise AssertionError("the task never ended")


@kinds
def test_both_wait_for_the_next_boot(site: Site, kind: tuple[Vendor, BmcQuirk | None]) -> None:
    """Attributes are pending, and seen so; asked for again, nothing is sent (at Dell one job carries them). An image,
    sent once in spite of lost answers and busy BMCs, becomes one task, which waits. One boot brings both.
    """
    one = machine(kind)
    serial, wanted = Serial(one.serial), CHANGES[kind[0]]
    with site.open(one) as bmc:
        before = bmc.bios(soon()).value
        for _ in range(2):
            bios = bmc.set_bios(wanted, serial, soon()).value
            assert {name: bios.pending[name] for name in wanted} == wanted
            assert bios.current == before.current
        known = bmc.updates(soon()).value.paths
        task = push(site, bmc, one, Firmware(Component.BIOS, "9.9.9"), Restarts.HOST)
    assert ended(site, one, task.path).state is TaskState.WAITING
    with site.open(one) as bmc:
        waiting = {each.path for each in bmc.updates(soon()).value.waiting}
        assert waiting - known == {task.path}
        bmc.set_power(Power.ON, serial, soon())
    assert ended_waiting(site, one, task.path).state is TaskState.DONE
    limit = soon()
    while site.world.states[one.name].posting and limit.remaining:
        time.sleep(0.02)
    now = site.world.machines[one.name]
    assert (now.bios_version, dict(now.bios)) == ("9.9.9", wanted)


def test_a_machine_in_its_self_test(site: Site) -> None:
    """An iLO refuses its settings meanwhile: it is asked again until it takes them."""
    one = machine((Vendor.HPE, BmcQuirk.WEAK_ETAG))
    state = site.world.states[one.name]
    state.posting = True
    timer = FakeTimer().act_when_waited(lambda: setattr(state, "posting", False))
    with site.open(one) as bmc:
        reported = bmc.set_bios({"ProcAmdIoVt": "Disabled"}, Serial(one.serial), Deadline.after(60, timer=timer))
    assert not state.posting
    assert reported.value.pending["ProcAmdIoVt"] == "Disabled"
    assert b"UnableToModifyDuringSystemPOST" in reported.evidence[0].content


def ended_waiting(site: Site, one: Machine, path: str) -> Task:
    limit = soon()
    while limit.remaining:
        with site.open(one) as bmc:
            task = bmc.task(path, limit).value
        if not task.state.live:
            return task
        time.sleep(0.02)
    raise AssertionError("the task never ended")


@vendors
def test_bmc_firmware(site: Site, vendor: Vendor) -> None:
    """The BMC goes away and comes back with it; a new session finds the task done and the version there."""
    one = machine((vendor, None))
    with site.open(one) as bmc:
        task = push(site, bmc, one, Firmware(Component.BMC, "99.1"), Restarts.BMC)
    assert ended(site, one, task.path).state is TaskState.DONE
    limit = soon()
    reported: set[str] = set()
    while "99.1" not in reported and limit.remaining:
        try:
            with site.open(one) as bmc:
                reported = {each.version for each in bmc.updates(limit).value.firmware or ()}
        except ClusterctlError:
            time.sleep(0.02)
    assert "99.1" in reported


@vendors
def test_an_image_for_another_machine(site: Site, vendor: Vendor) -> None:
    """The task fails, and its words are the BMC's."""
    one = machine((vendor, None))
    with site.open(one) as bmc:
        task = push(site, bmc, one, Firmware(Component.BIOS, "1", "Other"), Restarts.HOST)
    failed = ended(site, one, task.path)
    assert failed.state is TaskState.FAILED
    assert "The image is for Other" in failed.message


def test_no_change_during_a_running_task(site: Site) -> None:
    """Never a second flash while one is at work."""
    one = machine((Vendor.DELL, None))
    slow = replace(DELAYS, flash=30)
    site.world.delays = slow
    try:
        with site.open(one) as bmc:
            push(site, bmc, one, Firmware(Component.HCA, "28.1"), Restarts.HOST)
            with pytest.raises(EdgeError, match="runs another task: task JID_"):
                push(site, bmc, one, Firmware(Component.HCA, "28.1"), Restarts.HOST)
    finally:
        site.world.delays = DELAYS


def test_another_machine(site: Site) -> None:
    """Neither an image nor an attribute goes to one that is not the proven one."""
    one = machine((Vendor.SUPERMICRO, None))
    with site.open(one) as bmc:
        known = bmc.updates(soon()).value.paths
        with pytest.raises(EdgeError, match="nothing was changed"):
            bmc.push_firmware(wish(b"x", "1"), open_file(b"x"), Serial("OTHER"), soon())
        with pytest.raises(EdgeError, match="nothing was changed"):
            bmc.set_bios({"AES_NI_3C75": "Disable"}, Serial("OTHER"), soon())
        assert bmc.updates(soon()).value.paths == known


def test_an_attribute_that_is_refused(site: Site) -> None:
    """In the BMC's words."""
    one = machine((Vendor.SUPERMICRO, None))
    with site.open(one) as bmc, pytest.raises(EdgeError, match="refuses BIOS attributes NoSuch: HTTP 400"):
        bmc.set_bios({"NoSuch": "1"}, Serial(one.serial), soon())


def test_a_bmc_that_takes_no_file(site: Site) -> None:
    """An iLO fetches; without a place to fetch from, the error has that."""
    one = machine((Vendor.HPE, None))
    image = Image("image.bin", "0" * 64, where="baselines/x.yml:3 firmware.0.image")
    with site.open(one) as bmc, pytest.raises(EdgeError, match="accepts no file") as caught:
        bmc.push_firmware(FirmwareWish("*", "1", image=image), open_file(b"x"), Serial(one.serial), soon())
    assert "name that place as url" in caught.value.remedy


def test_images_are_proven(tmp_path: Path) -> None:
    """By the digest; another file, none, or no file at all is named with the baseline's line."""
    file = tmp_path / "image.bin"
    file.write_bytes(b"image")
    right = Image(str(file), hashlib.sha256(b"image").hexdigest(), where="b.yml:7 firmware.0.image")
    with ImageFiles().opened(right) as opened:
        assert opened.read() == b"image"
    for wrong, expected in (
        (replace(right, sha256="0" * 64), "is not the image that was meant: its SHA-256 is 6105d6cc76af400325e9"),
        (replace(right, file=str(tmp_path / "none")), "cannot be opened: No such file"),
        (replace(right, file=str(tmp_path)), "is no regular file"),
    ):
        with pytest.raises(UsageError, match=expected) as caught, ImageFiles().opened(wrong):
            pass
        assert caught.value.where == "b.yml:7 firmware.0.image"


def test_what_is_read_only(site: Site) -> None:
    """By the registry, which is asked for; not by a mere look, and not where the BMC has none."""
    with site.open(machine((Vendor.DELL, None))) as bmc:
        assert bmc.bios(soon()).value.read_only is None
        assert bmc.bios(soon(), thorough=True).value.read_only == {"SystemModelName"}
    with site.open(machine((Vendor.HPE, None))) as bmc:
        assert bmc.bios(soon(), thorough=True).value.read_only is None


def test_a_dell_job_is_made_for_what_waits_without_one(tmp_path: Path) -> None:
    """Attributes that another client set without a time wait for a job: it is made, once."""
    one = machine((Vendor.DELL, None))
    wanted: dict[str, Value] = {"LogicalProc": "Disabled"}
    with served([one], tmp_path) as alone:
        settings = "/redfish/v1/Systems/System.Embedded.1/Bios/Settings"
        answer = requests.patch(
            f"https://{one.bmc.address}:{alone.port}{settings}",
            json={"Attributes": wanted},
            auth=("root", PASSWORD),
            verify=str(alone.ca),
            timeout=600,
        )
        assert answer.status_code == 200
        with alone.open(one) as bmc:
            assert bmc.updates(soon()).value.tasks == ()
            for _ in range(2):
                bmc.set_bios(wanted, Serial(one.serial), soon())
                assert [task.state for task in bmc.updates(soon()).value.tasks] == [TaskState.WAITING]
            bmc.set_power(Power.ON, Serial(one.serial), soon())
        limit = soon()
        while alone.world.states[one.name].posting and limit.remaining:
            time.sleep(0.02)
        assert dict(alone.world.machines[one.name].bios) == wanted
