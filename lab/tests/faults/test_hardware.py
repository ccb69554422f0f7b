"""Faults of BMC, boot and parts: each changes what its text promises and nothing else."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import IPv4Network

import pytest

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.emulators.redfish.health import INLET_CRITICAL_C
from clusterctl_lab.faults import inject
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import BmcCondition, Machine
from clusterctl_lab.vendor import Vendor

LAYOUT = Layout(IPv4Network("10.88.0.0/16"))
WHOLE = build(1, LAYOUT, "secret")


def broken(fault: str, part: str = "", machine: Machine = WHOLE) -> Machine:
    return inject({"node001": machine}, fault, f"node001:{part}" if part else "node001")


@pytest.mark.parametrize(("fault", "condition"), [("dead-bmc", BmcCondition.DEAD), ("hanging-bmc", BmcCondition.HANGS)])
def test_a_bmc_that_does_not_answer(fault: str, condition: BmcCondition) -> None:
    """Only its condition changes: the machine below it is as sound as before."""
    found = broken(fault)
    assert found.bmc.condition is condition
    assert replace(found, bmc=WHOLE.bmc, faults=()) == WHOLE


def test_a_password_that_is_not_the_sites() -> None:
    """User and address stay."""
    found = broken("wrong-bmc-password")
    assert found.bmc.password != WHOLE.bmc.password
    assert replace(found, bmc=replace(found.bmc, password="secret"), faults=()) == WHOLE


def test_a_drive_with_an_older_os() -> None:
    """A data drive, the first or the one named; never the root disk, never one that is not there."""
    assert broken("wrong-boot-disk").boots_from == "NVME00010"
    found = broken("wrong-boot-disk", "bay2")
    assert found.foreign_disk == WHOLE.drives[3]
    assert replace(found, boots_from="", faults=()) == WHOLE
    assert replace(found, drives=WHOLE.drives[:1]).foreign_disk is None
    with pytest.raises(UsageError, match="has no bay4") as caught:
        broken("wrong-boot-disk", "bay4")
    assert "bay0, bay1, bay2, bay3" in caught.value.remedy


def test_a_dead_drive() -> None:
    """It stays where it is, reports that it has failed, and left a line in the event log; twice are two."""
    found = broken("dead-nvme", "bay3", broken("dead-nvme"))
    assert [drive.serial for drive in found.drives if drive.failed] == ["NVME00010", "NVME00013"]
    assert [line.message for line in found.logged] == [
        "Fault detected on drive 0 in disk drive bay 1.",
        "Fault detected on drive 3 in disk drive bay 1.",
    ]


def test_a_dead_power_supply() -> None:
    """The first or the one named, with a line in the event log."""
    assert [psu.slot for psu in broken("failed-psu").psus if psu.failed] == ["PS1"]
    found = broken("failed-psu", "PS4")
    assert [psu.slot for psu in found.psus if psu.failed] == ["PS4"]
    assert [(line.severity, line.message) for line in found.logged] == [("Critical", "Power supply 4 failed.")]
    with pytest.raises(UsageError, match="has no PS7"):
        broken("failed-psu", "PS7")
    with pytest.raises(UsageError, match="has no power supply"):
        broken("failed-psu", machine=replace(WHOLE, psus=()))


@pytest.mark.parametrize("vendor", list(Vendor))
def test_a_memory_module_that_lost_data(vendor: Vendor) -> None:
    """The first or the one named, as its vendor calls it, with a critical line in the event log; it still counts."""
    machine = build(1, LAYOUT, "secret", vendor=vendor)
    assert [dimm.failed for dimm in broken("failed-dimm", machine=machine).dimms] == [True, *[False] * 15]
    named = machine.dimms[9]
    found = broken("failed-dimm", named.slot, machine)
    assert [dimm.serial for dimm in found.dimms if dimm.failed] == [named.serial]
    assert [(line.severity, named.in_log in line.message) for line in found.logged] == [("Critical", True)]
    assert found.memory_gib == machine.memory_gib == 2048
    with pytest.raises(UsageError, match="has no DIMM Z1") as caught:
        broken("failed-dimm", "DIMM Z1", machine)
    assert named.slot in caught.value.remedy
    with pytest.raises(UsageError, match="has no memory module"):
        broken("failed-dimm", machine=replace(machine, dimms=()))


@pytest.mark.parametrize("vendor", list(Vendor))
def test_a_fan_that_stands_still(vendor: Vendor) -> None:
    """The first or the one named, as its vendor calls it, with a critical line in the event log."""
    machine = build(1, LAYOUT, "secret", vendor=vendor)
    assert broken("failed-fan", machine=machine).fans[0].failed
    named = machine.fans[-1]
    found = broken("failed-fan", named.slot, machine)
    assert [fan.slot for fan in found.fans if fan.failed] == [named.slot]
    assert [(line.severity, named.in_log in line.message) for line in found.logged] == [("Critical", True)]
    with pytest.raises(UsageError, match="has no Fan 99"):
        broken("failed-fan", "Fan 99", machine)
    with pytest.raises(UsageError, match="has no fan"):
        broken("failed-fan", machine=replace(machine, fans=()))


def test_hot_air() -> None:
    """The inlet is above its threshold and the GPUs are hot; nothing is gone."""
    found = broken("over-temperature")
    assert found.inlet_c > INLET_CRITICAL_C
    assert {gpu.temperature_c > 80 for gpu in found.gpus} == {True}
    assert replace(found, inlet_c=WHOLE.inlet_c, gpus=WHOLE.gpus, logged=(), faults=()) == WHOLE


def test_an_hca_that_is_gone() -> None:
    """Only the one named; the others keep names, slots and cables."""
    found = broken("missing-hca", "mlx5_3")
    assert found.hcas == (*WHOLE.hcas[:3], *WHOLE.hcas[4:])
    with pytest.raises(UsageError, match="has no mlx5_3"):
        broken("missing-hca", "mlx5_3", found)


@pytest.mark.parametrize("fault", ["dead-bmc", "hanging-bmc", "wrong-bmc-password", "over-temperature"])
def test_what_has_no_parts_takes_none(fault: str) -> None:
    """A part that would be ignored is refused."""
    with pytest.raises(UsageError, match="takes no part"):
        broken(fault, "gpu1")
