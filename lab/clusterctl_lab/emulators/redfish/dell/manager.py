"""The iDRAC itself; recorded at Managers/iDRAC.Embedded.1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, counted, head, ref, refs, status
from clusterctl_lab.emulators.redfish.view import View


def resources(view: View) -> Iterator[Resource]:
    yield collection(f"{paths.ROOT}/Managers", "ManagerCollection", "Manager", [paths.MANAGER])
    yield _manager(view)
    interfaces = f"{paths.MANAGER}/EthernetInterfaces"
    members = [f"{interfaces}/NIC.1"]
    yield collection(interfaces, "EthernetInterfaceCollection", "Ethernet Network Interface Collection", members)
    yield _interface(members[0], view)


def _manager(view: View) -> Resource:
    return {
        **head(paths.MANAGER, "Manager.v1_12_0.Manager", "Manager"),
        "Actions": {
            "#Manager.Reset": {
                "ResetType@Redfish.AllowableValues": ["GracefulRestart"],
                "target": paths.MANAGER_RESET,
            }
        },
        "Description": "BMC",
        "EthernetInterfaces": ref(f"{paths.MANAGER}/EthernetInterfaces"),
        "FirmwareVersion": view.machine.bmc.firmware,
        "Links": {
            **refs("ManagerForChassis", [paths.CHASSIS]),
            **refs("ManagerForServers", [paths.SYSTEM]),
            "ManagerInChassis": ref(paths.CHASSIS),
        },
        "LogServices": ref(f"{paths.MANAGER}/LogServices"),
        "ManagerType": "BMC",
        "Model": "16G Monolithic",
        "PowerState": "On",
        "Status": status(),
        "VirtualMedia": ref(paths.VIRTUAL_MEDIA),
    }


def _interface(path: str, view: View) -> Resource:
    """Return the BMC's own port: its MAC address is in lower case, the host's in upper case, both as recorded."""
    bmc = view.machine.bmc
    return {
        **head(path, "EthernetInterface.v1_6_4.EthernetInterface", "Manager Ethernet Interface"),
        "Description": "Management Network Interface",
        "EthernetInterfaceType": "Physical",
        "HostName": f"idrac-{view.machine.serial}",
        **counted("IPv4Addresses", [{"Address": bmc.address, "AddressOrigin": "Static"}]),
        "InterfaceEnabled": True,
        "Links": {"Chassis": ref(paths.CHASSIS)},
        "MACAddress": bmc.mac,
        "PermanentMACAddress": bmc.mac,
        "Status": status(),
    }
