"""The proof that an installer's login opens a machine's BMC: one login of ours, before the installer's first order.

An installer may try a login that the BMC rejects many times (MAAS before 3.6: up to 42), and BMCs lock accounts.
"""

from __future__ import annotations

from dataclasses import dataclass

from clusterctl.fleet.acts import Act, ActResult
from clusterctl.fleet.errors import (
    AuthenticationError,
    ClusterctlError,
    EdgeError,
    PasswordChangeError,
    PrivilegeError,
)
from clusterctl.fleet.node import NodeId
from clusterctl.ports import BmcAddress, Bmcs, BmcUser, Deadline, FailureKind, InstallError, InstallTarget
from clusterctl.steps.executor.intent_log import IntentLog

LOGIN_S = 60.0
"""Seconds for a login and one reading."""
INVENTORY_S = 300.0
"""Seconds for a BMC to report its inventory."""


@dataclass(frozen=True, slots=True)
class LoginProver:
    """Logs in to BMCs with the installer's login."""

    installer: BmcUser
    bmcs: Bmcs

    def prove(self, node: NodeId, target: InstallTarget, intents: IntentLog, deadline: Deadline) -> None:
        """Log in once, and write that down. Without a login to try nothing is done.

        Raises `InstallError` where the BMC rejects the login, or the installer switches another machine's BMC, and
        `EdgeError` where the BMC cannot be read.
        """
        login = self.installer.power_login(target, deadline)
        if login is None:
            return
        intents.intend(node, Act.POWER_LOGIN, target.serial)
        try:
            self._try(login, target, intents.fenced([node], deadline))
        except ClusterctlError as error:
            intents.observed(node, Act.POWER_LOGIN, error.message, ActResult.FAILED)
            raise
        intents.observed(node, Act.POWER_LOGIN, f"the installer's login {login.user} opens the BMC at {login.host}")

    def _try(self, login: BmcAddress, target: InstallTarget, deadline: Deadline) -> None:
        deadline.check(f"logging in to the BMC of {target.name}")
        try:
            if login.host == target.bmc.host:
                limit = deadline.within(LOGIN_S)
                with self.bmcs.open(login, limit) as bmc:
                    bmc.power(limit)
            else:
                self._identify(login, target, deadline.within(INVENTORY_S))
        except (AuthenticationError, PrivilegeError) as error:
            raise _rejected(login, target, error) from error

    def _identify(self, login: BmcAddress, target: InstallTarget, deadline: Deadline) -> None:
        """Raise `InstallError` unless the machine is in the BMC that the installer has at another address."""
        elsewhere = f"the installer switches it through the BMC at {login.host}, the site's is at {target.bmc.host}"
        remedy = f"correct the power address of {target.name} in the installer, or its BMC's address in the sheet"
        try:
            with self.bmcs.open(login, deadline) as bmc:
                serial = bmc.inventory(deadline).value.serial
        except (AuthenticationError, PrivilegeError):
            raise
        except EdgeError as error:
            cause = f"{elsewhere}, and that it is the same machine's cannot be proven: {error.message}"
            raise InstallError(cause, FailureKind.OPERATOR, where=target.name, remedy=remedy) from error
        if serial != target.serial:
            cause = f"{elsewhere}: the first is in machine {serial}, the second in {target.serial}"
            raise InstallError(cause, FailureKind.FOREIGN, where=target.name, remedy=remedy)


def _rejected(login: BmcAddress, target: InstallTarget, error: EdgeError) -> InstallError:
    """Return the error for a login that does not open the BMC. The installer was not asked to use it."""
    site = target.bmc
    if isinstance(error, (PasswordChangeError, PrivilegeError)):
        cause, remedy = f"user {login.user}: {error.message}", error.remedy
    elif (login.user, login.password) == (site.user, site.password):
        cause = f"the BMC rejects user {login.user} with the password that the site and the installer have"
        remedy = (
            f"set the password of its user {login.user} to the site's; clusterctl accounts check shows which password "
            "it accepts"
        )
    else:
        other = "another password" if login.user == site.user else f"another user ({login.user})"
        cause = f"the installer logs in to the BMC with {other} than the site, which the BMC rejects"
        remedy = (
            f"find the BMC's password of user {login.user} with clusterctl accounts check, then correct the power "
            f"parameters of {target.name} in the installer"
        )
    return InstallError(f"{cause} ({error.message})", FailureKind.LOGIN, where=target.name, remedy=remedy)
