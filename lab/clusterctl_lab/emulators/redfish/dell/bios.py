"""BIOS attributes; recorded at Systems/System.Embedded.1/Bios: some of 455, with the recorded values as delivered.

The BIOS's attribute registry contains the permitted values, as in Dell's manual of BIOS settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.profile import BiosAttribute
from clusterctl_lab.emulators.redfish.resource import Resource, ref
from clusterctl_lab.emulators.redfish.services.bios import bios_resource, pending_resource
from clusterctl_lab.emulators.redfish.view import View

REGISTRY = "BiosAttributeRegistry.v1_0_3"
_ON_OFF = ("Enabled", "Disabled")
_PROFILES = (
    "PerfPerWattOptimizedDapc",
    "PerfPerWattOptimizedOs",
    "PerfOptimized",
    "PerfWorkStationOptimized",
    "Custom",
)
ATTRIBUTES: Mapping[str, BiosAttribute] = {
    "AcPwrRcvry": BiosAttribute("Last", ("On", "Last", "Off")),
    "AcPwrRcvryUserDelay": BiosAttribute(120),
    "BootMode": BiosAttribute("Uefi", ("Bios", "Uefi")),
    "LogicalProc": BiosAttribute("Enabled", _ON_OFF),
    "MmioAbove4Gb": BiosAttribute("Enabled", _ON_OFF),
    "NodeInterleave": BiosAttribute("Disabled", _ON_OFF),
    "ProcC1E": BiosAttribute("Disabled", _ON_OFF),
    "ProcCStates": BiosAttribute("Disabled", (*_ON_OFF, "Autonomous")),
    "ProcTurboMode": BiosAttribute("Enabled", _ON_OFF),
    "ProcVirtualization": BiosAttribute("Enabled", _ON_OFF),
    "SecureBoot": BiosAttribute("Disabled", _ON_OFF),
    "SriovGlobalEnable": BiosAttribute("Enabled", _ON_OFF),
    "SubNumaCluster": BiosAttribute("Disabled", ("Disabled", "2-Way", "4-Way")),
    "SysProfile": BiosAttribute("PerfOptimized", _PROFILES),
    "SystemModelName": BiosAttribute("PowerEdge XE9680", read_only=True),
}


def resources(view: View) -> Iterator[Resource]:
    yield {**bios_resource(paths.BIOS, paths.BIOS_SETTINGS, view, REGISTRY), "Id": "Bios"}
    yield {**pending_resource(paths.BIOS_SETTINGS, view, REGISTRY), "Oem": {"Dell": {"Jobs": ref(paths.JOBS)}}}
