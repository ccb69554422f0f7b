"""Before an installer's first order its login is tried once at the machine's BMC, and written down."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from clusterctl.edges.journal import SqlJournal
from clusterctl.fleet.errors import (
    AuthenticationError,
    EdgeError,
    PasswordChangeError,
    PrivilegeError,
    UnreachableError,
)
from clusterctl.fleet.event import Kind, Stream
from clusterctl.fleet.node import Mac, NodeId, Serial
from clusterctl.ports import BmcAddress, Deadline, FailureKind, InstallError, InstallTarget
from clusterctl.steps.executor.intent_log import IntentLog
from clusterctl.steps.executor.power_login import LoginProver
from tests.events import data_of
from tests.steps.fakes import FakeBmc, FakeInstaller, identified, inventory

NODE = NodeId("id-n1")
SITE = BmcAddress("192.0.2.1", "root", "of-the-site")
TARGET = InstallTarget("n1", Serial("S1"), (Mac("02:00:00:00:00:01"),), SITE, Serial("D1"), "key", "ops", "private")


@dataclass
class Bmcs:
    """The BMC at each address; `logins` are those that were tried."""

    at: dict[str, FakeBmc]
    logins: list[tuple[str, str, str]] = field(default_factory=list)

    def open(self, address: BmcAddress, deadline: Deadline) -> FakeBmc:
        self.logins.append((address.host, address.user, address.password))
        return self.at[address.host]


def prove(book: SqlJournal, login: BmcAddress | None, bmcs: Bmcs) -> list[tuple[str, str]]:
    """Prove the login. Return the acts that the journal has of it, with their results."""
    identified(book, "n1", "S1")
    intents = IntentLog(book, book.claim([NODE], "r").granted)
    LoginProver(FakeInstaller(login=login), bmcs).prove(NODE, TARGET, intents, Deadline.after(60))
    return acts(book)


def acts(book: SqlJournal) -> list[tuple[str, str]]:
    kinds = (Kind.ACT_INTENDED, Kind.ACT_OBSERVED)
    found = [data_of(event) for event in book.history(Stream.NODE, NODE) if event.kind in kinds]
    return [(str(one["act"]), str(one.get("result", "intended"))) for one in found]


def refused(book: SqlJournal, login: BmcAddress, bmcs: Bmcs) -> InstallError:
    with pytest.raises(InstallError) as caught:
        prove(book, login, bmcs)
    words = f"{caught.value} {caught.value.remedy} {[data_of(event) for event in book.history(Stream.NODE, NODE)]}"
    assert "of-the-site" not in words
    assert "of-maas" not in words
    assert acts(book)[-1] == ("power.login", "failed")
    return caught.value


def test_a_login_of_the_installers_own_is_tried_once_and_written_down(book: SqlJournal) -> None:
    """Intended before, observed after; another user than the site's is no fault where the BMC accepts it."""
    bmcs = Bmcs({"192.0.2.1": FakeBmc(inventory("S1"))})
    login = replace(SITE, user="maas", password="of-maas")
    assert prove(book, login, bmcs) == [("power.login", "intended"), ("power.login", "done")]
    assert bmcs.logins == [("192.0.2.1", "maas", "of-maas")]
    assert bmcs.at["192.0.2.1"].closed == 1


def test_an_installer_without_a_login_of_its_own_has_none_tried(book: SqlJournal) -> None:
    bmcs = Bmcs({})
    assert (prove(book, None, bmcs), bmcs.logins) == ([], [])


@pytest.mark.parametrize(
    ("changes", "cause", "remedy"),
    [
        ({}, "user root with the password that the site and the installer have", "accounts check"),
        ({"password": "of-maas"}, "another password than the site", "power parameters of n1"),
        ({"user": "maas", "password": "of-maas"}, "another user (maas) than the site", "power parameters of n1"),
    ],
)
def test_a_rejected_login_names_user_and_remedy(
    book: SqlJournal, changes: dict[str, str], cause: str, remedy: str
) -> None:
    """One login, and an error of the kind that no other attempt repairs."""
    bmcs = Bmcs({"192.0.2.1": FakeBmc(AuthenticationError("the BMC rejects user name or password (HTTP 401)"))})
    error = refused(book, replace(SITE, **changes), bmcs)
    assert error.failure is FailureKind.LOGIN
    assert cause in error.message
    assert remedy in error.remedy
    assert len(bmcs.logins) == 1


@pytest.mark.parametrize("kind", [PasswordChangeError, PrivilegeError])
def test_an_account_that_can_do_nothing_has_the_bmcs_own_remedy(book: SqlJournal, kind: type[EdgeError]) -> None:
    bmcs = Bmcs({"192.0.2.1": FakeBmc(kind("it may not", remedy="let it"))})
    error = refused(book, SITE, bmcs)
    assert (error.failure, error.remedy) == (FailureKind.LOGIN, "let it")


@pytest.mark.parametrize(
    ("there", "kind"),
    [
        (FakeBmc(inventory("S2")), FailureKind.FOREIGN),
        (FakeBmc(UnreachableError("no route")), FailureKind.OPERATOR),
        (FakeBmc(AuthenticationError("HTTP 401")), FailureKind.LOGIN),
    ],
)
def test_a_bmc_at_another_address_must_be_the_machines(book: SqlJournal, there: FakeBmc, kind: FailureKind) -> None:
    """Otherwise the installer would switch another machine."""
    error = refused(book, replace(SITE, host="192.0.2.9"), Bmcs({"192.0.2.9": there}))
    assert error.failure is kind


def test_the_same_bmc_at_another_address_is_fine(book: SqlJournal) -> None:
    """Its serial proves it."""
    bmcs = Bmcs({"192.0.2.9": FakeBmc(inventory("S1"))})
    assert prove(book, replace(SITE, host="192.0.2.9"), bmcs)[-1] == ("power.login", "done")


def test_a_silent_bmc_is_no_rejected_login(book: SqlJournal) -> None:
    """It may answer later: the error is not final."""
    with pytest.raises(UnreachableError):
        prove(book, SITE, Bmcs({"192.0.2.1": FakeBmc(UnreachableError("no answer"))}))
    assert acts(book)[-1] == ("power.login", "failed")
