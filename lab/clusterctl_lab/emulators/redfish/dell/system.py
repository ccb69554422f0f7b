"""ComputerSystem and its Ethernet interfaces; recorded at Systems/System.Embedded.1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import identity, paths
from clusterctl_lab.emulators.redfish.dell.components import CPU_MODEL, THREADS_PER_CORE
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs, status
from clusterctl_lab.emulators.redfish.services.boot import boot_object
from clusterctl_lab.emulators.redfish.traits import BootRules
from clusterctl_lab.emulators.redfish.view import View

RESET_TYPES = (
    "On",
    "ForceOff",
    "ForceRestart",
    "GracefulRestart",
    "GracefulShutdown",
    "PushPowerButton",
    "PowerCycle",
)
BOOT = BootRules()
_OK = status(rollup=True)
_ROLLUPS = {health.OK: "OK", health.CRITICAL: "Error"}
"""Dell's values (schema DellSystem v1_3: OK, Degraded, Error, Unknown)."""


def resources(view: View) -> Iterator[Resource]:
    yield collection(f"{paths.ROOT}/Systems", "ComputerSystemCollection", "Computer System Collection", [paths.SYSTEM])
    yield _system(view)
    interfaces = f"{paths.SYSTEM}/EthernetInterfaces"
    interface = f"{interfaces}/{paths.NIC}-1-1"
    yield collection(interfaces, "EthernetInterfaceCollection", "System Ethernet Interface Collection", [interface])
    yield _ethernet_interface(interface, view)


def _system(view: View) -> Resource:
    machine = view.machine
    reported = health.rollups(machine)
    return {
        **head(paths.SYSTEM, "ComputerSystem.v1_16_0.ComputerSystem", "System"),
        "Actions": {
            "#ComputerSystem.Reset": {
                "target": f"{paths.SYSTEM}/Actions/ComputerSystem.Reset",
                "ResetType@Redfish.AllowableValues": list(RESET_TYPES),
            }
        },
        "AssetTag": "",
        "Bios": ref(paths.BIOS),
        "BiosVersion": machine.bios_version,
        "Boot": boot_object(view, BOOT, paths.BOOT_OPTIONS),
        "EthernetInterfaces": ref(f"{paths.SYSTEM}/EthernetInterfaces"),
        "HostName": "",
        "Links": {**refs("Chassis", [paths.CHASSIS]), **refs("ManagedBy", [paths.MANAGER])},
        "Manufacturer": machine.manufacturer,
        "Memory": ref(paths.MEMORY),
        "MemorySummary": {
            "Status": status(reported.memory, rollup=True),
            "TotalSystemMemoryGiB": machine.memory_gib,
        },
        "Model": machine.model,
        "Oem": {"Dell": {"@odata.type": "#DellOem.v1_3_0.DellOemResources", "DellSystem": _dell_system(view)}},
        **refs("PCIeDevices", paths.pcie_devices(paths.SYSTEM, machine)),
        "BootProgress": {"LastState": _progress(view)},
        "PowerState": "On" if view.power else "Off",
        "ProcessorSummary": {
            "Count": machine.cpus,
            "CoreCount": machine.cores,
            "LogicalProcessorCount": machine.cores * THREADS_PER_CORE,
            "Model": CPU_MODEL,
            "Status": _OK,
        },
        "Processors": ref(f"{paths.SYSTEM}/Processors"),
        "SKU": machine.serial,
        "SerialNumber": identity.serial_number(machine),
        "Status": status(reported.system, rollup=True),
        "Storage": ref(f"{paths.SYSTEM}/Storage"),
        "SystemType": "Physical",
        "UUID": identity.uuid(machine),
    }


def _progress(view: View) -> str:
    """DMTF ComputerSystem, BootProgressTypes; an iDRAC9 reports the state, and its time, which the lab leaves out."""
    if not view.power:
        return "None"
    return "PrimaryProcessorInitializationStarted" if view.posting else "SystemHardwareInitializationComplete"


def _dell_system(view: View) -> Resource:
    """Health roll-ups."""
    machine = view.machine
    reported = health.rollups(machine)
    parts = {
        **dict.fromkeys(("Battery", "CPU", "Current", "Intrusion", "Licensing", "SEL", "Volt"), health.OK),
        "Fan": reported.fans,
        "PS": reported.power,
        "Storage": reported.storage,
        "Temp": reported.temperature,
    }
    return {
        "@odata.context": "/redfish/v1/$metadata#DellSystem.DellSystem",
        "@odata.id": f"{paths.SYSTEM}/Oem/Dell/DellSystem/System.Embedded.1",
        "@odata.type": "#DellSystem.v1_3_0.DellSystem",
        "ChassisServiceTag": machine.serial,
        "Id": "System.Embedded.1",
        "MaxCPUSockets": machine.cpus,
        "Name": "DellSystem",
        "NodeID": machine.serial,
        "SysMemPrimaryStatus": _ROLLUPS[reported.memory],
        "SystemGeneration": "16G Monolithic",
        "UUID": identity.uuid(machine),
        **{f"{part}RollupStatus": _ROLLUPS[rollup] for part, rollup in parts.items()},
    }


def _ethernet_interface(path: str, view: View) -> Resource:
    mac = view.machine.boot_mac.upper()
    return {
        **head(path, "EthernetInterface.v1_6_4.EthernetInterface", "System Ethernet Interface"),
        "Description": "Embedded NIC 1 Port 1 Partition 1",
        "EthernetInterfaceType": "Physical",
        "InterfaceEnabled": True,
        "LinkStatus": "LinkUp" if view.running else "LinkDown",
        "Links": {"Chassis": ref(paths.CHASSIS)},
        "MACAddress": mac,
        "PermanentMACAddress": mac,
        "Status": status(),
        "UefiDevicePath": "PciRoot(0x0)/Pci(0x1C,0x5)/Pci(0x0,0x0)",
    }
