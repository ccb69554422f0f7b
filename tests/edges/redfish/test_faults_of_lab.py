"""The faults of BMC and hardware as a lab's BMC shows them, found by the client and the discover step."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.errors import AuthenticationError, UnreachableError
from clusterctl.fleet.finding import Report, Verdict
from clusterctl.fleet.node import Location, NodeId
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl_lab.faults import inject
from clusterctl_lab.healthy import build
from clusterctl_lab.machine import Machine
from lab.tests.lab_kit import eventually
from tests.edges.redfish.conftest import QUICK as CLIENT
from tests.edges.redfish.conftest import FixedClock
from tests.edges.redfish.test_against_lab import LAYOUT, PASSWORD, XE9680, Lab, lab

WHOLE = build(1, LAYOUT, PASSWORD)
NODE = NodeState(NodeId("id1"), WHOLE.name, bmc=WHOLE.bmc.address, location=Location(WHOLE.rack, WHOLE.unit))

NO_ACTS = cast("IntentLog", None)
"""discover must not write."""


def broken(fault: str, part: str = "", machine: Machine = WHOLE) -> Machine:
    return inject({machine.name: machine}, fault, f"{machine.name}:{part}" if part else machine.name)


def discover(bmcs: RedfishBmcs, site: Lab, deadline: Deadline | None = None) -> Report:
    """What the discover step reports of the one machine."""
    step = Discover(DiscoverServices(bmcs, site.__getitem__, dict), DiscoverPlan([XE9680], workers=1))
    (outcome,) = step.run([NODE], NO_ACTS, deadline or Deadline.after(60))
    return Report("discover", "", outcome.findings)


@pytest.mark.parametrize(
    ("fault", "part", "check", "subject", "remedy"),
    [
        ("dead-nvme", "bay2", "drives", "Disk.Bay.2:Enclosure.Internal.0-1", "(serial NVME00012)"),
        ("failed-psu", "PS3", "psu", "PS3", "power supply PS3 (serial PSU00013)"),
        ("failed-dimm", "DIMM B2", "dimms", "DIMM B2", "reseat memory module DIMM B2 (serial MEM000109)"),
        ("failed-fan", "System Board Fan3A", "fans", "System Board Fan3A", "see that fan System Board Fan3A turns"),
        ("over-temperature", "", "temperature", "System Board Inlet Temp", "cool the air in front of the machine"),
        ("missing-hca", "mlx5_3", "hca_count", "node", "reseat the HCA in slot InfiniBand.Slot.34"),
        ("missing-gpu", "gpu5", "gpu_count", "node", "reseat the GPU in slot Video.Slot.26-1"),
    ],
)
def test_the_part_is_the_only_root(  # noqa: PLR0917 — one row of the table of faults
    bmcs: RedfishBmcs, tmp_path: Path, fault: str, part: str, check: str, subject: str, remedy: str
) -> None:
    """One cause, one root finding, on the right part, with rack, unit, slot and serial in its remedy."""
    with lab([broken(fault, part)], tmp_path) as site:
        (root,) = discover(bmcs, site).roots()
    assert (root.check, root.subject, root.verdict) == (check, subject, Verdict.FAIL)
    assert root.remedy.startswith("rack A01 U4, node001: ")
    assert remedy in root.remedy


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("dead-nvme", "Fault detected on drive 0 in disk drive bay 1."),
        ("failed-psu", "Power supply 1 failed."),
        ("failed-dimm", "Multi-bit memory errors are detected on the memory device at location(s) DIMM_A1."),
        ("failed-fan", "Fan 1A RPM is less than the lower critical threshold."),
        ("over-temperature", "greater than the upper critical threshold"),
    ],
)
def test_the_event_log_and_the_roll_up_report_it_too(bmcs: RedfishBmcs, tmp_path: Path, fault: str, words: str) -> None:
    """Both are consequences of the part, not causes of their own."""
    with lab([broken(fault)], tmp_path) as site:
        found = discover(bmcs, site).findings
    (logged,) = [finding for finding in found if finding.check == "event_log" and finding.subject != "bmc"]
    (health,) = [finding for finding in found if finding.check == "bmc_health"]
    assert words in logged.cause
    assert health.measured == "Critical"
    assert health.root == logged.root != ""


def test_two_modules(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Each is a root of its own, with its own entry of the log as its consequence; the memory still adds up."""
    twice = broken("failed-dimm", "DIMM B8", broken("failed-dimm", "DIMM A1"))
    with lab([twice], tmp_path) as site:
        found = discover(bmcs, site).findings
    logged = {finding.subject: finding.root for finding in found if finding.check == "event_log"}
    assert logged == {"DIMM A1": "dimms:DIMM A1", "DIMM B8": "dimms:DIMM B8", "bmc": ""}
    assert [one.verdict for one in found if one.check == "memory_size"] == [Verdict.PASS]


def test_two_at_once(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Two broken parts are two roots."""
    twice = broken("failed-psu", "PS6", broken("dead-nvme"))
    with lab([twice], tmp_path) as site:
        roots = discover(bmcs, site).roots()
    assert [(root.check, root.subject) for root in roots] == [
        ("drives", "Disk.Bay.0:Enclosure.Internal.0-1"),
        ("psu", "PS6"),
    ]


def test_a_running_machine_is_read_too(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """With its power on all sensors read; the hot GPUs have no threshold at the BMC and are not its to judge."""
    hot = broken("over-temperature")
    with lab([hot], tmp_path) as site:
        site.world.states[hot.name].power = True
        with bmcs.open(site[hot.name], Deadline.after(60)) as bmc:
            sensors = {one.sensor: one.celsius for one in bmc.inventory(Deadline.after(60)).value.temperatures or ()}
        (root,) = discover(bmcs, site).roots()
    assert sensors["CPU1 Temp"] > sensors["System Board Inlet Temp"]
    assert sensors["System Board GPU1 Temp"] == hot.gpus[0].temperature_c
    assert root.subject == "System Board Inlet Temp"


def test_a_dead_bmc(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """No server listens: unreachable, may pass; repaired, it answers again."""
    dead = broken("dead-bmc")
    with lab([dead], tmp_path) as site:
        (root,) = discover(bmcs, site).roots()
        assert (root.check, root.subject, root.deterministic) == ("bmc", "bmc", False)
        assert "check its power, cable and address" in root.remedy
        assert "rack A01 U4" in root.remedy
        site.change(WHOLE)
        assert not discover(bmcs, site).roots()


def test_a_bmc_that_hangs(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """It accepts the connection and sends nothing: the deadline ends the wait, and the remedy is a reset."""
    with lab([broken("hanging-bmc")], tmp_path) as site:
        (root,) = discover(bmcs, site, deadline=Deadline.after(2.5)).roots()
        assert (root.check, root.deterministic) == ("bmc", False)
        assert "reset the BMC" in root.remedy
        site.change(WHOLE)
        assert not discover(bmcs, site).roots()


@pytest.mark.parametrize("fault", ["dead-bmc", "hanging-bmc"])
def test_a_bmc_that_dies_in_the_middle(tmp_path: Path, fault: str) -> None:
    """A session that was open ends in silence, not in half an inventory."""
    bmcs = RedfishBmcs(FixedClock(), replace(CLIENT, logout=1.0))
    with lab([WHOLE], tmp_path) as site, bmcs.open(site["node001"], Deadline.after(60)) as bmc:
        assert bmc.power(Deadline.after(60))
        site.change(broken(fault))
        with pytest.raises(UnreachableError):
            bmc.inventory(Deadline.after(1.0))


def test_a_wrong_password(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """It is tried once, the answer counts, and neither password is printed."""
    with lab([broken("wrong-bmc-password")], tmp_path) as site:
        with pytest.raises(AuthenticationError), bmcs.open(site["node001"], Deadline.after(60)):
            pass
        (root,) = discover(bmcs, site).roots()
    assert (root.check, root.deterministic) == ("bmc", True)
    assert "set the BMC's password" in root.remedy
    assert PASSWORD not in repr(root)


@pytest.mark.parametrize("inlet_c", [18, 35, 41])
def test_a_warm_day_is_no_fault(bmcs: RedfishBmcs, tmp_path: Path, inlet_c: int) -> None:
    """Below the threshold nothing is found."""
    with lab([replace(WHOLE, inlet_c=inlet_c)], tmp_path) as site:
        assert discover(bmcs, site).verdict is Verdict.PASS


def powered_again(bmcs: RedfishBmcs, site: Lab) -> None:
    """Switch the machine off and on, and wait until the lab's POST has ended, or hangs."""
    limit = Deadline.after(60)
    with bmcs.open(site[WHOLE.name], limit) as bmc:
        bmc.cycle_power(WHOLE.serial, limit)
    boot = site.world.states[WHOLE.name].boot_task
    assert boot is not None
    assert eventually(boot.done)


def test_a_post_hang_stops_the_node_until_the_repaired_machine_has_booted(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """The log keeps the hang: the boot after the repair makes it a warning, and no log has to be cleared."""
    with lab([broken("never-boots")], tmp_path) as site:
        powered_again(bmcs, site)
        (root,) = discover(bmcs, site).roots()
        site.change(WHOLE)
        still = discover(bmcs, site).verdict
        powered_again(bmcs, site)
        after = discover(bmcs, site)
    assert (root.check, root.measured, root.verdict) == ("event_log", "firmware-hang", Verdict.FAIL)
    assert "clusterctl bmc clear-log" in root.remedy
    assert still is Verdict.FAIL
    assert after.verdict is Verdict.WARN
    assert [one.measured for one in after.findings if one.verdict is Verdict.WARN] == ["firmware-hang"]
