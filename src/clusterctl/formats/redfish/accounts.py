"""Accounts: which one has a name, and how long its passwords may be (DMTF AccountService, ManagerAccount)."""

from __future__ import annotations

from clusterctl.fleet.bmc.accounts import Account
from clusterctl.fleet.errors import EdgeError, ParseError
from clusterctl.formats.redfish.tree import ROOT, Answers, NotYetReadError, ReadRequest, RedfishTree, Resource


def read_account(answers: Answers, user: str) -> Account | ReadRequest:
    """Return the one account with this name: ids differ from vendor to vendor, so all are looked through.

    Raises `EdgeError` where there is none or more than one that is enabled.
    """
    tree = RedfishTree(answers)
    try:
        service = tree.follow(tree.root, "AccountService")
        members = tree.members(service, "Accounts")
    except NotYetReadError:
        return ReadRequest(tuple(tree.wanted))
    named = [member for member in members if member.text("UserName") == user]
    enabled = [member for member in named if member.flag("Enabled") is not False]
    if len(enabled) != 1:
        found = f"{len(enabled)} accounts" if enabled else "no enabled account" if named else "no account"
        raise EdgeError(
            f"the BMC has {found} of the name {user!r}",
            where=service.path,
            remedy="name an account that it has in bmc.rotation.user",
        )
    return Account(enabled[0].path, user, _limit(service, "MinPasswordLength"), _limit(service, "MaxPasswordLength"))


def own_account(path: str, user: str) -> Account:
    """Return the account of a BMC that reports nothing else before its password is changed; where it names none, by
    its user's name, as OpenBMC has it.
    """
    return Account(path.rstrip("/") or f"{ROOT}/AccountService/Accounts/{user}", user)


def _limit(service: Resource, name: str) -> int | None:
    """Return the limit. Some BMCs write zero, and some nonsense, where there is none: both are none."""
    try:
        return service.whole(name) or None
    except ParseError:
        return None
