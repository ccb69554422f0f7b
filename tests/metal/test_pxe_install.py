"""Virtual machines from power-off to sshd: Redfish, OVMF, PXE, iPXE, the deployer, a disk that boots.

Everything between the BMC and the disk is what a real machine would meet; only BMC and machine are emulated.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest

from clusterctl.fleet.finding import Verdict
from tests.e2e.site_kit import Controller
from tests.metal.install_kit import INSTALL_S, MetalSite, metal_site
from tests.metal.metal_kit import needs_metal
from tests.metal.network_kit import network_findings, want_network

pytestmark = [pytest.mark.lab, needs_metal, pytest.mark.timeout(INSTALL_S + 600)]
NODES = ("node001", "node002")


@dataclass(frozen=True)
class Installed:
    """After one run; `before` are the digests of the data drives before it."""

    metal: MetalSite
    run: Controller
    before: Mapping[str, str]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """One bootstrap of two machines, as a person would run it."""
    folder = tmp_path_factory.mktemp("pxe")
    with metal_site("metalp", "10.173.0.0/16", folder, len(NODES)) as metal:
        want_network(metal.lab, NODES[1])
        before = metal.data()
        yield Installed(metal, metal.install(), before)


def test_both_machines_are_installed(installed: Installed) -> None:
    """Exit code 0, both at the stage after install, and the lab says that both run from their disks."""
    assert installed.run.wait() == 0, f"{installed.run.stdout}\n{installed.run.stderr}\n{installed.metal.consoles()}"
    assert installed.metal.site.stages() == dict.fromkeys(NODES, "installed")
    rows = {row["name"]: (row["power"], row["boot"], row["installed"]) for row in installed.metal.rows()}
    assert rows == dict.fromkeys(NODES, ("on", "running", True))


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


@pytest.mark.parametrize("node", NODES)
def test_the_os_is_on_the_root_disk(installed: Installed, node: str) -> None:
    """By the serial that the BMC told; node002's stands between two data drives, and all are of one size."""
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


def test_what_is_installed_is_not_installed_again(installed: Installed) -> None:
    """A second run finds all done, and no machine boots again."""
    boots = {node: installed.metal.ssh(node, "cat", "/proc/sys/kernel/random/boot_id") for node in NODES}
    again = installed.metal.install()
    assert again.wait() == 0, again.stderr
    assert boots == {node: installed.metal.ssh(node, "cat", "/proc/sys/kernel/random/boot_id") for node in NODES}
