"""ComputerSystem; recorded at Systems/1. Its reset types stand in an ActionInfo only."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.services.boot import boot_object
from clusterctl_lab.emulators.redfish.services.boot_certificates import resources as boot_certificates
from clusterctl_lab.emulators.redfish.supermicro import identity, paths
from clusterctl_lab.emulators.redfish.traits import BootRules
from clusterctl_lab.emulators.redfish.view import View

RESET_TYPES = ("On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "ForceOn", "PowerCycle")
RESET = f"{paths.SYSTEM}/Actions/ComputerSystem.Reset"
_INFO = f"{paths.SYSTEM}/ResetActionInfo"
_OK = {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"}


def resources(view: View, boot: BootRules) -> Iterator[Resource]:
    yield collection(f"{paths.ROOT}/Systems", "ComputerSystemCollection", "Computer System Collection", [paths.SYSTEM])
    yield _system(view, boot)
    parameter = {"Name": "ResetType", "Required": True, "DataType": "String", "AllowableValues": list(RESET_TYPES)}
    yield from boot_certificates(paths.BOOT_CERTIFICATES, view)
    yield {**head(_INFO, "ActionInfo.v1_1_2.ActionInfo", "Reset Action Info"), "Parameters": [parameter]}


def _system(view: View, boot: BootRules) -> Resource:
    machine = view.machine
    reported = health.rollups(machine)
    return {
        **head(paths.SYSTEM, "ComputerSystem.v1_14_0.ComputerSystem", "System"),
        "Description": "Description of server",
        "Status": {"State": "Enabled", "Health": reported.system},
        "SerialNumber": machine.serial,
        "PartNumber": f"{machine.model}-02-CI061",
        "SystemType": "Physical",
        "BiosVersion": machine.bios_version,
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "SKU": "0x1D1415D9",
        "UUID": identity.uuid(machine),
        "ProcessorSummary": {"Count": machine.cpus, "Model": "Intel(R) Xeon(R) processor", "Status": _OK},
        "MemorySummary": {
            "TotalSystemMemoryGiB": machine.memory_gib,
            "MemoryMirroring": "System",
            "Status": {"State": "Enabled", "Health": reported.memory, "HealthRollup": reported.memory},
        },
        "PowerState": "On" if view.power else "Off",
        "Boot": {
            **boot_object(view, boot, f"{paths.SYSTEM}/BootOptions"),
            "Certificates": ref(paths.BOOT_CERTIFICATES),
        },
        "BootProgress": {"LastState": _progress(view)},
        "Processors": ref(f"{paths.SYSTEM}/Processors"),
        "Memory": ref(paths.MEMORY),
        "EthernetInterfaces": ref(f"{paths.SYSTEM}/EthernetInterfaces"),
        "Storage": ref(f"{paths.SYSTEM}/Storage"),
        "LogServices": ref(f"{paths.SYSTEM}/LogServices"),
        "Bios": ref(f"{paths.SYSTEM}/Bios"),
        "VirtualMedia": ref(f"{paths.MANAGER}/VirtualMedia"),
        "Links": {"Chassis": [ref(paths.CHASSIS)], "ManagedBy": [ref(paths.MANAGER)]},
        "Actions": {"#ComputerSystem.Reset": {"target": RESET, "@Redfish.ActionInfo": _INFO}},
    }


def _progress(view: View) -> str:
    """DMTF ComputerSystem, BootProgressTypes; recorded on a running machine: SystemHardwareInitializationComplete."""
    if not view.power:
        return "None"
    return "PrimaryProcessorInitializationStarted" if view.posting else "SystemHardwareInitializationComplete"
