"""Which vendor's BMC a machine has."""

from __future__ import annotations

from collections.abc import Mapping

from clusterctl_lab.emulators.redfish.dell import DELL
from clusterctl_lab.emulators.redfish.hpe import HPE
from clusterctl_lab.emulators.redfish.openbmc import OPENBMC
from clusterctl_lab.emulators.redfish.profile import Profile
from clusterctl_lab.emulators.redfish.supermicro import SUPERMICRO
from clusterctl_lab.machine import Machine
from clusterctl_lab.vendor import Vendor

PROFILES: Mapping[Vendor, Profile] = {
    Vendor.DELL: DELL,
    Vendor.SUPERMICRO: SUPERMICRO,
    Vendor.HPE: HPE,
    Vendor.OPENBMC: OPENBMC,
}


def profile_of(machine: Machine) -> Profile:
    """The profile that its BMC is served with."""
    return PROFILES[machine.bmc.vendor]
