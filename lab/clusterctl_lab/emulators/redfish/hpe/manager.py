"""The BMC: service root, manager and update service with the firmware inventory.

ServiceRoot; recorded at /redfish/v1.

The iLO itself; recorded at Managers/1.

Firmware inventory; recorded at UpdateService/FirmwareInventory: numbered, distinguished by name and description.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import identity, paths, power
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    """Return all of these resources."""
    yield from _service_resources(view)
    yield from _manager_resources(view)
    yield from _firmware_resources(view)


_SERVICES = ("Systems", "Chassis", "Managers", "SessionService", "AccountService", "UpdateService")


def _service_resources(view: View) -> Iterator[Resource]:
    """Return the root; `Oem.Clusterctl.Simulated` marks all evidence from this BMC as simulated."""
    machine = view.machine
    yield {
        **head(paths.ROOT, "ServiceRoot.v1_5_1.ServiceRoot", "HPE RESTful Root Service"),
        "Id": "RootService",
        **{name: ref(f"{paths.ROOT}/{name}") for name in _SERVICES},
        "Tasks": ref(f"{paths.ROOT}/TaskService"),
        "Links": {"Sessions": ref(f"{paths.ROOT}/SessionService/Sessions")},
        "Oem": {
            "Hpe": {
                "@odata.context": "/redfish/v1/$metadata#HpeiLOServiceExt.HpeiLOServiceExt",
                "@odata.type": "#HpeiLOServiceExt.v2_4_0.HpeiLOServiceExt",
                "Manager": [
                    {
                        "DefaultLanguage": "en",
                        "HostName": identity.host_name(machine),
                        "ManagerFirmwareVersion": machine.bmc.firmware.removeprefix("iLO 5 v"),
                        "ManagerType": "iLO 5",
                        "Status": {"Health": "OK"},
                    }
                ],
                "Moniker": {"BMC": "iLO", "PRODGEN": "iLO 5", "PRODTAG": "HPE iLO 5", "SYSFAM": "ProLiant"},
                "Sessions": {"LocalLoginEnabled": True, "LDAPEnabled": False, "LoginFailureDelay": 0},
                "System": [{"Status": {"Health": health.rollups(machine).system}}],
            },
            **markers.BMC_OEM,
        },
        "Product": machine.model,
        "ProtocolFeaturesSupported": {
            "ExpandQuery": {"ExpandAll": False, "Levels": True, "Links": False, "MaxLevels": 1, "NoLinks": True},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
        },
        "RedfishVersion": "1.6.0",
        "UUID": identity.uuid(machine),
        "Vendor": "HPE",
    }


RESET = f"{paths.MANAGER}/Actions/Manager.Reset"
_INTERFACES = f"{paths.MANAGER}/EthernetInterfaces"


def _manager_resources(view: View) -> Iterator[Resource]:
    machine = view.machine
    yield collection(f"{paths.ROOT}/Managers", "ManagerCollection", "Managers", [paths.MANAGER])
    yield {
        **head(paths.MANAGER, "Manager.v1_5_1.Manager", "Manager"),
        "Actions": {
            "#Manager.Reset": {
                "ResetType@Redfish.AllowableValues": ["ForceRestart", "GracefulRestart"],
                "target": RESET,
            }
        },
        "EthernetInterfaces": ref(_INTERFACES),
        "FirmwareVersion": machine.bmc.firmware,
        "Links": {
            "ManagerInChassis": ref(paths.CHASSIS),
            "ManagerForServers": [ref(paths.SYSTEM)],
            "ManagerForChassis": [ref(paths.CHASSIS)],
        },
        "LogServices": ref(f"{paths.MANAGER}/LogServices"),
        "ManagerType": "BMC",
        "Model": "iLO 5",
        "Status": {"Health": "OK", "State": "Enabled"},
        "VirtualMedia": ref(f"{paths.MANAGER}/VirtualMedia"),
    }
    members = [f"{_INTERFACES}/1"]
    yield collection(_INTERFACES, "EthernetInterfaceCollection", "Manager Network Interfaces", members)
    yield {
        **head(members[0], "EthernetInterface.v1_4_1.EthernetInterface", "Manager Dedicated Network Interface"),
        "Description": "Configuration of this Manager Network Interface",
        "HostName": identity.host_name(machine),
        "IPv4Addresses": [{"Address": machine.bmc.address, "AddressOrigin": "Static"}],
        "InterfaceEnabled": True,
        "LinkStatus": "LinkUp",
        "MACAddress": machine.bmc.mac.upper(),
        "Status": {"Health": "OK", "State": "Enabled"},
    }


SIMPLE_UPDATE = f"{paths.UPDATE_SERVICE}/Actions/UpdateService.SimpleUpdate"
HTTP_PUSH = "/cgi-bin/uploadFile"


def _firmware_resources(view: View) -> Iterator[Resource]:
    installed = [_software(number, *found) for number, found in enumerate(_installed(view), start=1)]
    members = [software["@odata.id"] for software in installed]
    yield {
        **head(paths.UPDATE_SERVICE, "UpdateService.v1_2_1.UpdateService", "Update Service"),
        "Actions": {
            "#UpdateService.SimpleUpdate": {
                "TransferProtocol@Redfish.AllowableValues": ["HTTP", "HTTPS"],
                "target": SIMPLE_UPDATE,
            }
        },
        "Description": "iLO Update Service",
        "FirmwareInventory": ref(paths.FIRMWARE),
        "HttpPushUri": HTTP_PUSH,
        "ServiceEnabled": True,
    }
    yield collection(paths.FIRMWARE, "SoftwareInventoryCollection", "Firmware Inventory Collection", members)
    yield from installed


def _installed(view: View) -> Iterator[tuple[str, str, str]]:
    """Name, description, version."""
    machine = view.machine
    yield "iLO 5", "SystemBMC", machine.bmc.firmware.removeprefix("iLO 5 v")
    yield "System ROM", "SystemRomActive", machine.bios_version
    for hca in machine.hcas:
        yield hca.model, f"PCI-E Slot {hca.rail + 1}", hca.firmware
    for place in range(1, len(machine.psus) + 1):
        yield "Power Supply", f"Bay {place}", power.SUPPLY_FIRMWARE


def _software(number: int, name: str, description: str, version: str) -> Resource:
    return {
        **head(f"{paths.FIRMWARE}/{number}", "SoftwareInventory.v1_2_0.SoftwareInventory", name),
        "Description": description,
        "Status": {"Health": "OK", "State": "Enabled"},
        "Updateable": True,
        "Version": version,
    }
