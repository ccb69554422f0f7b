"""The BMC: service root (recorded at /redfish/v1), Managers/1 and UpdateService with its firmware inventory.

ServiceRoot; recorded at /redfish/v1, where it names neither vendor nor product but below `Oem`.

The BMC itself; recorded at Managers/1.

Firmware inventory; recorded at UpdateService/FirmwareInventory: BIOS, BMC, GPU1, HGX_FW_GPU_SXM_1, NIC1.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import identity, network, paths, pcie, power
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _service_resources(view)
    yield from _manager_resources(view)
    yield from _firmware_resources(view)


_SERVICES = ("Systems", "Chassis", "Managers", "SessionService", "AccountService", "UpdateService")


def _service_resources(view: View) -> Iterator[Resource]:
    """Return the root; `Oem.Clusterctl.Simulated` marks all evidence from this BMC as simulated."""
    yield {
        **head(paths.ROOT, "ServiceRoot.v1_9_0.ServiceRoot", "Root Service"),
        "Id": "ServiceRoot",
        "RedfishVersion": "1.11.0",
        "UUID": identity.uuid(view.machine),
        **{name: ref(f"{paths.ROOT}/{name}") for name in _SERVICES},
        "Tasks": ref(f"{paths.ROOT}/TaskService"),
        "Links": {"Sessions": ref(f"{paths.ROOT}/SessionService/Sessions")},
        "Oem": {"Supermicro": {}, **markers.BMC_OEM},
        "ProtocolFeaturesSupported": {
            "DeepOperations": {"DeepPATCH": False, "DeepPOST": False},
            "ExcerptQuery": False,
            "ExpandQuery": {"ExpandAll": True, "Levels": True, "Links": True, "MaxLevels": 2, "NoLinks": True},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
        },
    }


RESET = f"{paths.MANAGER}/Actions/Manager.Reset"
_INTERFACES = f"{paths.MANAGER}/EthernetInterfaces"


def _manager_resources(view: View) -> Iterator[Resource]:
    bmc = view.machine.bmc
    yield collection(f"{paths.ROOT}/Managers", "ManagerCollection", "Manager Collection", [paths.MANAGER])
    yield _manager(view)
    members = [f"{_INTERFACES}/1"]
    yield collection(_INTERFACES, "EthernetInterfaceCollection", "Ethernet Interface Collection", members)
    yield {
        **head(members[0], "EthernetInterface.v1_6_3.EthernetInterface", "Manager Ethernet Interface"),
        "Description": "Management Network Interface",
        "Status": {"State": "Enabled", "Health": "OK"},
        "LinkStatus": "LinkUp",
        "MACAddress": bmc.mac.upper(),
        "HostName": None,
        "IPv4Addresses": [{"Address": bmc.address, "AddressOrigin": "Static"}],
    }


def _manager(view: View) -> Resource:
    return {
        **head(paths.MANAGER, "Manager.v1_11_0.Manager", "Manager"),
        "Description": "BMC",
        "ManagerType": "BMC",
        "UUID": identity.uuid(view.machine),
        "Model": "ASPEED",
        "FirmwareVersion": view.machine.bmc.firmware,
        "Status": {"State": "Enabled", "Health": "OK"},
        "EthernetInterfaces": ref(_INTERFACES),
        "LogServices": ref(f"{paths.MANAGER}/LogServices"),
        "VirtualMedia": ref(f"{paths.MANAGER}/VirtualMedia"),
        "Links": {
            "ManagerForServers": [ref(paths.SYSTEM)],
            "ManagerForChassis": [ref(paths.CHASSIS)],
            "ManagerInChassis": ref(paths.CHASSIS),
        },
        "Actions": {"#Manager.Reset": {"target": RESET, "ResetType@Redfish.AllowableValues": ["GracefulRestart"]}},
    }


MULTIPART_PUSH = f"{paths.UPDATE_SERVICE}/upload"
SIMPLE_UPDATE = f"{paths.UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"


def _firmware_resources(view: View) -> Iterator[Resource]:
    installed = list(_installed(view))
    members = [software["@odata.id"] for software in installed]
    yield {
        **head(paths.UPDATE_SERVICE, "UpdateService.v1_8_4.UpdateService", "Update Service"),
        "Description": "Service for updating firmware and includes inventory of firmware",
        "Status": {"State": "Enabled", "Health": "OK", "HealthRollup": "OK"},
        "ServiceEnabled": True,
        "MultipartHttpPushUri": MULTIPART_PUSH,
        "FirmwareInventory": ref(paths.FIRMWARE),
        "Actions": {"#UpdateService.SimpleUpdate": {"target": SIMPLE_UPDATE}},
    }
    yield collection(paths.FIRMWARE, "SoftwareInventoryCollection", "Firmware Inventory Collection", members)
    yield from installed


def _installed(view: View) -> Iterator[Resource]:
    machine = view.machine
    yield _software("BIOS", "BIOS", f"BIOS Date: 08/04/2023 Ver {machine.bios_version}", updateable=True)
    yield _software("BMC", "BMC", machine.bmc.firmware, updateable=True)
    for gpu in machine.gpus:
        number = gpu.index + 1
        yield _software(f"GPU{number}", f"GPU{number} System Slot{number}", pcie.GPU_FIRMWARE)
        yield _software(f"HGX_FW_GPU_SXM_{number}", "Software Inventory", pcie.GPU_FIRMWARE, updateable=True)
    for hca in machine.hcas:
        number = paths.hca_number(hca)
        yield _software(f"NIC{number}", f"NIC{number} System Slot{number} {hca.model}", hca.firmware)
    onboard = f"NIC{paths.ONBOARD}"
    yield _software(onboard, f"{onboard} RISER 0 slot 1 {network.ONBOARD_MODEL}", network.ONBOARD_FIRMWARE)
    for place in range(1, len(machine.psus) + 1):
        yield _software(f"PowerSupply{place}", f"Power supply {place}", power.SUPPLY_FIRMWARE)


def _software(name: str, title: str, version: str, *, updateable: bool = False) -> Resource:
    return {
        **head(f"{paths.FIRMWARE}/{name}", "SoftwareInventory.v1_3_0.SoftwareInventory", title),
        "Updateable": updateable,
        "Version": version,
        "Status": {"State": "Enabled", "Health": "OK"},
    }
