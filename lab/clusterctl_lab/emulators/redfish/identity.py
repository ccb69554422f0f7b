"""The values that a machine's BMC and its firmware report alike."""

from __future__ import annotations

from clusterctl_lab.emulators.redfish.dell import identity as dell
from clusterctl_lab.emulators.redfish.hpe import identity as hpe
from clusterctl_lab.emulators.redfish.openbmc import identity as openbmc
from clusterctl_lab.emulators.redfish.supermicro import identity as supermicro
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor

_UUID = {
    Vendor.DELL: dell.uuid,
    Vendor.HPE: hpe.uuid,
    Vendor.OPENBMC: openbmc.uuid,
    Vendor.SUPERMICRO: supermicro.uuid,
}


def system_uuid(machine: Machine) -> str:
    """The UUID of its ComputerSystem, which the firmware shows the OS too (SMBIOS 3.6, type 1)."""
    return _UUID[machine.bmc.vendor](machine)
