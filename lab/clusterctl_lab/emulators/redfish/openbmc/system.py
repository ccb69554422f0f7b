"""The host's ComputerSystem and its settings object; recorded at Systems/DGX and Systems/DGX/SD.

What is to change about the boot is written to the settings object; its reset types stand in an ActionInfo.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, refs
from clusterctl_lab.emulators.redfish.services.boot import boot_object
from clusterctl_lab.emulators.redfish.traits import BootRules
from clusterctl_lab.emulators.redfish.view import View

RESET_TYPES = ("ForceOff", "ForceRestart", "GracefulShutdown", "On")
RESET = f"{paths.SYSTEM}/Actions/ComputerSystem.Reset"
_INFO = f"{paths.SYSTEM}/ResetActionInfo"
_TYPE = "ComputerSystem.v1_17_0.ComputerSystem"
_OK = {"Health": "OK", "HealthRollup": "OK", "State": "Enabled"}
_SKU = "920-24387-2540-000"


def resources(view: View, boot: BootRules) -> Iterator[Resource]:
    systems = [paths.SYSTEM, paths.HGX_SYSTEM]
    yield collection(f"{paths.ROOT}/Systems", "ComputerSystemCollection", "Systems Collection", systems)
    yield _system(view, boot)
    yield {
        **head(paths.SETTINGS, _TYPE, "System"),
        "Id": "DGX",
        "Description": "System Self",
        "Boot": {**_boot(view, boot), **_allowed(boot)},
        "SystemType": "Physical",
    }
    parameter = {"AllowableValues": list(RESET_TYPES), "DataType": "String", "Name": "ResetType", "Required": True}
    yield {**head(_INFO, "ActionInfo.v1_1_2.ActionInfo", "ResetAction"), "Parameters": [parameter]}


def _system(view: View, boot: BootRules) -> Resource:
    machine = view.machine
    reported = health.rollups(machine)
    return {
        **head(paths.SYSTEM, _TYPE, "System"),
        "@Redfish.Settings": {"@odata.type": "#Settings.v1_2_2.Settings", "SettingsObject": ref(paths.SETTINGS)},
        "Actions": {"#ComputerSystem.Reset": {"@Redfish.ActionInfo": _INFO, "target": RESET}},
        "AssetTag": "Free form asset tag",
        "Bios": ref(f"{paths.SYSTEM}/Bios"),
        "BiosVersion": machine.bios_version,
        "Boot": _boot(view, boot),
        "Description": "System Self",
        "EthernetInterfaces": ref(f"{paths.SYSTEM}/EthernetInterfaces"),
        "HostName": None,
        "Links": {**refs("Chassis", [paths.CHASSIS]), **refs("ManagedBy", [paths.MANAGER])},
        "Manufacturer": machine.manufacturer,
        "Memory": ref(paths.MEMORY),
        "MemorySummary": {
            "Status": {"Health": reported.memory, "HealthRollup": reported.memory, "State": "Enabled"},
            "TotalSystemMemoryGiB": machine.memory_gib,
        },
        "Model": machine.model,
        "PowerState": "On" if view.power else "Off",
        "ProcessorSummary": {"Count": machine.cpus, "Model": None, "Status": _OK},
        "Processors": ref(f"{paths.SYSTEM}/Processors"),
        "SKU": _SKU,
        "SerialNumber": machine.serial,
        "Status": {"Health": reported.system, "HealthRollup": reported.system, "State": "Enabled"},
        "Storage": ref(f"{paths.SYSTEM}/Storage"),
        "SystemType": "Physical",
        "UUID": identity.uuid(machine),
    }


def _boot(view: View, boot: BootRules) -> Resource:
    """Without the values that may be set: those stand in the settings object. No count of the order, as recorded."""
    reported = boot_object(view, boot, f"{paths.SYSTEM}/BootOptions")
    return {key: value for key, value in reported.items() if "@" not in key}


def _allowed(boot: BootRules) -> Resource:
    allowed = {"Enabled": ("Disabled", "Once", "Continuous"), "Mode": boot.modes, "Target": boot.targets}
    return {f"BootSourceOverride{part}@Redfish.AllowableValues": list(values) for part, values in allowed.items()}


def processors(view: View) -> Iterator[Resource]:
    """The CPUs; recorded at Systems/DGX/Processors/DevType1_CPU0, whose model stands in its EffectiveFamily."""
    machine = view.machine
    path = f"{paths.SYSTEM}/Processors"
    members = [f"{path}/DevType1_CPU{number}" for number in range(machine.cpus)]
    yield collection(path, "ProcessorCollection", "Processors Collection", members)
    cores = machine.cores // machine.cpus
    for number, member in enumerate(members):
        yield {
            **head(member, "Processor.v1_10_0.Processor", f"DevType1_CPU{number}"),
            "Links": {"Chassis": ref(paths.CHASSIS), **counted("ConnectedProcessors", [])},
            "Manufacturer": "Intel(R) Corporation",
            "ProcessorArchitecture": "x86",
            "ProcessorId": {"EffectiveFamily": "Intel(R) Xeon(R) Platinum 8480CL"},
            "ProcessorType": "CPU",
            "Socket": f"CPU{number}",
            "Status": {"Health": "OK", "State": "Enabled"},
            "TotalCores": cores,
            "TotalEnabledCores": cores,
            "TotalThreads": cores * 2,
        }
