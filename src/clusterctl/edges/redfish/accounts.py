"""A BMC's accounts: finds one, and requests another password. Nothing but AccountService is written to.

No BMC shows a password: only a new login shows whether it changed, and it is not made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusterctl.edges.redfish.pins import KnownBmcs
from clusterctl.edges.redfish.session import RedfishAccess, RedfishSession
from clusterctl.edges.redfish.write import ReplyKind, WriteAttempt
from clusterctl.fleet.bmc.accounts import Account, AccountSight, Trust
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, ParseError, PasswordChangeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.accounts import own_account, read_account
from clusterctl.formats.redfish.power import read_power
from clusterctl.formats.redfish.tree import Unreadable, normal
from clusterctl.ports import BmcAddress, Deadline

REMEDY = "change it by hand at the BMC; if the error persists, update the BMC's firmware"


class Accounts:
    """The accounts through one session. `given` is the address in the site's words, `reached` the same with its pin.

    `steps` records the requests, without the passwords.
    """

    def __init__(
        self,
        session: RedfishSession,
        access: RedfishAccess,
        known: KnownBmcs | None,
        *,
        given: BmcAddress,
        reached: BmcAddress,
    ) -> None:
        self._session = session
        self._access = access
        self._known = known
        self._given = given
        self._reached = reached
        self.steps: list[str] = []

    def find(self, user: str, deadline: Deadline) -> AccountSight:
        """Return the account of this user. A BMC that demands a new password may show only the account concerned."""
        serial, demand = self._serial(deadline)
        try:
            account = self._session.walk(lambda answers: read_account(answers, user), deadline)[0]
        except PasswordChangeError as error:
            demand = error
            account = self._own(error, user, deadline)
        return AccountSight(account, self._trust(), serial, must_change=demand is not None)

    def change(self, account: Account, password: str, deadline: Deadline) -> bool:
        """Request the password; False where it is unknown whether it came about. Raises `RefusedError`."""
        doing = f"a new password for {account.user}"
        quirks, timing = self._session.quirks, self._access.timing
        attempt = WriteAttempt(doing, REMEDY, ({"Password": password},), quirks=quirks, timing=timing, matches=True)
        etag = self._etag(account, deadline)
        while True:
            deadline.check(f"requesting {doing}")
            attempt.begin(etag)
            # where this password was rejected before in this run, it may be right from now on
            self._access.rejections.forget(replace(self._reached, user=account.user, password=password))
            try:
                reply = self._session.write(
                    account.path, attempt.body, deadline, method="PATCH", if_match=attempt.if_match
                )
            except OutcomeUnknownError as error:
                self.steps.append(f"{doing}: {error.message}")
                return False
            self.steps.append(f"{doing}: {reply.summary}")
            kind = attempt.kind(reply)
            if kind is ReplyKind.ACCEPTED:
                deadline.sleep(timing.poll, "waiting until the BMC applies the new password")
                return True
            if kind is ReplyKind.STUMBLED and reply.status == 500:
                return False
            pause = attempt.pause(reply)
            if pause:
                deadline.sleep(pause, f"waiting until the BMC accepts {doing}")
            etag = self._etag(account, deadline)
            attempt.refused(reply, etag)

    def _serial(self, deadline: Deadline) -> tuple[Serial | None, PasswordChangeError | None]:
        try:
            return self._session.walk(read_power, deadline)[0].serial, None
        except PasswordChangeError as error:
            return None, error

    def _own(self, error: PasswordChangeError, user: str, deadline: Deadline) -> Account:
        """Return the account that is logged in; raise where it is not the requested one."""
        path = normal(error.account, "PasswordChangeRequired") if error.account else ""
        account = own_account(path, user)
        try:
            found = self._session.read(account.path, deadline)
        except PasswordChangeError:
            raise error from None
        if isinstance(found, Unreadable):
            raise EdgeError(f"the account cannot be read: {found.reason}", where=account.path, remedy=REMEDY)
        if found.get("UserName") != user:
            raise EdgeError(
                f"the BMC demands a new password for another account than {user}",
                where=account.path,
                remedy="remove bmc.rotation.user, or name the account that the factory password is for",
            )
        return account

    def _etag(self, account: Account, deadline: Deadline) -> str:
        """Return the account's ETag from the header or the resource; empty where the BMC shows none."""
        try:
            found = self._session.read(account.path, deadline)
        except (ParseError, PasswordChangeError):
            return ""
        etag = found.get("@odata.etag") if isinstance(found, Mapping) else None
        return self._session.etag(account.path) or (etag if isinstance(etag, str) else "")

    def _trust(self) -> Trust:
        if self._given.plain_http:
            return Trust.NOTHING
        if self._given.fingerprint:
            return Trust.SHEET
        if not self._reached.fingerprint:
            return Trust.AUTHORITY
        of_machine = self._known is not None and self._known.is_of_machine(self._given)
        return Trust.MACHINE if of_machine else Trust.FIRST_USE
