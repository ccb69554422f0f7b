"""mstconfig, mstflint and setpci of the lab's hosts: what a role changes is there after the boot, and not before."""

from __future__ import annotations

from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl_lab.emulators.host_tools.host.mstflint import PSID, image
from clusterctl_lab.faults import inject
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from lab.tests.emulators.host_tools.tools_kit import ToolBox

ACS = "ECAP_ACS+0x6.w"


@pytest.fixture
def machine() -> Machine:
    return build(3, Layout(IPv4Network("10.88.0.0/16")), "unused", rails=1)


@pytest.fixture
def box(tmp_path: Path, machine: Machine) -> ToolBox:
    return ToolBox(tmp_path, machine)


def values(box: ToolBox, pci: str, name: str) -> list[str]:
    """Default, current, next boot."""
    (line,) = (
        each for each in box.run("mstconfig", "-e", "-d", pci, "query", name).stdout.splitlines() if name in each
    )
    return line.lstrip("*").split()[1:]


def test_a_setting_waits_for_the_boot(box: ToolBox, machine: Machine) -> None:
    """Set by word, printed as mstconfig prints it, in force after the next boot."""
    pci = machine.hcas[0].pci
    assert box.run("mstconfig", "-y", "-d", pci, "set", "KEEP_IB_LINK_UP_P1=true").returncode == 0
    assert values(box, pci, "KEEP_IB_LINK_UP_P1") == ["False(0)", "False(0)", "True(1)"]

    box.boot("2")
    assert values(box, pci, "KEEP_IB_LINK_UP_P1") == ["False(0)", "True(1)", "True(1)"]


def test_an_unknown_setting_and_an_unknown_device_are_errors(box: ToolBox, machine: Machine) -> None:
    """Exit codes other than 0, with words on standard error, and nothing set."""
    unknown = box.run("mstconfig", "-e", "-d", machine.hcas[0].pci, "query", "NO_SUCH_SETTING")
    assert (unknown.returncode != 0, "NO_SUCH_SETTING" in unknown.stderr) == (True, True)
    assert box.run("mstflint", "-d", "0000:ff:00.0", "query").returncode != 0


def test_burnt_firmware_runs_after_the_boot(box: ToolBox, machine: Machine, tmp_path: Path) -> None:
    """On flash at once, running later, with the GUID that it had; ibstat prints the same."""
    hca = machine.hcas[0]
    (tmp_path / "fw.bin").write_text(image(PSID, "28.99.1000"))
    assert box.run("mstflint", "-y", "-d", hca.pci, "-i", str(tmp_path / "fw.bin"), "burn").returncode == 0

    waiting = box.run("mstflint", "-d", hca.pci, "query").stdout
    assert "FW Version:            28.99.1000" in waiting
    assert f"FW Version(Running):   {hca.firmware}" in waiting
    box.boot("2")
    after = box.run("mstflint", "-d", hca.pci, "query").stdout
    assert "Running" not in after
    assert f"Base GUID:             {hca.guid}" in after
    assert "Firmware version: 28.99.1000" in box.run("ibstat").stdout


def test_an_image_of_another_adapter_is_refused(box: ToolBox, machine: Machine, tmp_path: Path) -> None:
    """Mstflint itself does not burn over another PSID."""
    (tmp_path / "fw.bin").write_text(image("MT_0000000840", "28.99.1000"))
    refused = box.run("mstflint", "-y", "-d", machine.hcas[0].pci, "-i", str(tmp_path / "fw.bin"), "burn")

    assert (refused.returncode != 0, "PSID mismatch" in refused.stderr) == (True, True)


def test_acs_is_on_again_after_a_boot(box: ToolBox) -> None:
    """As the kernel leaves it; a device that is no bridge has no such register."""
    listed = box.run("lspci", "-D", "-n").stdout.splitlines()
    bridge, *_ = (line.split()[0] for line in listed if line.split()[1] == "0604:")
    assert box.run("setpci", "-s", bridge, ACS).stdout == "001d\n"
    assert box.run("setpci", "-s", bridge, f"{ACS}=0000").returncode == 0
    assert box.run("setpci", "-s", bridge, ACS).stdout == "0000\n"

    box.boot("2")
    assert box.run("setpci", "-s", bridge, ACS).stdout == "001d\n"
    assert "not found" in box.run("setpci", "-s", "0000:00:00.0", ACS).stderr


def test_the_adapters_as_files_for_node_exporter(tmp_path: Path, machine: Machine) -> None:
    """State, rate and counters of a port as the kernel prints them; a fault shows when they are written again."""
    port = tmp_path / "sys/class/infiniband/mlx5_0/ports/1"

    def written(seen: Machine) -> tuple[str, ...]:
        assert ToolBox(tmp_path / "host", seen).run("adapter-sysfs", str(tmp_path / "sys")).returncode == 0
        return tuple((port / name).read_text() for name in ("state", "phys_state", "rate", "counters/link_downed"))

    assert written(machine) == ("4: ACTIVE\n", "5: LinkUp\n", "400 Gb/sec (4X NDR)\n", "0\n")
    assert written(inject({machine.name: machine}, "flapping-port", f"{machine.name}:mlx5_0"))[3] == "9\n"
    assert written(inject({machine.name: machine}, "port-not-active", f"{machine.name}:mlx5_0"))[:2] == (
        "2: INIT\n",
        "5: LinkUp\n",
    )
    assert ToolBox(tmp_path / "host", machine).run("adapter-sysfs", "--each", "soon", str(tmp_path)).returncode == 2
