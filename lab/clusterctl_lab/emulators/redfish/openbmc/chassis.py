"""The DGX itself; recorded at Chassis/DGX."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.openbmc import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    modules = [paths.gpu_chassis(gpu) for gpu in machine.gpus]
    members = [paths.CHASSIS, paths.HGX_CHASSIS, *modules]
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Chassis Collection", members)
    worst = health.rollups(machine).system
    yield {
        **head(paths.CHASSIS, "Chassis.v1_15_0.Chassis", "High Level Chassis"),
        "AssetTag": "Default string",
        "ChassisType": "Other",
        "Description": "High Level Chassis instance",
        "Links": {
            **refs("ComputerSystems", [paths.SYSTEM]),
            **refs("Drives", [paths.drive(machine, drive) for drive in machine.drives]),
            **refs("ManagedBy", [paths.MANAGER]),
        },
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "NetworkAdapters": ref(paths.ADAPTERS),
        "PartNumber": "965-24387-0002-000",
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PowerState": "On" if view.power else "Off",
        "PowerSubsystem": ref(f"{paths.CHASSIS}/PowerSubsystem"),
        "SKU": "920-24387-2540-000",
        "SerialNumber": identity.chassis_serial(machine),
        "Status": {"Health": worst, "HealthRollup": worst, "State": "Enabled"},
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
    }
