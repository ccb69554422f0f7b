"""Checks which password each BMC takes; changes nothing."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from clusterctl.fleet.bmc.accounts import AccountSight, same
from clusterctl.fleet.errors import AuthenticationError, ClusterctlError, EdgeError, PasswordChangeError
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.ports.accounts import AccountBmcs
from clusterctl.ports.isolation import as_error
from clusterctl.ports.logins import Login
from clusterctl.steps.executor.parallel import each


class AcceptedLogin(enum.Enum):
    """NEITHER: it rejects all that are known; UNKNOWN: it could not be asked."""

    ROTATED = "the site's rule"
    GIVEN = "as given"
    NEITHER = "neither"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class AccountQuery:
    """A node to check: `serial` of the machine that it is or shall be, empty where that is unknown."""

    name: str
    serial: str


@dataclass(frozen=True, slots=True)
class AccountCheck:
    """The result of one BMC. `login` names the credentials that it took; `error` is what is wrong, if anything."""

    name: str
    takes: AcceptedLogin
    login: str = ""
    sight: AccountSight | None = None
    error: ClusterctlError | None = None


@dataclass(frozen=True, slots=True)
class AccountChecker:
    """Checks `workers` BMCs at a time. `user`: the account to look at; empty: the one that is logged in as."""

    bmcs: AccountBmcs
    address_of: Callable[[str], BmcAddress]
    login_of: Callable[[str], Login]
    rotated: str
    user: str
    workers: int

    def check(self, nodes: Sequence[AccountQuery], deadline: Deadline) -> Iterator[AccountCheck]:
        """Yield each node's result as soon as it is there. At most one wrong password is tried at each BMC."""
        return each([partial(self._one, node, deadline) for node in nodes], self.workers)

    def _one(self, node: AccountQuery, deadline: Deadline) -> AccountCheck:
        try:
            login = self.login_of(node.name)
            with self.bmcs.open_accounts(self.address_of(node.name), deadline) as bmc:
                used = login.former if bmc.took_former and login.former is not None else login
                takes = AcceptedLogin.ROTATED if used.name == self.rotated else AcceptedLogin.GIVEN
                found = AccountCheck(node.name, takes, used.name)
                try:
                    sight = bmc.look(self.user or used.user, deadline)
                except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
                    return replace(found, error=as_error(error, node.name))
        except PasswordChangeError as error:
            return AccountCheck(node.name, AcceptedLogin.UNKNOWN, error=error)
        except AuthenticationError as error:
            return AccountCheck(node.name, AcceptedLogin.NEITHER, error=error)
        except Exception as error:  # noqa: BLE001 — whatever its data causes is its own result
            return AccountCheck(node.name, AcceptedLogin.UNKNOWN, error=as_error(error, node.name))
        return replace(found, sight=sight, error=_wrong(node, sight))


def _wrong(node: AccountQuery, sight: AccountSight) -> ClusterctlError | None:
    if sight.serial is not None and node.serial and not same(sight.serial, node.serial):
        return EdgeError(
            f"this BMC belongs to machine {sight.serial}, not to {node.serial}",
            where=node.name,
            remedy="find out which address the machine's BMC has now, and correct the site file",
        )
    if sight.must_change:
        return PasswordChangeError(
            "it demands a new password before it does anything",
            where=node.name,
            remedy=f"clusterctl accounts rotate {node.name}",
        )
    return None
