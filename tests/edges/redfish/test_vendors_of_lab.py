"""The lab's BMCs of every vendor, read by the client and judged by the discover step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.finding import Report, Verdict
from clusterctl.fleet.hardware.sku import RootDisk, Sku
from clusterctl.fleet.hardware.temperatures import judge_temperatures
from clusterctl.fleet.node import Inventory, Location, NodeId, Serial
from clusterctl.fleet.state import NodeState
from clusterctl.ports import Deadline, Power
from clusterctl.steps.discover.step import Discover, DiscoverPlan, DiscoverServices
from clusterctl_lab.faults import inject
from clusterctl_lab.healthy import build, with_roce
from clusterctl_lab.machine import Machine
from clusterctl_lab.server_models import MAKES
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.test_against_lab import LAYOUT, PASSWORD, lab
from tests.edges.redfish.test_faults_of_lab import NO_ACTS
from tests.fleet.skus import H100_X8

HCA_MODELS = {Vendor.SUPERMICRO: "MCX75310AAS", Vendor.HPE: "MCX75310AAS"}
"""The BMC's name of a ConnectX-7, where it does not name it so."""
SKUS = [
    replace(
        H100_X8,
        name=vendor.value,
        manufacturer=make.manufacturer,
        model=make.model,
        hca_model=HCA_MODELS.get(vendor, "ConnectX-7"),
        root_disk=RootDisk(max_bytes=600 * 10**9),
    )
    for vendor, make in MAKES.items()
]
UNSEEN = {Vendor.OPENBMC: {"hca_count"}}
"""What a vendor's BMC cannot report on a healthy machine: the DGX's has no model of an HCA."""


def whole(vendor: Vendor) -> Machine:
    return build(1, LAYOUT, PASSWORD, vendor=vendor)


def read(bmcs: RedfishBmcs, machine: Machine, tmp_path: Path) -> Inventory:
    """Of the machine with its power on."""
    with lab([machine], tmp_path) as site:
        site.world.states[machine.name].power = True
        with bmcs.open(site[machine.name], Deadline.after(60)) as bmc:
            return bmc.inventory(Deadline.after(60)).value


def discover(bmcs: RedfishBmcs, machine: Machine, tmp_path: Path, skus: Sequence[Sku] = SKUS) -> Report:
    node = NodeState(
        NodeId("id1"), machine.name, bmc=machine.bmc.address, location=Location(machine.rack, machine.unit)
    )
    with lab([machine], tmp_path) as site:
        step = Discover(DiscoverServices(bmcs, site.__getitem__, dict), DiscoverPlan(skus, workers=1))
        (outcome,) = step.run([node], NO_ACTS, Deadline.after(60))
    return Report("discover", "", outcome.findings)


def test_a_machine_with_roce_adapters_passes(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """Its adapters are counted as what they are, and its first NIC is still the port that boots."""
    machine = with_roce(whole(Vendor.DELL))
    roce = [replace(sku, hca_link_layer="Ethernet") for sku in SKUS]
    report = discover(bmcs, machine, tmp_path, roce)
    assert [str(one) for one in report.findings if one.verdict not in (Verdict.PASS, Verdict.NOT_APPLICABLE)] == []
    assert machine.boot_mac in {nic.mac for nic in read(bmcs, machine, tmp_path).nics or ()}


@pytest.mark.parametrize("vendor", list(Vendor))
def test_a_sound_machine_is_read_whole(bmcs: RedfishBmcs, tmp_path: Path, vendor: Vendor) -> None:
    """Eight GPUs and HCAs, every drive and supply by its serial, the port that boots by its MAC, whatever the vendor."""
    machine = whole(vendor)
    found = read(bmcs, machine, tmp_path)
    assert (found.serial, found.model, found.health) == (machine.serial, machine.model, "OK")
    assert (found.cpu_count, found.memory_gib) == (machine.cpus, machine.memory_gib)
    assert {gpu.serial for gpu in found.gpus or ()} == {gpu.serial for gpu in machine.gpus}
    assert len(found.hcas or ()) == 8
    assert {drive.serial for drive in found.drives or ()} == {drive.serial for drive in machine.drives}
    assert [psu.serial for psu in found.psus or ()] == [psu.serial for psu in machine.psus]
    assert {dimm.serial: dimm.size_mib for dimm in found.dimms or ()} == {d.serial: d.size_mib for d in machine.dimms}
    assert [(fan.slot, fan.healthy) for fan in found.fans or ()] == [(fan.slot, True) for fan in machine.fans]
    assert machine.boot_mac in {nic.mac for nic in found.nics or ()}
    assert found.bmc_firmware == machine.bmc.firmware
    assert found.temperatures


@pytest.mark.parametrize("vendor", list(Vendor))
def test_a_sound_machine_passes(bmcs: RedfishBmcs, tmp_path: Path, vendor: Vendor) -> None:
    """The step finds nothing wrong, and its findings name what a vendor's BMC cannot see."""
    report = discover(bmcs, whole(vendor), tmp_path)
    assert [finding for finding in report.findings if finding.verdict is Verdict.FAIL] == []
    unseen = {finding.check for finding in report.findings if finding.verdict is Verdict.INCONCLUSIVE}
    assert unseen == UNSEEN.get(vendor, set())


@pytest.mark.parametrize("vendor", list(Vendor))
@pytest.mark.parametrize(
    ("fault", "part", "check"),
    [
        ("missing-gpu", "gpu5", "gpu_count"),
        ("missing-hca", "mlx5_3", "hca_count"),
        ("failed-psu", "PS3", "psu"),
        ("dead-nvme", "bay2", "drives"),
        ("over-temperature", "", "temperature"),
    ],
)
def test_each_fault_is_found_on_each_vendor(
    bmcs: RedfishBmcs, tmp_path: Path, vendor: Vendor, fault: str, part: str, check: str
) -> None:
    """The broken part is a root finding that fails, and none of its roots is about another part."""
    machine = whole(vendor)
    broken = inject({machine.name: machine}, fault, f"{machine.name}:{part}" if part else machine.name)
    roots = [root for root in discover(bmcs, broken, tmp_path).roots() if root.verdict is Verdict.FAIL]
    assert {root.check for root in roots} == {check}


@pytest.mark.parametrize("vendor", list(Vendor))
@pytest.mark.parametrize(
    ("fault", "check", "remedy"),
    [("failed-dimm", "dimms", "reseat memory module"), ("failed-fan", "fans", "turns freely")],
)
def test_a_module_and_a_fan_are_one_cause_each(
    bmcs: RedfishBmcs, tmp_path: Path, vendor: Vendor, fault: str, check: str, remedy: str
) -> None:
    """Whatever a vendor calls the part in its inventory and in its log: the part is the only root that fails, and its entry
    in the log and the roll-up are its consequences.
    """
    machine = whole(vendor)
    slot = machine.dimms[3].slot if fault == "failed-dimm" else machine.fans[3].slot
    report = discover(bmcs, inject({machine.name: machine}, fault, f"{machine.name}:{slot}"), tmp_path)
    (root,) = (root for root in report.roots() if root.verdict is Verdict.FAIL)
    assert (root.check, root.subject) == (check, slot)
    assert remedy in root.remedy
    followed = {one.check: one.subject for one in report.findings if one.root == root.key}
    assert followed == {"event_log": slot, "bmc_health": "node"}


@pytest.mark.parametrize("vendor", list(Vendor))
def test_hot_air_is_one_cause(bmcs: RedfishBmcs, tmp_path: Path, vendor: Vendor) -> None:
    """Whatever else is hot then, on a machine that runs: the air in front of it is the only root, also on a DGX, which
    calls every sensor an intake.
    """
    machine = whole(vendor)
    hot = inject({machine.name: machine}, "over-temperature", machine.name)
    found = read(bmcs, hot, tmp_path)
    roots = [finding for finding in judge_temperatures(found) if not finding.root]
    assert [root.verdict for root in roots] == [Verdict.FAIL]
    assert "cool the air in front of the machine" in roots[0].remedy


def test_one_hot_gpu_is_not_the_air(bmcs: RedfishBmcs, tmp_path: Path) -> None:
    """On a DGX too: the sensor of that GPU is the root, and no work on the cooling unit is ordered."""
    machine = whole(Vendor.OPENBMC)
    third = replace(machine.gpus[2], temperature_c=93)
    found = read(bmcs, replace(machine, gpus=(*machine.gpus[:2], third, *machine.gpus[3:])), tmp_path)
    (root,) = (finding for finding in judge_temperatures(found) if not finding.root)
    assert root.subject == "TEMP_GB_SXM3"
    assert "fans" in root.remedy


@pytest.mark.parametrize("vendor", list(Vendor))
def test_power_off_and_on(bmcs: RedfishBmcs, tmp_path: Path, vendor: Vendor) -> None:
    """Every vendor's machine is switched on and off, each by the resets that its BMC takes."""
    machine = whole(vendor)
    with lab([machine], tmp_path) as site, bmcs.open(site[machine.name], Deadline.after(60)) as bmc:
        serial = Serial(machine.serial)
        assert bmc.set_power(Power.ON, serial, Deadline.after(60)).value is Power.ON
        assert bmc.set_power(Power.OFF, serial, Deadline.after(60)).value is Power.OFF
