"""ServiceRoot; recorded at /redfish/v1."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish import health
from clusterctl_lab.emulators.redfish.hpe import identity, paths
from clusterctl_lab.emulators.redfish.resource import Resource, head, ref
from clusterctl_lab.emulators.redfish.view import View

_SERVICES = ("Systems", "Chassis", "Managers", "SessionService", "AccountService", "UpdateService")


def resources(view: View) -> Iterator[Resource]:
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
