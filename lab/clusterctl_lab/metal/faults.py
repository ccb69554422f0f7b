"""Faults of virtual metal: what its firmware shows, and what only its BMC reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusterctl.fleet.errors import UsageError
from clusterctl_lab.fault_injection import BMC_QUIRKS, inject_all
from clusterctl_lab.faults.fault import Fault, data_drive, refuse_part
from clusterctl_lab.machine import Drive, Machine

SHARED = (
    *("dead-bmc", "dead-nvme", "failed-dimm", "failed-fan", "failed-psu", "hanging-bmc", "missing-gpu", "missing-hca"),
    *("network-lost", "never-boots", "over-temperature", "wrong-bmc-password"),
    *("down-speed-link", "flapping-port", "gpu-off-the-bus", "missing-cable", "nvlink-down", "old-nic-firmware"),
    *("lost-block", "memory-errors", "no-time-source", "weak-light", "worn-nvme"),
    *("dcgm-fail", "hot-gpu-under-load", "silent-corruption", "slow-gpu"),
    *("memory-errors", "slow-nvme", "weak-light", "worn-nvme", "wrong-memory"),
    *("pcie-width", "port-errors", "row-remap-failure", "slow-cores", "swapped-cable", "swapped-ethernet-cable"),
    *("uncorrectable-ecc", "wrong-rail-cable", "xid"),
)
"""Faults of every lab that virtual metal shows as they are described: in its BMC, its fabric, and in the stand-in tools
of its OS. What is done to the processes of a host in namespaces is not done to a virtual machine's.
"""
ROOT = "root"
SWAPPED_SERIAL = "XX{}"
"""The serial that a wrong board reports."""


def _wrong_serial(machine: Machine, part: str) -> Machine:
    refuse_part(machine, part)
    return replace(machine, smbios_serial=SWAPPED_SERIAL.format(machine.serial)).with_fault("wrong-serial")


def _missing_nvme(machine: Machine, part: str) -> Machine:
    name, lost = _drive(machine, part)
    drives = tuple(replace(drive, on_bus=False) if drive is lost else drive for drive in machine.drives)
    return replace(machine, drives=drives).with_fault(f"missing-nvme:{name}")


def _pulled_disk(machine: Machine, part: str) -> Machine:
    serials = {drive.serial: f"bay{number}" for number, drive in enumerate(d for d in machine.drives if not d.boot)}
    bay, out = data_drive(machine, serials.get(part, part))
    drives = tuple(replace(drive, on_bus=False, pulled=True) if drive is out else drive for drive in machine.drives)
    return replace(machine, drives=drives).with_fault(f"pulled-disk:{bay}")


def _drive(machine: Machine, part: str) -> tuple[str, Drive]:
    if part == ROOT:
        return ROOT, next(drive for drive in machine.drives if drive.boot)
    return data_drive(machine, part)


METAL_FAULTS: Mapping[str, Fault] = {
    fault.name: fault
    for fault in (
        Fault(
            name="wrong-serial",
            does="from its next power-on, the machine's firmware reports another serial than its BMC (a swapped board)",
            shows="the installer, which must not write to it",
            target="NODE",
            apply=_wrong_serial,
        ),
        Fault(
            name="missing-nvme",
            does="from its next power-on, the machine does not see a drive that its BMC still lists (the first data "
            "drive where none is named)",
            shows="the installer: no drive has the root disk's serial, or one of the others is not there",
            target="NODE, NODE:bay2 or NODE:root",
            apply=_missing_nvme,
        ),
        Fault(
            name="pulled-disk",
            does="a data drive is drawn out of its bay while the machine runs (the first one where none is named); "
            "healed, it is back at the next power-on",
            shows="the host: its pool is DEGRADED, and goes on working; the BMC still lists the drive",
            target="NODE, NODE:bay2 or NODE:SERIAL",
            apply=_pulled_disk,
        ),
    )
}


def inject_metal(machines: Mapping[str, Machine], what: str, target: str) -> tuple[Machine, ...]:
    """As `injection.inject_all`, for machines that are virtual metal. Raises `UsageError` for what they cannot show."""
    if what not in (*METAL_FAULTS, *SHARED, BMC_QUIRKS):
        known = ", ".join(sorted((*METAL_FAULTS, *SHARED, BMC_QUIRKS)))
        raise UsageError(f"no {what} with --metal qemu", where="fault", remedy=f"choose from: {known}")
    return inject_all(machines, what, target, METAL_FAULTS)
