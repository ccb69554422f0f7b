"""A BMC's accounts: finding one, and asking for another password. Nothing but AccountService is written to.

No BMC shows a password: whether a change came about is told by a new login, which is not made here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from clusterctl.edges.redfish.connection import refusal
from clusterctl.edges.redfish.means import Means
from clusterctl.edges.redfish.session import Session
from clusterctl.edges.redfish.write import Attempt, Told
from clusterctl.fleet.bmc_accounts import Account, AccountSight, Trust
from clusterctl.fleet.errors import EdgeError, OutcomeUnknownError, ParseError, PasswordChangeError
from clusterctl.fleet.node import Serial
from clusterctl.formats.redfish.accounts import own_account, read_account
from clusterctl.formats.redfish.power import read_power
from clusterctl.formats.redfish.tree import Unreadable, normal
from clusterctl.ports import BmcAddress, Deadline

REMEDY = "change it by hand at the BMC; if it keeps doing so, update the BMC's firmware"


class AccountBook:
    """Through one session. `given` is the address as the site has it, `reached` with the pin that was kept of it.

    `steps` records what was asked, without the passwords.
    """

    def __init__(self, session: Session, means: Means, *, given: BmcAddress, reached: BmcAddress) -> None:
        self._session = session
        self._means = means
        self._given = given
        self._reached = reached
        self.steps: list[str] = []

    def look(self, user: str, deadline: Deadline) -> AccountSight:
        """A BMC that wants its password changed may tell nothing but the account that it is about."""
        serial, demand = self._serial(deadline)
        try:
            account = self._session.walk(lambda answers: read_account(answers, user), deadline)[0]
        except PasswordChangeError as error:
            demand = error
            account = self._own(error, user, deadline)
        return AccountSight(account, self._trust(), serial, must_change=demand is not None)

    def change(self, account: Account, password: str, deadline: Deadline) -> bool:
        """False where nobody knows whether it came about. Raises `RefusedError` in the BMC's words."""
        doing = f"a new password for {account.user}"
        quirks, timing = self._session.quirks, self._means.timing
        attempt = Attempt(doing, REMEDY, ({"Password": password},), quirks=quirks, timing=timing, matches=True)
        etag = self._etag(account, deadline)
        while True:
            deadline.check(f"asking for {doing}")
            attempt.begin(etag)
            self._expect(account, password)
            try:
                reply = self._session.write(
                    account.path, attempt.body, deadline, method="PATCH", if_match=attempt.if_match
                )
            except OutcomeUnknownError as error:
                self.steps.append(f"{doing}: {error.message}")
                return False
            self.steps.append(f"{doing}: {refusal(reply)}")
            told = attempt.told(reply)
            if told is Told.TAKEN:
                deadline.sleep(timing.poll, "waiting for the BMC to take the new password over")
                return True
            if told is Told.STUMBLED and reply.status == 500:
                return False
            rest = attempt.rest(reply)
            if rest:
                deadline.sleep(rest, f"waiting until the BMC takes {doing}")
            etag = self._etag(account, deadline)
            attempt.answered(reply, etag)

    def _expect(self, account: Account, password: str) -> None:
        """Where it was rejected before in this run, it may be right from now on."""
        self._means.rejections.forget(replace(self._reached, user=account.user, password=password))

    def _serial(self, deadline: Deadline) -> tuple[Serial | None, PasswordChangeError | None]:
        try:
            return self._session.walk(read_power, deadline)[0].serial, None
        except PasswordChangeError as error:
            return None, error

    def _own(self, error: PasswordChangeError, user: str, deadline: Deadline) -> Account:
        """The account that we are logged in with, read to see that it is the one that was asked for."""
        told = normal(error.account, "PasswordChangeRequired") if error.account else ""
        account = own_account(told, user)
        try:
            found = self._session.read(account.path, deadline)
        except PasswordChangeError:
            raise error from None
        if isinstance(found, Unreadable):
            raise EdgeError(f"the account cannot be read: {found.reason}", where=account.path, remedy=REMEDY)
        if found.get("UserName") != user:
            raise EdgeError(
                f"the BMC wants the password of another account changed than that of {user}",
                where=account.path,
                remedy="leave bmc.rotation.user out, or name the account that the factory password is for",
            )
        return account

    def _etag(self, account: Account, deadline: Deadline) -> str:
        """Of the account, from the header or the resource; empty where this BMC has none or shows none."""
        try:
            found = self._session.read(account.path, deadline)
        except (ParseError, PasswordChangeError):
            return ""
        told = found.get("@odata.etag") if isinstance(found, Mapping) else None
        return self._session.etag(account.path) or (told if isinstance(told, str) else "")

    def _trust(self) -> Trust:
        if self._given.plain_http:
            return Trust.NOTHING
        if self._given.fingerprint:
            return Trust.SHEET
        if not self._reached.fingerprint:
            return Trust.AUTHORITY
        known = self._means.known
        return Trust.MACHINE if known is not None and known.is_of_machine(self._given) else Trust.FIRST_USE
