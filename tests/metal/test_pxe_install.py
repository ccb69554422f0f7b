"""Virtual machines from power-off to sshd: Redfish, OVMF, PXE, iPXE, the deployer, a disk that boots.

Everything between the BMC and the disk is what a real machine would meet; only BMC and machine are emulated.
"""

from __future__ import annotations

import json

import pytest

from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.quantity import Quantity, exactly
from lab.tests.lab_kit import eventually
from tests.metal.install_kit import INSTALL_S, NODES, Installed
from tests.metal.metal_kit import console, needs_metal
from tests.metal.network_kit import network_findings

pytestmark = [pytest.mark.lab, needs_metal, pytest.mark.timeout(INSTALL_S + 600)]


def test_both_machines_are_installed(installed: Installed) -> None:
    """Exit code 0, both at the stage after install, and the lab reports that both run from their disks."""
    assert installed.run.wait() == 0, f"{installed.run.stdout}\n{installed.run.stderr}\n{installed.metal.consoles()}"
    assert installed.metal.site.stages() == dict.fromkeys(NODES, "installed")
    rows = {row["name"]: (row["power"], row["boot"], row["installed"]) for row in installed.metal.rows()}
    assert rows == dict.fromkeys(NODES, ("on", "running", True))


@pytest.mark.parametrize("node", NODES)
def test_no_token_stands_on_a_console(installed: Installed, node: str) -> None:
    """iPXE, the deployer and the kernel print what they load; the attempt's token is in none of it."""
    lab = installed.metal.lab
    token = json.loads((lab.site / "state/pxe/machines" / f"{node}.json").read_text())["token"]
    printed = console(lab, node)
    assert "/start/" in printed
    assert len(token) == 64
    assert token not in printed


@pytest.mark.parametrize("node", NODES)
def test_each_host_is_itself(installed: Installed, node: str) -> None:
    """Its name, its firmware's serial, its address, and a host key of its own that the run has pinned."""
    metal = installed.metal
    assert metal.ssh(node, "hostname") == node
    assert metal.ssh(node, "sudo", "cat", "/sys/class/dmi/id/product_serial") == f"LAB0{node[-3:]}"
    assert metal.lab.machine(node)["address"] in metal.ssh(node, "ip", "-4", "-brief", "address")
    assert len({metal.node(each).host_key for each in NODES}) == len(NODES)


def test_a_host_has_the_network_that_the_site_gives_it(installed: Installed) -> None:
    """Name, static address, gateway, MTU and name servers of node002 are the site's; node001 has its address by DHCP."""
    findings = network_findings(installed.metal, NODES[1])
    assert [finding.verdict for finding in findings] == [Verdict.PASS], findings
    assert "dynamic" in installed.metal.ssh(NODES[0], "ip", "-4", "address")


def test_a_network_that_is_not_the_sites_is_found(installed: Installed) -> None:
    """The MTU of a running host was changed: host_network names the port, and what it should be."""
    metal = installed.metal
    metal.ssh(NODES[1], "sudo", "ip", "link", "set", "dev", "mgmt0", "mtu", "1300")
    try:
        (finding,) = network_findings(metal, NODES[1])
        assert (finding.verdict, finding.measured) == (Verdict.FAIL, Quantity(1300, "bytes"))
        assert finding.expected == exactly(1400, "bytes")
        assert "mgmt0" in finding.subject
    finally:
        metal.ssh(NODES[1], "sudo", "ip", "link", "set", "dev", "mgmt0", "mtu", "1400")


@pytest.mark.parametrize("node", NODES)
def test_the_os_is_on_the_root_disk(installed: Installed, node: str) -> None:
    """By the serial that the BMC reported; node002's stands between two data drives, and all are of one size."""
    drives = json.loads(installed.metal.ssh(node, "lsblk", "--json", "--output", "NAME,SERIAL,SIZE,MOUNTPOINTS"))
    (root,) = (
        drive["serial"]
        for drive in drives["blockdevices"]
        if any("/" in (part["mountpoints"] or ()) for part in drive.get("children", ()))
    )
    assert root == f"BOSS0{node[-3:]}"
    assert len({drive["size"] for drive in drives["blockdevices"] if drive["name"].startswith("nvme")}) == 1


def test_the_data_drives_were_not_touched(installed: Installed) -> None:
    """All that was on them is where it was, and nothing else is on them: read from outside of the machines."""
    assert len(installed.before) == 4 * len(NODES)
    assert installed.metal.data() == installed.before


def test_a_fault_shows_in_a_running_guest(installed: Installed) -> None:
    """A GPU that is taken out is gone from its PCI bus at once, no boot between, and comes back healed."""
    metal = installed.metal

    def gpus() -> int:
        return len(metal.ssh(NODES[0], "lspci", "-d", "10de:").splitlines())

    assert gpus() == 8
    metal.lab("inject", "missing-gpu", NODES[0])
    try:
        assert gpus() == 7
    finally:
        metal.lab("heal", NODES[0])
    assert gpus() == 8


@pytest.mark.parametrize("node", NODES)
def test_a_guest_reports_that_it_is_not_real_metal(installed: Installed, node: str) -> None:
    """Its marker is there, its package sources are the lab's alone, and each rail has its address."""
    metal = installed.metal
    assert metal.ssh(node, "cat", "/etc/clusterctl/simulated") == "simulated"
    sources = metal.ssh(node, "cat /etc/apt/sources.list /etc/apt/sources.list.d/*")
    assert [line for line in sources.splitlines() if "http" in line] == ["URIs: http://10.171.0.3/debian/"]
    assert f"10.172.128.{int(node[-3:])}/16" in metal.ssh(node, "ip", "-4", "-brief", "address", "show", "dev", "ib0")
    assert metal.ssh(node, "cat", "/sys/class/net/ib0/mtu") == "9000"


def test_the_fabric_knows_the_running_machines(installed: Installed) -> None:
    """The cables of machines that have booted from their disks carry light."""
    assert eventually(lambda: all(node in installed.metal.lab.fabric() for node in NODES), 60.0)


def test_what_is_installed_is_not_installed_again(installed: Installed) -> None:
    """A second run finds all done, and no machine boots again."""
    boots = {node: installed.metal.ssh(node, "cat", "/proc/sys/kernel/random/boot_id") for node in NODES}
    again = installed.metal.install()
    assert again.wait() == 0, again.stderr
    assert boots == {node: installed.metal.ssh(node, "cat", "/proc/sys/kernel/random/boot_id") for node in NODES}
