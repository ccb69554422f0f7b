"""ServiceRoot; recorded at /redfish/v1, where it names neither vendor nor product but below `Oem`."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish.resource import Resource, head, ref
from clusterctl_lab.emulators.redfish.supermicro import identity, paths
from clusterctl_lab.emulators.redfish.view import View

_SERVICES = ("Systems", "Chassis", "Managers", "SessionService", "AccountService", "UpdateService")


def resources(view: View) -> Iterator[Resource]:
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
