"""The BIOS: attributes, their registry, and the entries of the boot order.

BIOS attributes; recorded at Systems/System.Embedded.1/Bios: some of 455, with the recorded values as delivered.
The BIOS's attribute registry contains the permitted values, as in Dell's manual of BIOS settings.

The BIOS's attribute registry; recorded at Systems/System.Embedded.1/Bios/BiosRegistry, some fields of each entry.
Registries contains its location (DMTF MessageRegistryFile schema; Dell's ids are the registry's name).

The entries of the boot order; recorded at Systems/System.Embedded.1/BootOptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from clusterctl_lab.boot import options
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.profile import BiosAttribute
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.services.bios import bios_resource, pending_resource
from clusterctl_lab.emulators.redfish.services.boot import option_resource
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _bios_resources(view)
    yield from _registries_resources(view)
    yield from _boot_options_resources(view)


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


def _bios_resources(view: View) -> Iterator[Resource]:
    yield {**bios_resource(paths.BIOS, paths.BIOS_SETTINGS, view, REGISTRY), "Id": "Bios"}
    yield {**pending_resource(paths.BIOS_SETTINGS, view, REGISTRY), "Oem": {"Dell": {"Jobs": ref(paths.JOBS)}}}


def _registries_resources(view: View) -> Iterator[Resource]:
    del view
    file = f"{paths.REGISTRIES}/{REGISTRY}"
    yield collection(paths.REGISTRIES, "MessageRegistryFileCollection", "Registry File Collection", [file])
    yield {
        **head(file, "MessageRegistryFile.v1_1_0.MessageRegistryFile", "BIOS Attribute Registry File"),
        "Languages": ["En"],
        "Location": [{"Language": "En", "Uri": paths.BIOS_REGISTRY}],
        "Registry": REGISTRY,
    }
    yield {
        **head(paths.BIOS_REGISTRY, "AttributeRegistry.v1_3_6.AttributeRegistry", "BIOS Attribute Registry"),
        "Id": REGISTRY,
        "Language": "en",
        "OwningEntity": "Dell",
        "RegistryEntries": {"Attributes": [_entry(name, one) for name, one in ATTRIBUTES.items()]},
    }


def _entry(name: str, attribute: BiosAttribute) -> Resource:
    kind = "Enumeration" if attribute.allowed else "Integer" if isinstance(attribute.default, int) else "String"
    values = {"Value": [{"ValueName": value} for value in attribute.allowed]} if attribute.allowed else {}
    return {
        "AttributeName": name,
        "CurrentValue": None,
        "Hidden": False,
        "Immutable": attribute.read_only,
        "ReadOnly": attribute.read_only,
        "ResetRequired": True,
        "Type": kind,
        **values,
    }


def _boot_options_resources(view: View) -> Iterator[Resource]:
    entries = [option_resource(paths.BOOT_OPTIONS, option) for option in options(view.machine)]
    members = [entry["@odata.id"] for entry in entries]
    yield collection(paths.BOOT_OPTIONS, "BootOptionCollection", "Boot Options Collection", members)
    yield from entries
