"""The lab's network cables: hosts receive by LLDP what the model has; the site's Ethernet plan is of the same model."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from clusterctl.cabling.ethernet.findings import ethernet_findings
from clusterctl.cabling.ethernet.verify import verify_ethernet
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.fabric.wiring import settle
from clusterctl.fleet.finding import Verdict
from clusterctl.fleet.network.lldp import LldpReport, Neighbour
from clusterctl.formats.host.lldp import parse_lldpctl
from clusterctl.formats.wiring.csv_plan import read_ethernet_csv
from clusterctl_lab.faults import inject_all, partners
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.site_files import render
from lab.tests.emulators.host_tools.tools_kit import ToolBox
from lab.tests.test_site_files import facts

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))
PLAN = settle(read_ethernet_csv(render(facts(6))["ethernet.csv"][0].decode(), "ethernet.csv"))
MAC = "02:1a:ee:00:00:05"


def fleet() -> dict[str, Machine]:
    return {m.name: m for m in (build(index, LAYOUT, "secret") for index in range(1, 7))}


def report(folder: Path, machine: Machine) -> LldpReport:
    """What the host's stand-ins print, read as a site's hosts are."""
    box = ToolBox(folder / machine.name, machine)
    received = parse_lldpctl(box.run("lldpctl", "-f", "json0").stdout)
    return LldpReport(
        received.neighbours, parse_lldpctl(box.run("lldpcli", "-f", "json0", "show", "interfaces").stdout).interfaces
    )


def test_what_a_host_hears(tmp_path: Path) -> None:
    """Its rack's switch, by name, chassis and port; and its own NIC's MAC address."""
    received = report(tmp_path, fleet()["node005"])
    assert received.neighbours == (Neighbour("eth0", "mgmt-a02", ("swp1",), None, "02:1a:5c:00:00:02"),)
    assert received.interfaces == {"eth0": MAC}


def test_no_neighbour_is_seen_over_a_cable_that_carries_nothing(tmp_path: Path) -> None:
    """As lldpd reports it: no error, and no neighbour."""
    machine = fleet()["node005"]
    cut = replace(machine, system=replace(machine.system, network_lost=True))
    assert report(tmp_path, cut).neighbours == ()


def test_unknown_options_are_refused(tmp_path: Path) -> None:
    """A stand-in never answers what it does not know."""
    box = ToolBox(tmp_path, fleet()["node001"])
    assert box.run("lldpctl").returncode == 1
    assert box.run("lldpcli", "show", "neighbors").returncode == 1


def test_a_healthy_lab_is_as_planned(tmp_path: Path) -> None:
    """Every host's NIC is seen where the plan has it; the BMCs' cables are planned and cannot be seen."""
    machines = fleet()
    reports = {name: report(tmp_path, machine) for name, machine in machines.items()}
    found = verify_ethernet(PLAN, reports)
    assert (found.planned, found.right, found.explanations) == (12, 6, ())
    assert len(found.unmeasured) == 6


def test_swapped_cables(tmp_path: Path) -> None:
    """Both machines are broken by one injection, and repaired with one command."""
    machines = fleet()
    machines |= {m.name: m for m in inject_all(machines, "swapped-ethernet-cable", "node005")}
    assert machines["node005"].faults == ("swapped-ethernet-cable:node006",)
    assert machines["node006"].faults == ("swapped-ethernet-cable:node005",)
    found = verify_ethernet(PLAN, {name: report(tmp_path, machine) for name, machine in machines.items()})
    findings = ethernet_findings(PLAN, found, machines, {})
    failed = [name for name, ones in findings.items() if ones[0].verdict is Verdict.FAIL]
    assert failed == ["node005", "node006"]
    assert findings["node005"][0].remedy == "rack A02 U42 mgmt-a02: swap the cables in swp1 and swp2"


def test_the_machine_that_is_repaired_with_it() -> None:
    """Each machine remembers whose cable it has; other faults have no partner."""
    machines = fleet()
    broken, other = inject_all(machines, "swapped-ethernet-cable", "node001:node003")
    assert [target.node for target in partners(broken, broken.faults)] == ["node003"]
    assert [target.node for target in partners(other, other.faults)] == ["node001"]
    (alone,) = inject_all(machines, "missing-gpu", "node002")
    assert partners(alone, alone.faults) == ()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("node001:node001", "no other node"),
        ("node001:mlx5_0", "no other node"),
        ("node001:node009", "there is no node009"),
        ("node006:node007", "there is no node007"),
    ],
)
def test_what_cannot_be_swapped(target: str, words: str) -> None:
    """Nothing is broken by half: the error comes before any machine has changed."""
    with pytest.raises(UsageError, match=words):
        inject_all(fleet(), "swapped-ethernet-cable", target)


def test_a_cable_that_is_elsewhere_already() -> None:
    """A second swap of one cable is refused with the way out."""
    machines = fleet()
    machines |= {m.name: m for m in inject_all(machines, "swapped-ethernet-cable", "node001")}
    with pytest.raises(UsageError, match="not in its own port") as caught:
        inject_all(machines, "swapped-ethernet-cable", "node002:node003")
    assert caught.value.remedy == "heal node002 first"
