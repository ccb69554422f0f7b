"""Virtual metal in a living lab, started and broken as an operator would; no OS is needed for it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.tests.lab_kit import RunningLab, clusterctl, eventually, leftovers, running_lab
from tests.metal.metal_kit import boot_once, console, needs_metal, netboot, power, reset, virtual_machines

pytestmark = [pytest.mark.lab, pytest.mark.soak, needs_metal, pytest.mark.timeout(3600)]
NODE = "node001"
PATIENCE = 600.0


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """One virtual machine; at the end nothing of the lab may be left."""
    folder = tmp_path_factory.mktemp("metal")
    with running_lab("metal1", "10.176.0.0/16", folder, "--metal", "qemu", "--hosts", "1", "--rails", "1") as found:
        yield found
    assert leftovers(found) == []
    assert virtual_machines(found) == []


def test_from_the_network_once_then_by_its_order(lab: RunningLab, tmp_path: Path) -> None:
    """PXE once leads through OVMF and iPXE to our script, which gets the serial and UUID of the BMC; the reset from
    within uses the override up, and where iPXE gives up, the firmware goes on with its order.
    """
    with netboot(lab, tmp_path, ["reboot", "exit"]) as service:
        assert boot_once(lab, NODE, "Pxe") == 200
        assert reset(lab, NODE, "On") == 204
        assert eventually(lambda: power(lab, NODE) == "On")
        assert eventually(lambda: not service.scripts, PATIENCE), console(lab, NODE)
        assert eventually(lambda: 'starting Boot0000 "UiApp"' in console(lab, NODE), PATIENCE), console(lab, NODE)
    assert service.asked[0] == "/boot.ipxe?serial=LAB0001&uuid=4c4c4544-0041-4210-8030-ccc04f303031"
    starts = [line for line in console(lab, NODE).splitlines() if line.startswith("--- power on")]
    assert [line.split("boots from ")[1] for line in starts] == [
        "02:1a:ee:00:00:01, BOSS0001 ---",
        "BOSS0001, 02:1a:ee:00:00:01 ---",
    ]
    assert (power(lab, NODE), lab.machine(NODE)["boot"]) == ("On", "no OS")
    assert reset(lab, NODE, "ForceOff") == 204
    assert eventually(lambda: power(lab, NODE) == "Off" and not virtual_machines(lab))


def test_power_goes_when_the_bmc_takes_it(lab: RunningLab) -> None:
    """ForceOff ends the machine wherever it is, and what `lab status` shows is so."""
    assert reset(lab, NODE, "On") == 204
    assert eventually(lambda: lab.machine(NODE)["boot"] == "starting")
    assert eventually(lambda: len(virtual_machines(lab)) == 1)
    assert eventually(lambda: lab.machine(NODE)["boot"] == "no OS", PATIENCE), console(lab, NODE)
    assert reset(lab, NODE, "ForceOff") == 204
    assert eventually(lambda: not virtual_machines(lab))
    row = lab.machine(NODE)
    assert (row["power"], row["boot"], row["installed"]) == ("off", "off", False)


def test_a_machine_with_lost_and_dead_drives_starts(lab: RunningLab) -> None:
    """What `lab inject` breaks is broken in the machine: a drive is gone, another fails; the firmware lives with it."""
    lab("inject", "missing-nvme", f"{NODE}:root")
    lab("inject", "dead-nvme", f"{NODE}:bay1")
    lab("power", NODE, "on")
    assert eventually(lambda: len(virtual_machines(lab)) == 1)
    (running,) = virtual_machines(lab)
    assert "BOSS0001" not in running
    assert "blkdebug" in running
    assert eventually(lambda: lab.machine(NODE)["boot"] == "no OS", PATIENCE), console(lab, NODE)
    lab("power", NODE, "off")
    assert NODE in lab("heal")


def test_what_it_cannot_show_is_refused(lab: RunningLab) -> None:
    """Neither a fault of an OS that is not the lab's, nor an install past the installer."""
    refused = clusterctl("lab", "inject", "slow-nic", NODE, "--name", lab.name)
    assert refused.returncode == 2
    assert "no slow-nic with --metal qemu" in refused.stderr
    installed = clusterctl("lab", "up", "--name", "metal2", "--metal", "qemu", "--installed")
    assert installed.returncode == 2
    assert "delivered without an OS" in installed.stderr


def test_machines_end_with_a_killed_lab(lab: RunningLab) -> None:
    """`kill -9` of the daemon takes its virtual machines along; that nothing else is left is for `lab down` to see to."""
    lab("power", NODE, "on")
    assert eventually(lambda: len(virtual_machines(lab)) == 1)
    os.kill(lab.daemon, signal.SIGKILL)
    assert eventually(lambda: not virtual_machines(lab))
