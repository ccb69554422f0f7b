"""The BMC itself; recorded at Managers/1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.supermicro import identity, paths
from clusterctl_lab.emulators.redfish.view import View

RESET = f"{paths.MANAGER}/Actions/Manager.Reset"
_INTERFACES = f"{paths.MANAGER}/EthernetInterfaces"


def resources(view: View) -> Iterator[Resource]:
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
