"""The server and its drive backplane; recorded at Chassis/System.Embedded.1 and Chassis/Enclosure.Internal.0-1.

ExtendedReset, the virtual AC cycle, is younger than the recording: Dell's iDRAC9 Redfish API guide, DellOemChassis.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.dell import identity, paths
from clusterctl_lab.emulators.redfish.dell.components import PROCESSORS
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    members = [paths.CHASSIS, paths.ENCLOSURE]
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Chassis Collection", members)
    yield _server(view)
    yield _backplane(view)


def _server(view: View) -> Resource:
    machine = view.machine
    return {
        **head(paths.CHASSIS, "Chassis.v1_16_0.Chassis", "Computer System Chassis"),
        "Actions": {
            "Oem": {
                "#DellOemChassis.ExtendedReset": {
                    "FinalPowerState@Redfish.AllowableValues": ["On", "Off"],
                    "ResetType@Redfish.AllowableValues": ["PowerCycle"],
                    "target": paths.EXTENDED_RESET,
                }
            }
        },
        "ChassisType": "RackMount",
        "Links": _links(view),
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "NetworkAdapters": ref(paths.ADAPTERS),
        "PCIeDevices": ref(f"{paths.CHASSIS}/PCIeDevices"),
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PowerState": "On" if view.power else "Off",
        "PowerSubsystem": ref(f"{paths.CHASSIS}/PowerSubsystem"),
        "SKU": machine.serial,
        "SerialNumber": identity.serial_number(machine),
        "Status": status(health.rollups(machine).system, rollup=True),
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
        "UUID": identity.uuid(machine),
    }


def _links(view: View) -> Resource:
    machine = view.machine
    processors = [*(paths.gpu_fqdd(gpu) for gpu in machine.gpus), *paths.cpu_fqdds(machine)]
    return {
        **refs("ComputerSystems", [paths.SYSTEM]),
        **refs("Contains", [paths.ENCLOSURE]),
        **refs("Drives", []),
        **refs("ManagedBy", [paths.MANAGER]),
        **refs("ManagersInChassis", [paths.MANAGER]),
        **refs("PCIeDevices", paths.pcie_devices(paths.SYSTEM, machine)),
        **refs("Processors", [f"{PROCESSORS}/{fqdd}" for fqdd in processors]),
        **refs("Storage", sorted({paths.storage(drive) for drive in machine.drives})),
    }


def _backplane(view: View) -> Resource:
    in_bays = [drive for drive in view.machine.drives if drive.slot.endswith("Enclosure.Internal.0-1")]
    return {
        **head(paths.ENCLOSURE, "Chassis.v1_16_0.Chassis", "PCIe SSD Backplane 1"),
        "ChassisType": "StorageEnclosure",
        "Description": "PCIe SSD Backplane 1",
        "Links": {
            "ContainedBy": ref(paths.CHASSIS),
            **refs("Drives", [paths.drive(drive) for drive in in_bays]),
            **refs("ManagedBy", [paths.MANAGER]),
            **refs("Storage", sorted({paths.storage(drive) for drive in in_bays})),
        },
        "Manufacturer": None,
        "Model": "PCIe SSD Backplane 1",
        "PowerState": "On" if view.power else "Off",
        "SKU": "",
        "SerialNumber": None,
        "Status": status(rollup=health.of_drives(in_bays)),
    }
