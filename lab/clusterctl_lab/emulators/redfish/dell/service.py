"""ServiceRoot, SessionService, sessions; recorded at /redfish/v1 and /redfish/v1/SessionService."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab import markers
from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.view import SessionView, View


def resources(view: View, session_timeout: float) -> Iterator[Resource]:
    yield _root(view)
    yield {
        **head(paths.SESSION_SERVICE, "SessionService.v1_1_8.SessionService", "Session Service"),
        "Description": "Session Service",
        "ServiceEnabled": True,
        "SessionTimeout": int(session_timeout),
        "Sessions": ref(paths.SESSIONS),
    }
    sessions = [_session(session) for session in view.sessions]
    members = [session["@odata.id"] for session in sessions]
    yield collection(paths.SESSIONS, "SessionCollection", "Session Collection", members)
    yield from sessions


def _root(view: View) -> Resource:
    """Return the root; `Oem.Clusterctl.Simulated` marks all evidence from this BMC as simulated."""
    return {
        **head(paths.ROOT, "ServiceRoot.v1_10_0.ServiceRoot", "Root Service"),
        "Id": "RootService",
        "Description": "Root Service",
        "RedfishVersion": "1.13.1",
        "Vendor": "Dell",
        "Product": "Integrated Dell Remote Access Controller",
        "AccountService": ref(paths.ACCOUNT_SERVICE),
        "CertificateService": ref(paths.CERTIFICATE_SERVICE),
        "Chassis": ref(f"{paths.ROOT}/Chassis"),
        "Managers": ref(f"{paths.ROOT}/Managers"),
        "Registries": ref(paths.REGISTRIES),
        "SessionService": ref(paths.SESSION_SERVICE),
        "Systems": ref(f"{paths.ROOT}/Systems"),
        "Tasks": ref(paths.TASK_SERVICE),
        "UpdateService": ref(paths.UPDATE_SERVICE),
        "Links": {"Sessions": ref(paths.SESSIONS)},
        "ProtocolFeaturesSupported": {
            "DeepOperations": {"DeepPATCH": False, "DeepPOST": False},
            "ExcerptQuery": False,
            "ExpandQuery": {"ExpandAll": False, "Levels": False, "Links": False, "NoLinks": False},
            "FilterQuery": False,
            "OnlyMemberQuery": False,
            "SelectQuery": False,
        },
        "Oem": {
            "Dell": {
                "@odata.context": "/redfish/v1/$metadata#DellServiceRoot.DellServiceRoot",
                "@odata.type": "#DellServiceRoot.v1_0_0.DellServiceRoot",
                "IsBranded": 0,
                "ManagerMACAddress": view.machine.bmc.mac,
                "ServiceTag": view.machine.serial,
            },
            **markers.BMC_OEM,
        },
    }


def _session(session: SessionView) -> Resource:
    return {
        **head(f"{paths.SESSIONS}/{session.id}", "Session.v1_3_0.Session", "User Session"),
        "ClientOriginIPAddress": session.client,
        "Description": "User Session",
        "Password": None,
        "SessionType": "Redfish",
        "UserName": session.user,
    }
