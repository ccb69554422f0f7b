"""The server; recorded at Chassis/1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Computer System Chassis", [paths.CHASSIS])
    yield {
        **head(paths.CHASSIS, "Chassis.v1_11_2.Chassis", "Computer System Chassis"),
        "AssetTag": "",
        "ChassisType": "RackMount",
        "Links": {
            "ManagedBy": [ref(paths.MANAGER)],
            "ComputerSystems": [ref(paths.SYSTEM)],
            "Drives": [ref(paths.drive(machine, drive)) for drive in machine.drives],
        },
        "Manufacturer": machine.manufacturer,
        "Model": machine.model,
        "NetworkAdapters": ref(paths.ADAPTERS),
        "PCIeDevices": ref(paths.PCIE_DEVICES),
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PowerState": "On" if view.power else "Off",
        "SKU": identity.PRODUCT,
        "SerialNumber": machine.serial,
        "Status": {"Health": health.rollups(machine).system, "State": "Enabled"},
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
    }
