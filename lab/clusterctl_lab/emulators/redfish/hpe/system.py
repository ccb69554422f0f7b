"""ComputerSystem; recorded at Systems/1. `Oem.Hpe.PostState` shows when POST is over (HpeComputerSystemExt schema)."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.hpe.components import MODEL
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.services.boot import boot_object
from clusterctl_lab.emulators.redfish.traits import BootRules
from clusterctl_lab.emulators.redfish.view import View

RESET_TYPES = ("On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton", "GracefulRestart")
"""Recorded, but for Nmi: there is no PowerCycle."""
RESET = f"{paths.SYSTEM}/Actions/ComputerSystem.Reset"
SYSTEM_RESET = f"{paths.SYSTEM}/Actions/Oem/Hpe/HpeComputerSystemExt.SystemReset"
AUX_CYCLE = "AuxCycle"


def resources(view: View, boot: BootRules) -> Iterator[Resource]:
    yield collection(f"{paths.ROOT}/Systems", "ComputerSystemCollection", "Computer Systems", [paths.SYSTEM])
    machine = view.machine
    reported = health.rollups(machine)
    yield {
        **head(paths.SYSTEM, "ComputerSystem.v1_13_0.ComputerSystem", "Computer System"),
        "Actions": {"#ComputerSystem.Reset": {"ResetType@Redfish.AllowableValues": list(RESET_TYPES), "target": RESET}},
        "AssetTag": "",
        "Bios": ref(f"{paths.SYSTEM}/Bios"),
        "BiosVersion": machine.bios_version,
        "Boot": boot_object(view, boot, f"{paths.SYSTEM}/BootOptions"),
        "EthernetInterfaces": ref(f"{paths.SYSTEM}/EthernetInterfaces"),
        "HostName": "",
        "Links": {"ManagedBy": [ref(paths.MANAGER)], "Chassis": [ref(paths.CHASSIS)]},
        "LogServices": ref(f"{paths.SYSTEM}/LogServices"),
        "Manufacturer": machine.manufacturer,
        "Memory": ref(paths.MEMORY),
        "MemorySummary": {"Status": {"HealthRollup": reported.memory}, "TotalSystemMemoryGiB": machine.memory_gib},
        "Model": machine.model,
        "Oem": {"Hpe": _hpe(view)},
        "PowerState": "On" if view.power else "Off",
        "ProcessorSummary": {"Count": machine.cpus, "Model": MODEL, "Status": {"HealthRollup": "OK"}},
        "Processors": ref(f"{paths.SYSTEM}/Processors"),
        "SKU": identity.PRODUCT,
        "SerialNumber": machine.serial,
        "Status": {"Health": reported.system, "HealthRollup": reported.system, "State": "Enabled"},
        "Storage": ref(f"{paths.SYSTEM}/Storage"),
        "SystemType": "Physical",
        "UUID": identity.uuid(machine),
    }


def _hpe(view: View) -> Resource:
    reported = health.rollups(view.machine)
    parts = {
        **dict.fromkeys(("BiosOrHardwareHealth", "Processors"), health.OK),
        "Fans": reported.fans,
        "Memory": reported.memory,
        "PowerSupplies": reported.power,
        "Storage": reported.storage,
        "Temperatures": reported.temperature,
    }
    return {
        "@odata.context": "/redfish/v1/$metadata#HpeComputerSystemExt.HpeComputerSystemExt",
        "@odata.type": "#HpeComputerSystemExt.v2_12_0.HpeComputerSystemExt",
        "Actions": {
            "#HpeComputerSystemExt.SystemReset": {
                "ResetType@Redfish.AllowableValues": [AUX_CYCLE],
                "target": SYSTEM_RESET,
            }
        },
        "AggregateHealthStatus": {
            "AggregateServerHealth": reported.system,
            "Network": {"Status": {"Health": "Unknown"}},
            "PowerSupplyRedundancy": "Redundant",
            **{part: {"Status": {"Health": worst}} for part, worst in parts.items()},
        },
        "PostState": _post_state(view),
    }


def _post_state(view: View) -> str:
    if not view.power:
        return "PowerOff"
    return "InPost" if view.posting else "FinishedPost"
