"""ServiceRoot; recorded at /redfish/v1: the vendor is AMI."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish.openbmc import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, head, ref
from clusterctl_lab.emulators.redfish.view import View

_SERVICES = ("Systems", "Chassis", "Managers", "SessionService", "AccountService", "UpdateService")


def resources(view: View) -> Iterator[Resource]:
    """Return the root; `Oem.Clusterctl.Simulated` marks all evidence from this BMC as simulated."""
    yield {
        **head(paths.ROOT, "ServiceRoot.v1_13_0.ServiceRoot", "Root Service"),
        "Id": "RootService",
        "Description": "The service root for all Redfish requests on this host",
        **{name: ref(f"{paths.ROOT}/{name}") for name in _SERVICES},
        "Tasks": ref(f"{paths.ROOT}/TaskService"),
        "Links": {"Sessions": ref(f"{paths.ROOT}/SessionService/Sessions")},
        "Oem": {
            "Ami": {"@odata.type": "#AMIServiceRoot.v1_0_0.AMIServiceRoot", "RtpVersion": "13.03"},
            **markers.BMC_OEM,
        },
        "Product": "AMI Redfish Server",
        "ProtocolFeaturesSupported": {
            "DeepOperations": {"DeepPATCH": False, "DeepPOST": False},
            "ExcerptQuery": False,
            "ExpandQuery": {"ExpandAll": True, "Levels": True, "Links": True, "MaxLevels": 5, "NoLinks": True},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
        },
        "RedfishVersion": "1.11.0",
        "UUID": identity.uuid(view.machine),
        "Vendor": "AMI",
    }
