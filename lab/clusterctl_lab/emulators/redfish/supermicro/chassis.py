"""The server and the HGX baseboard in it; recorded at Chassis/1 and Chassis/UBB_1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import identity, paths
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    members = [paths.CHASSIS, paths.BASEBOARD, *paths.backplanes(view.machine)]
    yield collection(f"{paths.ROOT}/Chassis", "ChassisCollection", "Chassis Collection", members)
    yield _server(view)
    yield {
        **head(paths.BASEBOARD, "Chassis.v1_11_0.Chassis", "GPU Baseboard"),
        "ChassisType": "Zone",
        "Manufacturer": "NVIDIA",
        "Model": "HGX_H100",
        "SerialNumber": identity.baseboard_serial(view.machine),
        "PartNumber": "935-24287-0000-000",
    }


def _server(view: View) -> Resource:
    machine = view.machine
    worst = health.rollups(machine).system
    return {
        **head(paths.CHASSIS, "Chassis.v1_14_0.Chassis", "Computer System Chassis"),
        "ChassisType": "RackMount",
        "Manufacturer": machine.manufacturer,
        "Model": "X13DEG-OAD",
        "SerialNumber": identity.chassis_serial(machine),
        "PartNumber": "CSE-GP801TS-R000NPF",
        "AssetTag": None,
        "PowerState": "On" if view.power else "Off",
        "Status": {"State": "Enabled", "Health": worst, "HealthRollup": worst},
        "Power": ref(f"{paths.CHASSIS}/Power"),
        "PCIeDevices": ref(paths.PCIE_DEVICES),
        "Thermal": ref(f"{paths.CHASSIS}/Thermal"),
        "NetworkAdapters": ref(paths.ADAPTERS),
        "Links": {
            "ComputerSystems": [ref(paths.SYSTEM)],
            "ManagedBy": [ref(paths.MANAGER)],
            "ManagersInChassis": [ref(paths.MANAGER)],
        },
        "Oem": {
            "Supermicro": {
                "@odata.type": "#SmcChassisExtensions.v1_0_0.Chassis",
                "BoardSerialNumber": identity.board_serial(machine),
                "BoardID": "0x1d14",
            }
        },
    }
