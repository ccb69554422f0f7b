"""The BMC itself; recorded at Managers/BMC."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.openbmc import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref, refs
from clusterctl_lab.emulators.redfish.view import View

RESET = f"{paths.MANAGER}/Actions/Manager.Reset"
_INFO = f"{paths.MANAGER}/ResetActionInfo"
_INTERFACES = f"{paths.MANAGER}/EthernetInterfaces"


def resources(view: View) -> Iterator[Resource]:
    bmc = view.machine.bmc
    managers = [paths.MANAGER, paths.HGX_MANAGER]
    yield collection(f"{paths.ROOT}/Managers", "ManagerCollection", "Manager Collection", managers)
    yield {
        **head(paths.MANAGER, "Manager.v1_14_0.Manager", "Manager"),
        "Actions": {"#Manager.Reset": {"@Redfish.ActionInfo": _INFO, "target": RESET}},
        "EthernetInterfaces": ref(_INTERFACES),
        "FirmwareVersion": bmc.firmware,
        "Links": {
            **refs("ManagerForChassis", [paths.CHASSIS]),
            **refs("ManagerForServers", [paths.SYSTEM]),
        },
        "LogServices": ref(f"{paths.MANAGER}/LogServices"),
        "ManagerType": "BMC",
        "PowerState": "On",
        "Status": {"Health": "OK", "State": "Enabled"},
        "VirtualMedia": ref(f"{paths.MANAGER}/VirtualMedia"),
    }
    parameter = {"AllowableValues": ["ForceRestart"], "DataType": "String", "Name": "ResetType", "Required": True}
    yield {**head(_INFO, "ActionInfo.v1_1_2.ActionInfo", "ResetAction"), "Parameters": [parameter]}
    members = [f"{_INTERFACES}/eth0"]
    yield collection(_INTERFACES, "EthernetInterfaceCollection", "Ethernet Interface Collection", members)
    yield {
        **head(members[0], "EthernetInterface.v1_6_2.EthernetInterface", "eth0"),
        "IPv4Addresses": [{"Address": bmc.address, "AddressOrigin": "Static"}],
        "InterfaceEnabled": True,
        "LinkStatus": "LinkUp",
        "MACAddress": bmc.mac,
        "Status": {"Health": "OK", "State": "Enabled"},
    }
