"""The installer: it reads first, acts once, proves the machine that it starts, and notices a silent machine."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Self

import pytest

from clusterctl.edges.pxe.attempt import AttemptState
from clusterctl.edges.pxe.attempt_store import AttemptStore, start_ticket
from clusterctl.edges.pxe.boot_certificate import BootCertificate
from clusterctl.edges.pxe.boot_handlers import BootHandlers
from clusterctl.edges.pxe.install_profiles import AttemptFactory, EraseProfile, ImageProfile
from clusterctl.edges.pxe.installer import PxeInstaller
from clusterctl.edges.pxe.settings import Dhcp, PxeSettings
from clusterctl.edges.redaction import KNOWN, MASK
from clusterctl.fleet.bmc.boot import BootOnce, BootSource
from clusterctl.fleet.errors import EdgeError, InstallerUnavailableError, UnreachableError, UsageError
from clusterctl.fleet.finding import Observed
from clusterctl.fleet.node import Mac, Serial
from clusterctl.ports import BmcAddress, Deadline, InstallState, InstallTarget, Power
from tests.edges.pxe.kit import KEY, MAC, NOON, ROOT_DISK, SERIAL, report
from tests.steps.fakes import seen

SOON = Deadline.after(86_400)  # begins when the suite is collected
OTHER_MAC = Mac("02:00:00:00:00:02")


@dataclass
class HandClock:
    """Stands still until it is moved."""

    time: datetime = NOON

    def now(self) -> datetime:
        return self.time


@dataclass
class FakeBmc:
    """Takes orders for one serial only. `unwilling`: raised by its next switching."""

    serial: str = SERIAL
    state: Power = Power.ON
    orders: list[str] = field(default_factory=list)
    unwilling: list[EdgeError] = field(default_factory=list)
    enrolls: bool = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.orders.append("closed")

    def enroll_boot_authority(self, pem: str, serial: Serial, deadline: Deadline) -> Observed[None]:
        self._prove(serial)
        if not self.enrolls:
            raise EdgeError("the BMC enrolls no authority")
        self.orders.append(f"enroll {pem}")
        return Observed(None, seen("enroll"))

    def boot_once(self, wish: BootOnce, serial: Serial, deadline: Deadline) -> Observed[BootOnce]:
        self._prove(serial)
        self.orders.append(f"boot {wish}")
        return Observed(wish, seen(f"boot once {wish.uri}".strip()))

    def power(self, deadline: Deadline) -> Observed[Power]:
        return Observed(self.state, seen("power"))

    def set_power(self, power: Power, serial: Serial, deadline: Deadline) -> Observed[Power]:
        return self._switch(f"set {power.value}", serial)

    def cycle_power(self, serial: Serial, deadline: Deadline) -> Observed[Power]:
        return self._switch("cycle", serial)

    def _switch(self, order: str, serial: Serial) -> Observed[Power]:
        self._prove(serial)
        if self.unwilling:
            raise self.unwilling.pop()
        self.orders.append(order)
        self.state = Power.ON
        return Observed(self.state, seen(order))

    def _prove(self, serial: Serial) -> None:
        if serial != self.serial:
            raise EdgeError(f"the BMC is in {self.serial}, not in {serial}")


@dataclass
class FakeBmcs:
    bmc: FakeBmc

    def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
        return self.bmc


@dataclass
class FakeService:
    ensured: int = 0
    known: list[str] = field(default_factory=list)
    serving_since: datetime | None = None
    lost: str = ""

    def ensure(self) -> None:
        self.ensured += 1
        if self.lost:
            raise InstallerUnavailableError(self.lost)

    def answer(self, target: InstallTarget) -> None:
        self.known.append(f"{target.name} {target.address}")


@dataclass(frozen=True)
class FakeImage:
    path_below_files: str = "images/debian-12/d1/rootfs.tar.zst"
    digest: str = "ab" * 32
    size: int = 12


@dataclass(frozen=True)
class FakeDeployer:
    kernel_path: str = "deployer/d1/vmlinuz"
    initrd_path: str = "deployer/d1/initrd"
    stub_path: str = "deployer/d1/stub.efi"


@dataclass
class FakeStore:
    """Has one image, unless it is `empty`."""

    empty: bool = False
    built: FakeDeployer = FakeDeployer()

    def image(self, name: str) -> FakeImage:
        if self.empty:
            raise UsageError(f"there is no image {name!r}", remedy=f"clusterctl image build {name}")
        return FakeImage()

    def deployer(self) -> FakeDeployer:
        return self.built


@dataclass
class World:
    """An installer, and what it acts on."""

    folder: Path
    clock: HandClock = field(default_factory=HandClock)
    bmc: FakeBmc = field(default_factory=FakeBmc)
    service: FakeService = field(default_factory=FakeService)
    store: FakeStore = field(default_factory=FakeStore)
    dhcp: Dhcp = Dhcp.RESERVE
    tls: BootCertificate | None = None
    enroll: bool = True

    def __post_init__(self) -> None:
        settings = PxeSettings("prov0", "192.0.2.1", self.folder, dhcp=self.dhcp, image="debian-12", silence_s=600)
        settings = replace(settings, tls=self.tls, enroll=self.enroll)
        self.attempts = AttemptStore(self.folder / "pxe" / "machines")
        self.handlers = BootHandlers("http://x", self.attempts, self.clock)
        self.installer = PxeInstaller(
            AttemptFactory(settings, ImageProfile(settings, self.store), self.clock),
            self.attempts,
            self.service,
            FakeBmcs(self.bmc),
            AttemptFactory(settings, EraseProfile(settings, self.store), self.clock),
        )

    def state(self) -> InstallState:
        return self.look().value.state

    def look(self) -> Observed:
        return self.installer.observe([TARGET], SOON)[TARGET.name]

    def token(self) -> str:
        attempt = self.attempts.find(TARGET.name)
        assert attempt is not None
        return attempt.token

    def boot(self) -> str:
        """The script of the installer, by the script that any card gets."""
        assert start_ticket(self.token()) in self.handlers.boot(OTHER_MAC, SERIAL)
        return self.handlers.start_script(start_ticket(self.token()), OTHER_MAC, SERIAL) or ""

    def post(self, name: str, body: str = "") -> int:
        return self.handlers.post(self.token(), name, body.encode(), "192.0.2.17").status

    def begin(self) -> None:
        self.installer.prepare(TARGET, SOON)
        self.installer.start(TARGET, SOON)


TARGET = InstallTarget(
    "node001",
    SERIAL,
    (MAC, OTHER_MAC),
    BmcAddress("192.0.2.101", "root", "bmc-pass-7f3a"),
    Serial(ROOT_DISK),
    "ssh-ed25519 AAAAC3Nz ops",
    "ops",
    "",
    address="192.0.2.17",
)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_the_whole_way(world: World) -> None:
    """Absent, ready, installing, installed: with the address, the host's own key, the drives and all milestones."""
    assert world.state() is InstallState.ABSENT
    assert world.installer.prepare(TARGET, SOON).value.state is InstallState.READY
    assert world.service.known == ["node001 192.0.2.17"]
    assert world.state() is InstallState.READY
    assert (world.look().value.makes_key, world.look().value.host_key) == (True, "")
    began = world.installer.start(TARGET, SOON)
    assert began.value.state is InstallState.INSTALLING
    assert world.bmc.orders == [f"boot {BootOnce(BootSource.PXE)}", "cycle", "closed"]
    assert "kernel" in world.boot()
    assert world.post("report", report()) == 200
    assert world.post("host-key", KEY) == 200
    assert world.state() is InstallState.INSTALLING
    assert world.post("done") == 200
    status = world.look().value
    assert status.state is InstallState.INSTALLED
    assert status.addresses == ("192.0.2.17",)
    assert status.host_key == KEY
    assert [drive.serial for drive in status.drives or ()] == [ROOT_DISK, "DATA1"]
    assert status.milestones[0].text == "its BMC has started it, to boot over the network once"
    assert status.milestones[-1].text == "the OS is on its disk"


def test_a_machine_that_is_off_is_switched_on(world: World) -> None:
    world.bmc.state = Power.OFF
    world.begin()
    assert world.bmc.orders[1] == "set on"


def test_everything_twice_does_it_once(world: World) -> None:
    """Prepared, started and observed again, the machine keeps its token, and its BMC is asked once."""
    world.begin()
    token = world.token()
    for _ in range(2):
        world.installer.prepare(TARGET, SOON)
        world.installer.start(TARGET, SOON)
    assert world.token() == token
    assert world.bmc.orders.count("cycle") == 1
    world.post("report", report())
    world.post("done")
    assert world.installer.start(TARGET, SOON).value.state is InstallState.INSTALLED
    assert world.bmc.orders.count("cycle") == 1


def test_a_bmc_that_fails_is_asked_again(world: World) -> None:
    """Armed and not started is READY: the next start goes on with the same token."""
    world.bmc.unwilling = [UnreachableError("no answer")]
    world.installer.prepare(TARGET, SOON)
    with pytest.raises(UnreachableError):
        world.installer.start(TARGET, SOON)
    token = world.token()
    assert world.state() is InstallState.READY
    world.installer.start(TARGET, SOON)
    assert world.token() == token
    assert world.state() is InstallState.INSTALLING


def test_another_machine_is_not_started(world: World) -> None:
    """The BMC is in another machine: refused by its serial before anything is switched."""
    world.bmc.serial = "SN0099"
    world.installer.prepare(TARGET, SOON)
    with pytest.raises(EdgeError, match="SN0099"):
        world.installer.start(TARGET, SOON)
    assert "cycle" not in world.bmc.orders


def test_silence_is_a_failure(world: World) -> None:
    """For a machine that was started and is silent for so long; its token is dead, released it can be tried again."""
    world.begin()
    world.post("report", report())
    world.clock.time += timedelta(seconds=599)
    assert world.state() is InstallState.INSTALLING
    world.clock.time += timedelta(seconds=2)
    status = world.look().value
    assert status.state is InstallState.FAILED
    assert "was silent for 10 minutes; last: its serial is right" in status.detail
    old = world.token()
    assert world.post("done") == 404
    assert world.installer.release(TARGET, SOON).value.state is InstallState.READY
    world.installer.start(TARGET, SOON)
    assert world.token() != old
    assert world.handlers.post(old, "progress", b"I am back", "").status == 404


def test_a_machine_that_waits_for_an_image_is_not_silent(world: World) -> None:
    """Its requests are turned away for as long as others load theirs: that is no failure of the machine's."""
    world.begin()
    world.post("report", report())
    for _ in range(5):
        world.clock.time += timedelta(seconds=500)
        assert not world.handlers.image_requested("another token")
        assert world.handlers.image_requested(world.token())
        assert world.state() is InstallState.INSTALLING
    world.clock.time += timedelta(seconds=700)
    assert not world.handlers.image_requested("another token")
    assert world.state() is InstallState.FAILED


def test_a_failure_in_the_machines_words_with_its_log(world: World) -> None:
    """The log is evidence, without the token that stands in it."""
    world.begin()
    world.post("report", report())
    world.post("log", f"curl http://192.0.2.1:8080/t/{world.token()}/overlay.tar: 500")
    world.post("failed", "the image's checksum is wrong")
    found = world.look()
    assert found.value.state is InstallState.FAILED
    assert found.value.detail == "the image's checksum is wrong"
    assert found.value.addresses == ("192.0.2.17",)
    log = next(item for item in found.evidence if item.source == "the installer's log")
    assert log.content == f"curl http://192.0.2.1:8080/t/{MASK}/overlay.tar: 500".encode()
    with pytest.raises(EdgeError, match="release it"):
        world.installer.start(TARGET, SOON)


def test_a_refused_machine(world: World) -> None:
    world.begin()
    assert world.post("report", report(serial="SN0002")) == 409
    status = world.look().value
    assert status.state is InstallState.FAILED
    assert "SN0002" in status.detail


def test_no_secret_is_printed(world: World) -> None:
    """Neither status nor evidence nor repr has the token, and whatever prints it would be masked."""
    world.begin()
    found = world.look()
    attempt = world.attempts.find(TARGET.name)
    for text in (repr(found), repr(attempt), *(item.content.decode() for item in found.evidence)):
        assert world.token() not in text
    assert KNOWN(f"at /t/{world.token()}") == f"at /t/{MASK}"


def test_an_exchanged_machine_begins_again(world: World) -> None:
    """The record of the machine that stood there before is not this one's, even if it was installed."""
    world.begin()
    world.post("report", report())
    world.post("done")
    exchanged = replace(TARGET, serial=Serial("SN0050"), macs=(OTHER_MAC,))
    assert world.installer.observe([exchanged], SOON)["node001"].value.state is InstallState.ABSENT
    assert world.installer.prepare(exchanged, SOON).value.state is InstallState.READY


def test_a_killed_run_goes_on_where_it_was(world: World, tmp_path: Path) -> None:
    """Another process reads the same attempts: what was armed, seen or written stays so."""
    world.begin()
    world.post("report", report())
    after = World(tmp_path, clock=world.clock, bmc=world.bmc)
    assert after.state() is InstallState.INSTALLING
    assert after.service.ensured == 1  # a machine on its way must find its server
    after.post("done")
    assert world.state() is InstallState.INSTALLED


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (replace(TARGET, address=""), "no address to reserve"),
        (replace(TARGET, macs=()), "no network card"),
        (replace(TARGET, authorized_key=""), "no public key"),
    ],
)
def test_missing_inputs_are_reported_first(world: World, target: InstallTarget, expected: str) -> None:
    with pytest.raises(UsageError, match=expected):
        world.installer.prepare(target, SOON)
    assert world.bmc.orders == []
    assert world.attempts.find(TARGET.name) is None


def test_without_an_image_nothing_begins(world: World) -> None:
    world.store.empty = True
    with pytest.raises(UsageError, match="there is no image"):
        world.installer.prepare(TARGET, SOON)


def test_with_another_dhcp_server_the_address_is_seen(tmp_path: Path) -> None:
    """With dhcp: proxy the address is not known beforehand: it is the one that the machine last used."""
    world = World(tmp_path, dhcp=Dhcp.PROXY)
    target = replace(TARGET, address="")
    world.installer.prepare(target, SOON)
    world.installer.start(target, SOON)
    world.post("report", report())
    world.post("done")
    assert world.installer.observe([target], SOON)["node001"].value.addresses == ("192.0.2.17",)


def test_a_strange_serial_is_named_where_the_machine_stays_silent(world: World) -> None:
    """It may be the wrong machine at that cable, or any other: it is reported as not proven, and ends nothing by itself."""
    world.begin()
    world.handlers.boot(OTHER_MAC, "SN0099")
    assert world.state() is InstallState.INSTALLING
    assert "not proven: a machine with" in world.look().value.detail
    world.clock.time += timedelta(seconds=601)
    status = world.look().value
    assert status.state is InstallState.FAILED
    assert "reported serial SN0099" in status.detail


def test_the_card_that_booted_gets_the_address(world: World) -> None:
    """The host asks by DHCP on that card alone: another card with its own request would take the reservation away."""
    world.begin()
    world.boot()
    tar = world.handlers.document(world.token(), "overlay.tar")
    assert tar is not None
    assert f"PermanentMACAddress={OTHER_MAC}\n".encode() in tar
    assert MAC.encode() not in tar
    attempt = world.attempts.find(TARGET.name)
    assert attempt is not None
    assert attempt.state is AttemptState.SEEN


def test_a_lost_service_costs_no_machine_its_attempt(world: World) -> None:
    """While it is lost the run waits; nothing is recorded. A machine's silence counts from its return."""
    world.begin()
    world.boot()
    before = world.attempts.find(TARGET.name)
    world.service.lost = "installer service lost: it was killed by signal 9 (Killed)"
    world.clock.time += timedelta(minutes=60)
    with pytest.raises(InstallerUnavailableError, match="installer service lost"):
        world.look()
    assert world.attempts.find(TARGET.name) == before
    world.service.lost, world.service.serving_since = "", world.clock.now()
    assert world.state() is InstallState.INSTALLING
    world.clock.time += timedelta(minutes=11)
    assert world.state() is InstallState.FAILED


DOOMED = replace(TARGET, erase=(Serial(ROOT_DISK), Serial("DATA1")))


def erased(world: World) -> None:
    world.installer.erase(DOOMED, SOON)
    world.boot()
    assert world.post("report", report()) == 200
    assert world.post("done") == 200


def test_a_machine_is_erased_and_given_back(world: World) -> None:
    """Armed without an image, started, judged by its report, and READY only once it has reported its end."""
    world.store.empty = True
    assert world.installer.erases_any("node001")
    began = world.installer.erase(DOOMED, SOON)
    assert (began.value.state, world.bmc.orders[-2:]) == (InstallState.ERASING, ["cycle", "closed"])
    assert "clusterctl.token" in world.boot()
    assert world.post("done") == 409
    token = world.token()
    answer = world.handlers.post(token, "report", report().encode(), "192.0.2.17").content.decode().splitlines()
    assert [line for line in answer if not line.startswith("time=")] == ["erase=/dev/nvme0n1", "erase=/dev/nvme1n1"]
    assert world.post("progress", "/dev/nvme0n1 serial 1: erased by one pass of zeros") == 200
    assert world.state() is InstallState.ERASING
    assert world.post("done") == 200
    status = world.look()
    assert (status.value.state, status.value.milestones[-1].text) == (InstallState.READY, "all its drives are erased")
    assert b"erased by one pass of zeros" in status.evidence[0].content
    assert "is erased" in world.handlers.boot(MAC, SERIAL)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (report(serial="SN0002"), "reports serial SN0002, its BMC SN0001"),
        (report(disks=(ROOT_DISK, "DATA1", "DATA2")), "its kernel sees also /dev/nvme2n1 DATA2"),
        (report(disks=(ROOT_DISK,)), "it does not see DATA1"),
        (report(disks=(ROOT_DISK, "")), "nothing was erased"),
        (report(disks=(ROOT_DISK, "DATA1", "DATA1")), "its kernel sees other drives"),
    ],
)
def test_another_machine_or_other_drives_are_not_erased(world: World, text: str, words: str) -> None:
    """The serial, and exactly the drives that the BMC reports: else the machine is refused and nothing is written."""
    world.installer.erase(DOOMED, SOON)
    world.boot()
    assert world.post("report", text) == 409
    status = world.look().value
    assert status.state is InstallState.FAILED
    assert words in status.detail


def test_an_erase_that_runs_is_left_alone(world: World) -> None:
    """Asked again, it goes on with the same attempt; the machine is not started again."""
    world.installer.erase(DOOMED, SOON)
    token, orders = world.token(), list(world.bmc.orders)
    assert world.installer.erase(DOOMED, SOON).value.state is InstallState.ERASING
    assert (world.token(), world.bmc.orders) == (token, orders)


def test_an_erase_that_was_armed_and_never_started_has_not_begun(world: World) -> None:
    """A run that died between the two: not READY, which would mean erased; the next request begins it."""
    world.bmc.unwilling.append(UnreachableError("away"))
    with pytest.raises(UnreachableError):
        world.installer.erase(DOOMED, SOON)
    assert world.state() is InstallState.FAILED
    assert world.installer.erase(DOOMED, SOON).value.state is InstallState.ERASING


def test_an_install_that_runs_is_not_erased(world: World) -> None:
    """And a target without named drives never is."""
    world.begin()
    with pytest.raises(EdgeError, match="it is being installed"):
        world.installer.erase(DOOMED, SOON)
    with pytest.raises(EdgeError, match="no drives are named"):
        world.installer.erase(TARGET, SOON)
    assert world.state() is InstallState.INSTALLING


def test_an_erased_machine_can_be_installed_again(world: World) -> None:
    """Its node was kept: the install begins as on any machine that is READY; while it erases, none begins."""
    world.installer.erase(DOOMED, SOON)
    assert world.installer.start(TARGET, SOON).value.state is InstallState.ERASING
    erased(world)
    assert world.installer.prepare(TARGET, SOON).value.state is InstallState.READY
    assert world.installer.start(TARGET, SOON).value.state is InstallState.INSTALLING
    world.boot()
    assert world.post("report", report()) == 200
    assert world.post("done") == 200
    assert world.state() is InstallState.INSTALLED


TLS = BootCertificate("a certificate", "a private key of the service", "THE-CA", "the+pin=")


def test_over_https_the_authority_comes_first(tmp_path: Path) -> None:
    """Enrolled, then armed, then the URI with this attempt's ticket, then power. Evidence and repr have no ticket."""
    world = World(tmp_path, tls=TLS)
    world.installer.prepare(TARGET, SOON)
    began = world.installer.start(TARGET, SOON)
    uri = f"https://192.0.2.1:8080/efi/{start_ticket(world.token())}.efi"
    assert world.bmc.orders == ["enroll THE-CA", "closed", f"boot uefi-http {uri}", "cycle", "closed"]
    assert f"boot once https://192.0.2.1:8080/efi/{MASK}.efi" in began.evidence[1].content.decode()
    for item in began.evidence:
        assert start_ticket(world.token()) not in item.source + item.content.decode()


def test_over_https_the_command_line_names_the_service_key(tmp_path: Path) -> None:
    """And all cards of the machine: its firmware does not report by which it boots."""
    world = World(tmp_path, tls=TLS)
    world.begin()
    attempt = world.attempts.find(TARGET.name)
    assert attempt is not None
    assert attempt.boot is not None
    words = attempt.boot.arguments.split()
    assert "clusterctl.server=https://192.0.2.1:8080" in words
    assert "clusterctl.key=the+pin=" in words
    assert "BOOTIF=01-02-00-00-00-00-01,01-02-00-00-00-00-02" in words
    assert world.handlers.start_script(start_ticket(world.token()), MAC, SERIAL) is None


def test_a_bmc_that_enrolls_nothing_arms_nothing(tmp_path: Path) -> None:
    """No token, no order to the machine, no plain HTTP instead; by hand, the same machine is booted over HTTPS."""
    world = World(tmp_path, tls=TLS)
    world.bmc.enrolls = False
    world.installer.prepare(TARGET, SOON)
    with pytest.raises(EdgeError, match="enrolls no authority"):
        world.installer.start(TARGET, SOON)
    assert world.bmc.orders == ["closed"]
    assert world.token() == ""
    assert world.state() is InstallState.READY
    by_hand = World(tmp_path, bmc=world.bmc, tls=TLS, enroll=False)
    by_hand.installer.start(TARGET, SOON)
    assert by_hand.bmc.orders[1].startswith("boot uefi-http https://")
    assert by_hand.state() is InstallState.INSTALLING


def test_a_deployer_without_a_stub(tmp_path: Path) -> None:
    """Of an earlier release: refused before the BMC is asked for anything, with the command that builds it."""
    world = World(tmp_path, tls=TLS)
    world.store.built = FakeDeployer(stub_path="")
    with pytest.raises(UsageError, match="built by an earlier release") as caught:
        world.installer.prepare(TARGET, SOON)
    assert "image build debian-12" in caught.value.remedy
    assert world.bmc.orders == []


def test_an_erase_boots_over_https_too(tmp_path: Path) -> None:
    """The same authority, way and ticket."""
    world = World(tmp_path, tls=TLS)
    world.installer.erase(replace(TARGET, erase=(Serial(ROOT_DISK),)), SOON)
    assert [order.split()[0] for order in world.bmc.orders] == ["enroll", "closed", "boot", "cycle", "closed"]
    assert start_ticket(world.token()) in world.bmc.orders[2]
