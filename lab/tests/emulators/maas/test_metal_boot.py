"""The lab's MAAS and machines that boot by themselves: MAAS's state of a machine decides what it boots and receives."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.maas.metal.boot_files import read_boot_files
from clusterctl_lab.emulators.maas.status import Status
from lab.tests.emulators.maas.metal_boot_kit import BASE, DEPLOYER, IMAGE, ROOT, Rack, report_text, unpacked
from tests.edges.maas.kit import PUBLIC

Scene = Callable[[Rack], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scene], None]:
    """Runs a scene in a loop of its own."""

    async def run(scene: Scene) -> None:
        rack = Rack(tmp_path)
        try:
            await scene(rack)
        finally:
            await rack.close()

    return lambda scene: asyncio.run(run(scene))


def test_commissioning_reads_the_machine_and_waits_until_it_is_off(play: Callable[[Scene], None]) -> None:
    """The booted machine's own words become MAAS's inventory; it is refused, switches itself off, and only then is it
    Ready.
    """

    async def scene(rack: Rack) -> None:
        rack.lifecycle.commission(rack.node, "admin", tests=False)
        await rack.settle()
        assert rack.power.did == ["on"]
        script, rack.power.on_for = rack.script(), 1
        assert f"kernel --name vmlinuz {BASE}/files/deployer/{DEPLOYER}/vmlinuz" in script
        assert "BOOTIF=01-02-1a-ee-00-00-01" in script
        token = script.partition("clusterctl.token=")[2].split()[0]
        assert rack.boot_service.handle(token, "report", report_text()).status == 409
        assert rack.node.status is Status.COMMISSIONING
        await rack.settle()
        assert (rack.node.status, rack.node.owner) == (Status.READY, "")
        assert rack.node.hardware is not None
        assert (rack.node.hardware.serial, rack.node.hardware.memory_mib) == ("LAB0001", 976)
        assert [(disk.name, disk.serial) for disk in rack.node.disks] == [("nvme1n1", ROOT), ("nvme0n1", "S6XANX0")]
        assert rack.node.interfaces[0].address == rack.machine.address
        assert not rack.boot_service.knows(token)
        assert "boots from its disk" in rack.script()

    play(scene)


def test_deployed_only_once_the_machine_has_booted(play: Callable[[Scene], None]) -> None:
    """It receives disk and image, writes, restarts from its disk: Deploying all that time, until the OS itself reports."""

    async def scene(rack: Rack) -> None:
        token = await rack.deploying()
        orders = dict(
            line.split("=", 1) for line in rack.boot_service.handle(token, "report", report_text()).text.splitlines()
        )
        assert orders["root"] == "/dev/nvme1n1"
        assert orders["image"] == f"/files/images/small/{IMAGE}/rootfs.tar.zst"
        assert (orders["sha256"], orders["size"], orders["hostname"]) == (IMAGE, "4096", "node001")
        assert rack.world.states["node001"].installs == 1
        assert rack.boot_service.handle(token, "progress", "writes").status == 200
        assert rack.boot_service.handle(token, "host-key", f"{PUBLIC} root@node001").status == 200
        assert [rack.boot_service.handle(token, "done", "").status for _ in range(2)] == [200, 200]
        assert (rack.node.status, rack.node.netboot) == (Status.DEPLOYING, False)
        assert "boots from its disk" in rack.script()
        assert rack.boot_service.handle(token, "booted", "").status == 200
        assert rack.node.status is Status.DEPLOYED
        assert rack.boot_service.handle(token, "booted", "").status == 404

    play(scene)


def test_the_overlay_is_the_user_data(play: Callable[[Scene], None]) -> None:
    """Name, user, keys, host key and files; keys that are secret are root's alone; no overlay before the order."""

    async def scene(rack: Rack) -> None:
        token = await rack.deploying()
        assert rack.boot_service.overlay(token) is None
        rack.boot_service.handle(token, "report", report_text())
        files = unpacked(rack.boot_service.overlay(token))
        assert files["etc/hostname"][0] == "node001\n"
        assert files["etc/motd"] == ("rehearsal\n", 0o600)
        assert files["etc/ssh/authorized_keys.d/ops"][0] == f"{PUBLIC}\n"
        assert files["etc/ssh/ssh_host_ed25519_key"][1] == 0o600
        assert files["etc/ssh/ssh_host_ed25519_key.pub"][0] == f"{PUBLIC}\n"
        assert files["etc/sudoers.d/90-maas"] == ("ops ALL=(ALL) NOPASSWD:ALL\n", 0o440)
        boot_report, mode = files["etc/clusterctl-lab/booted.py"]
        assert f"{BASE}/t/{token}/booted" in boot_report
        assert mode == 0o600
        compile(boot_report, "booted.py", "exec")
        link = "etc/systemd/system/multi-user.target.wants/clusterctl-lab-booted.service"
        assert files[link][0].lstrip("/") in files

    play(scene)


@pytest.mark.parametrize("report", [report_text(root="OTHER"), report_text(twice=True)])
def test_without_exactly_one_root_disk_nothing_is_written(play: Callable[[Scene], None], report: str) -> None:
    """Refused, and the deployment has failed."""

    async def scene(rack: Rack) -> None:
        token = await rack.deploying()
        assert rack.boot_service.handle(token, "report", report).status == 409
        assert rack.node.status is Status.FAILED_DEPLOYMENT
        assert rack.boot_service.handle(token, "done", "").status == 404
        assert rack.world.states["node001"].installs == 0

    play(scene)


def test_another_host_key_than_the_given_one_fails(play: Callable[[Scene], None]) -> None:
    """No user would recognise the host by it."""

    async def scene(rack: Rack) -> None:
        token = await rack.deploying()
        rack.boot_service.handle(token, "report", report_text())
        assert rack.boot_service.handle(token, "host-key", "ssh-ed25519 AAAAother").status == 409
        assert rack.node.status is Status.FAILED_DEPLOYMENT

    play(scene)


def test_the_failure_that_a_machine_reports_is_an_event(play: Callable[[Scene], None]) -> None:
    """MAAS's answer gives the reason."""

    async def scene(rack: Rack) -> None:
        token = await rack.deploying()
        assert rack.boot_service.handle(token, "failed", "the image arrived\nbroken").status == 200
        assert rack.node.status is Status.FAILED_DEPLOYMENT
        assert "the image arrived broken" in [event.description for event in rack.node.events]

    play(scene)


def test_a_token_ends_with_its_attempt(play: Callable[[Scene], None]) -> None:
    """A machine that still works on a withdrawn attempt has no effect on the next one."""

    async def scene(rack: Rack) -> None:
        first = await rack.deploying()
        rack.lifecycle.release(rack.node)
        await rack.settle()
        assert not rack.boot_service.knows(first)
        rack.lifecycle.deploy(rack.node, "admin")
        await rack.settle()
        assert not rack.boot_service.knows(first)
        assert rack.boot_service.knows(rack.token())

    play(scene)


def test_a_test_reads_every_disk(play: Callable[[Scene], None]) -> None:
    """One that cannot be read fails it."""

    async def scene(rack: Rack) -> None:
        await rack.commission()
        for readable, then in ((True, Status.READY), (False, Status.FAILED_TESTING)):
            rack.lifecycle.test(rack.node, "admin")
            await rack.settle()
            rack.boot_service.handle(rack.token(), "report", report_text(readable=readable))
            await rack.settle()
            assert rack.node.status is then

    play(scene)


def test_erasing_is_refused_plainly(play: Callable[[Scene], None]) -> None:
    """It fails at once with the reason, instead of after half an hour."""

    async def scene(rack: Rack) -> None:
        rack.node.status = Status.DEPLOYED
        rack.lifecycle.erase(rack.node)
        await rack.settle()
        assert "exit 1" in rack.script()
        assert rack.node.status is Status.FAILED_DISK_ERASING
        assert "the lab's virtual metal is not erased" in [event.description for event in rack.node.events]

    play(scene)


def test_strangers_boot_from_their_disks(play: Callable[[Scene], None]) -> None:
    """A machine that MAAS does not know, an unknown token, an unknown request."""

    async def scene(rack: Rack) -> None:
        assert "exit 1" in rack.boot_service.script(rack.world.machines["node002"].boot_mac)
        assert rack.boot_service.handle("00" * 16, "report", report_text()).status == 404
        rack.lifecycle.commission(rack.node, "admin", tests=False)
        await rack.settle()
        assert rack.boot_service.handle(rack.token(), "report", "hello").status == 400
        assert rack.boot_service.handle(rack.token(), "sing", "").status == 404

    play(scene)


def test_the_error_of_an_empty_boot_folder_has_the_command_that_fills_it(tmp_path: Path) -> None:
    """Before any machine waits for it."""
    with pytest.raises(EnvironmentBrokenError) as error:
        read_boot_files(tmp_path, "small")
    assert "lab up" in error.value.remedy
