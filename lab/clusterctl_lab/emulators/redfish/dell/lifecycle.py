"""The Lifecycle Controller's readiness; the service is recorded at Managers/iDRAC.Embedded.1/Oem/Dell/DellLCService,
the answer to its question is as Dell's iDRAC Redfish API guide has it.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.view import View


def resources(_: View) -> Iterator[Resource]:
    yield {
        **head(paths.LC_SERVICE, "DellLCService.v1_3_0.DellLCService", "DellLCService"),
        "Actions": {"#DellLCService.GetRemoteServicesAPIStatus": {"target": paths.LC_STATUS}},
    }


def remote_services(view: View) -> Resource:
    """DellLCService.GetRemoteServicesAPIStatus: not ready while the machine is in POST."""
    server = "PoweredOff" if not view.power else "InPOST" if view.posting else "OutOfPOST"
    ready = "NotReady" if view.posting else "Ready"
    return {
        "LCStatus": "InUse" if view.posting else "Ready",
        "RTStatus": ready,
        "ServerStatus": server,
        "Status": ready,
    }
