"""The iLO itself; recorded at Managers/1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import View

RESET = f"{paths.MANAGER}/Actions/Manager.Reset"
_INTERFACES = f"{paths.MANAGER}/EthernetInterfaces"


def resources(view: View) -> Iterator[Resource]:
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
