"""AccountService; recorded at AccountService and its Accounts: sixteen fixed slots, root in the second."""

from __future__ import annotations

from collections.abc import Iterator

from clusterctl_lab.emulators.redfish.dell import paths
from clusterctl_lab.emulators.redfish.resource import Resource, head
from clusterctl_lab.emulators.redfish.services.accounts import account, account_collection, account_service
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import View

SLOTS = 16


def resources(view: View, traits: Traits) -> Iterator[Resource]:
    members = tuple(f"{paths.ACCOUNTS}/{slot + 1}" for slot in range(SLOTS))
    ours = f"{paths.ACCOUNTS}/{traits.account_id}"
    yield {**account_service(paths.ACCOUNT_SERVICE, paths.ACCOUNTS, traits), "Id": "RemoteAccountService"}
    yield account_collection(paths.ACCOUNTS, members)
    for path in members:
        yield account(path, view) if path == ours else _empty(path)


def _empty(path: str) -> Resource:
    return {
        **head(path, "ManagerAccount.v1_8_0.ManagerAccount", "User Account"),
        "AccountTypes": ["Redfish"],
        "Enabled": False,
        "Locked": False,
        "Password": None,
        "PasswordChangeRequired": False,
        "RoleId": "None",
        "UserName": "",
    }
