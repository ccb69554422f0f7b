"""The services that look alike everywhere, from a profile's `Paths`: sessions, accounts, BIOS, virtual media, tasks.

Recorded at Supermicro, HPE and AMI with the same properties; where one leaves some of them out, the DMTF schemas have
them.
"""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.boot import options
from clusterctl_lab.emulators.redfish.profile import Paths
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.services.accounts import account, account_collection, account_service
from clusterctl_lab.emulators.redfish.services.bios import bios_resource, pending_resource
from clusterctl_lab.emulators.redfish.services.boot import option_resource
from clusterctl_lab.emulators.redfish.services.media import device_resource
from clusterctl_lab.emulators.redfish.services.tasks import task_collection, task_resource, task_service
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import View

REGISTRY = "BiosAttributeRegistry.v1_0_0"
_MEDIA_TYPES = ("CD", "DVD")


def resources(paths: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    """All of them; `Paths` holds which of them exist."""
    yield from _sessions(paths, traits, view)
    yield from _accounts(paths, traits, view)
    yield from _boot_options(paths, view)
    yield from _media(paths, view)
    if paths.bios:
        yield bios_resource(paths.bios, paths.bios_settings, view, REGISTRY)
        yield pending_resource(paths.bios_settings, view, REGISTRY)
    if paths.tasks:
        yield task_service(owner(paths.tasks), paths.tasks)
        yield task_collection(paths.tasks, view.tasks)
        yield from (task_resource(f"{paths.tasks}/{task.id}", task) for task in view.tasks)


def owner(path: str) -> str:
    """The resource above."""
    return path.rsplit("/", 1)[0]


def _sessions(paths: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    yield {
        **head(owner(paths.sessions), "SessionService.v1_1_6.SessionService", "Session Service"),
        "Description": "Session Service",
        "ServiceEnabled": True,
        "SessionTimeout": int(traits.session_timeout),
        "Sessions": ref(paths.sessions),
        "Status": {"Health": "OK", "State": "Enabled"},
    }
    members = []
    for session in view.sessions:
        path = f"{paths.sessions}/{session.id}"
        members.append(path)
        yield {**head(path, "Session.v1_3_0.Session", "User Session"), "UserName": session.user}
    yield collection(paths.sessions, "SessionCollection", "Session Collection", members)


def _accounts(paths: Paths, traits: Traits, view: View) -> Iterator[Resource]:
    path = f"{paths.accounts}/{traits.account_id}"
    yield account_service(owner(paths.accounts), paths.accounts, traits)
    yield account_collection(paths.accounts, (path,))
    yield account(path, view)


def _boot_options(paths: Paths, view: View) -> Iterator[Resource]:
    path = f"{paths.system}/BootOptions"
    found = [option_resource(path, option) for option in options(view.machine)]
    members = [option["@odata.id"] for option in found]
    yield collection(path, "BootOptionCollection", "Boot Option Collection", members)
    yield from found


def _media(paths: Paths, view: View) -> Iterator[Resource]:
    if paths.media:
        yield collection(owner(paths.media[0]), "VirtualMediaCollection", "Virtual Media Collection", paths.media)
        yield from (device_resource(path, view, _MEDIA_TYPES, "Virtual Media") for path in paths.media)
