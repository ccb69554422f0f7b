"""AccountService (DMTF AccountService and ManagerAccount schemas; recorded at all three vendors): one account, whose
name and password can be changed. The new password is what logs in from then on.
"""

from __future__ import annotations

from dataclasses import replace

from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, only, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.resource import Resource, collection, head, ref
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.emulators.redfish.view import View
from clusterctl_lab.machine import Machine


class Accounts:
    """PATCH of the account. Sessions that are open stay open (DSP0266 leaves it to the service)."""

    def __init__(self, context: BmcContext) -> None:
        self._context = context
        collection_path = context.profile.paths.accounts
        account = f"{collection_path}/{context.profile.traits.account_id}"
        self.writes: Writes = {("PATCH", account): self._patch} if collection_path else {}

    def _patch(self, request: Request, traits: Traits) -> Answer:
        body = request.json()
        only(body, ("Password", "UserName"))
        if not body:
            raise RefusedError(Problem.PROPERTY_MISSING, "Password")
        name = str(required(body, "UserName")) if "UserName" in body else ""
        password = _password(body["Password"], traits) if "Password" in body else ""
        self._context.world.rewrite(self._context.name, lambda machine: _with_account(machine, name, password))
        return Answer(200, self._context.profile.success())


def _password(value: object, traits: Traits) -> str:
    """Refuses one of a wrong length, without repeating it."""
    shortest, longest = traits.password_length
    if not isinstance(value, str) or not max(shortest, 1) <= len(value) <= longest:
        raise RefusedError(Problem.VALUE_REFUSED, "Password")
    return value


def _with_account(machine: Machine, name: str, password: str) -> Machine:
    """A password that was changed is no longer the factory's."""
    bmc = machine.bmc
    quirks = bmc.quirks - {BmcQuirk.MUST_CHANGE_PASSWORD} if password else bmc.quirks
    changed = replace(bmc, user=name or bmc.user, password=password or bmc.password, quirks=quirks)
    return replace(machine, bmc=changed)


def account_service(path: str, accounts: str, traits: Traits) -> Resource:
    """The limits are zero where wrong passwords lock no account, as recorded at Dell."""
    lockout = traits.lockout
    return {
        **head(path, "AccountService.v1_9_0.AccountService", "Account Service"),
        "AccountLockoutCounterResetAfter": int(lockout.seconds) if lockout else 0,
        "AccountLockoutDuration": int(lockout.seconds) if lockout else 0,
        "AccountLockoutThreshold": lockout.tries if lockout else 0,
        "Accounts": ref(accounts),
        "MaxPasswordLength": traits.password_length[1],
        "MinPasswordLength": traits.password_length[0],
        "ServiceEnabled": True,
        "Status": {"Health": "OK", "State": "Enabled"},
    }


def account_collection(path: str, members: tuple[str, ...]) -> Resource:
    return collection(path, "ManagerAccountCollection", "Accounts Collection", members)


def account(path: str, view: View) -> Resource:
    """The one account; its password reads null, as the schema demands."""
    return {
        **head(path, "ManagerAccount.v1_8_0.ManagerAccount", "User Account"),
        "AccountTypes": ["Redfish"],
        "Enabled": True,
        "Locked": view.locked,
        "Password": None,
        "PasswordChangeRequired": view.must_change_password,
        "RoleId": "Administrator",
        "UserName": view.machine.bmc.user,
    }
