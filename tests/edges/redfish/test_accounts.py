"""Passwords on the lab's BMCs of every vendor, with every quirk that a change of them can meet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clusterctl.edges.redfish import RedfishBmcs
from clusterctl.fleet.bmc.accounts import Account, Trust
from clusterctl.fleet.errors import AuthenticationError, EdgeError, PasswordChangeError
from clusterctl.ports import BmcAddress
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.vendor import Vendor
from tests.edges.redfish.conftest import QUICK, FixedClock
from tests.edges.redfish.quirk_kit import PASSWORD, Site, machine, served, soon
from tests.edges.redfish.replay import error, serve
from tests.edges.redfish.trees import small
from tests.faulty import status

NEW = "Nfrsh4Pq2TzXw7Ka"
KINDS: tuple[tuple[Vendor, tuple[BmcQuirk, ...]], ...] = (
    *((vendor, ()) for vendor in Vendor),
    *((vendor, (BmcQuirk.MUST_CHANGE_PASSWORD,)) for vendor in Vendor),
    *((vendor, (BmcQuirk.LOSES_ANSWERS,)) for vendor in Vendor),
    (Vendor.DELL, (BmcQuirk.WEAK_ETAG,)),
    (Vendor.SUPERMICRO, (BmcQuirk.WEAK_ETAG,)),
    (Vendor.DELL, (BmcQuirk.IF_MATCH_REQUIRED,)),
    (Vendor.OPENBMC, (BmcQuirk.IF_MATCH_REQUIRED, BmcQuirk.MUST_CHANGE_PASSWORD)),
    (Vendor.SUPERMICRO, (BmcQuirk.IF_MATCH_REFUSED,)),
    (Vendor.HPE, (BmcQuirk.SPURIOUS_401,)),
    (Vendor.HPE, (BmcQuirk.SPURIOUS_401, BmcQuirk.CLOSES_REUSED, BmcQuirk.MUST_CHANGE_PASSWORD)),
    (Vendor.DELL, (BmcQuirk.LOCKS_OUT,)),
    (Vendor.SUPERMICRO, (BmcQuirk.UNAVAILABLE,)),
    (Vendor.OPENBMC, (BmcQuirk.SESSION_LIMIT,)),
    (Vendor.DELL, (BmcQuirk.ENDS_SESSIONS,)),
)


def named(kind: tuple[Vendor, tuple[BmcQuirk, ...]]) -> str:
    return "-".join([kind[0].value, *(quirk.value.replace("_", "-") for quirk in kind[1])])


MACHINES = [machine(number, named(kind), kind[0], *kind[1]) for number, kind in enumerate(KINDS, 1)]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with served({one.name: one for one in MACHINES}, tmp_path_factory.mktemp("accounts")) as found:
        yield found


def address(lab: Site, name: str, password: str = PASSWORD) -> BmcAddress:
    bmc = lab.world.machines[name].bmc
    return BmcAddress(bmc.address, bmc.user, password, lab.port, str(lab.ca))


def fresh() -> RedfishBmcs:
    return RedfishBmcs(FixedClock(), QUICK)


@pytest.mark.parametrize("kind", KINDS, ids=named)
def test_changed_and_taken(lab: Site, kind: tuple[Vendor, tuple[BmcQuirk, ...]]) -> None:
    """The machine itself has the new one; then that one logs in, and the serial is read. Nothing shown has a password."""
    name = named(kind)
    there = lab.world.machines[name]
    bmcs, new = fresh(), replace(address(lab, name, NEW), former=(there.bmc.user, PASSWORD))
    with bmcs.open_accounts(address(lab, name), soon()) as bmc:
        sight = bmc.look(there.bmc.user, soon())
        asked = bmc.change(sight.account, NEW, soon())
    assert sight.must_change is (BmcQuirk.MUST_CHANGE_PASSWORD in kind[1])
    assert (sight.serial is None) is sight.must_change
    assert sight.trust is Trust.AUTHORITY
    assert lab.world.machines[name].bmc.password == NEW
    assert NEW not in str(asked)
    assert NEW.encode() not in asked.evidence[0].content
    with bmcs.open_accounts(new, soon()) as bmc:
        assert not bmc.took_former
        assert bmc.look(there.bmc.user, soon()).serial == there.serial


@pytest.fixture
def one(tmp_path: Path) -> Iterator[Site]:
    with served({"one": machine(1, "one", Vendor.SUPERMICRO, BmcQuirk.LOCKS_OUT)}, tmp_path) as found:
        yield found


def test_in_doubt(one: Site) -> None:
    """The one that may be new goes first; rejected, the former is tried, and the other not again in this run."""
    bmcs = fresh()
    doubt = replace(address(one, "one", NEW), former=("root", PASSWORD))
    for _ in range(5):
        with bmcs.open_accounts(doubt, soon()) as bmc:
            assert bmc.took_former
        with bmcs.open(doubt, soon()) as client:
            client.power(soon())


def test_in_doubt_and_both_wrong(one: Site) -> None:
    """A rejection, however often it is asked: two tries in all, below the lock-out."""
    bmcs = fresh()
    doubt = replace(address(one, "one", NEW), former=("root", "also-wrong-here"))
    for _ in range(5):
        with pytest.raises(AuthenticationError), bmcs.open_accounts(doubt, soon()):
            pass
    with fresh().open_accounts(address(one, "one"), soon()) as bmc:
        assert not bmc.took_former


def test_changed_after_it_was_rejected(one: Site) -> None:
    """What was rejected before the change is tried after it."""
    bmcs = fresh()
    doubt = replace(address(one, "one", NEW), former=("root", PASSWORD))
    with bmcs.open_accounts(doubt, soon()) as bmc:
        assert bmc.took_former
        bmc.change(bmc.look("root", soon()).account, NEW, soon())
    with bmcs.open_accounts(doubt, soon()) as bmc:
        assert not bmc.took_former


def test_limits_are_reported(one: Site) -> None:
    """As AccountService has them; the account is found by its name among those that there are."""
    with fresh().open_accounts(address(one, "one"), soon()) as bmc:
        found = bmc.look("root", soon()).account
    assert (found.shortest, found.longest) == (8, 20)
    assert found.path.endswith("/Accounts/2")


def test_an_account_that_is_not_there(one: Site) -> None:
    """An error that names it."""
    with (
        fresh().open_accounts(address(one, "one"), soon()) as bmc,
        pytest.raises(EdgeError, match="no account of the name 'operator'") as caught,
    ):
        bmc.look("operator", soon())
    assert "bmc.rotation.user" in caught.value.remedy


def test_refused_in_the_bmcs_words(one: Site) -> None:
    """One that it finds too short: the error repeats no password."""
    with fresh().open_accounts(address(one, "one"), soon()) as bmc:
        account = bmc.look("root", soon()).account
        with pytest.raises(EdgeError, match="refuses a new password for root") as caught:
            bmc.change(Account(account.path, "root"), "sh0rt", soon())
    assert "sh0rt" not in str(caught.value)
    assert one.world.machines["one"].bmc.password == PASSWORD


def test_a_bmc_that_shows_nothing_but_the_account(tmp_path: Path) -> None:
    """As DSP0266 has it: 403 to AccountService too; the account is the one that the refusal names."""
    tree = small()
    path = "/redfish/v1/AccountService/Accounts/7"
    tree["/redfish/v1"]["AccountService"] = {"@odata.id": "/redfish/v1/AccountService"}
    tree[path] = {"@odata.id": path, "UserName": "root", "Password": None}
    body = error("Base.1.5.PasswordChangeRequired", "PATCH the Password property.")
    body["error"]["@Message.ExtendedInfo"][0]["MessageArgs"] = [path]
    with serve(tree, tmp_path) as (server, reached):
        for closed in ("/redfish/v1/Systems", "/redfish/v1/AccountService"):
            server.faults["GET", closed] = [status(403, body) for _ in range(9)]
        with fresh().open_accounts(reached, soon()) as bmc:
            sight = bmc.look("root", soon())
            assert (sight.account.path, sight.serial, sight.must_change) == (path, None, True)
            assert bmc.change(sight.account, NEW, soon()).value
        assert server.patched == [(path, {"Password": NEW})]
        with (
            fresh().open_accounts(reached, soon()) as bmc,
            pytest.raises(EdgeError, match="another account"),
        ):
            bmc.look("operator", soon())


def test_a_bmc_that_opens_no_session_before(tmp_path: Path) -> None:
    """403 to the log-in itself: the change is asked for with user and password in each request; nothing else is."""
    tree = small()
    path = "/redfish/v1/AccountService/Accounts/root"
    tree[path] = {"@odata.id": path, "UserName": "root", "Password": None}
    refusal = status(403, error("Base.1.5.PasswordChangeRequired", "PATCH the Password property."))
    with serve(tree, tmp_path) as (server, reached):
        server.faults["POST", "/redfish/v1/SessionService/Sessions"] = [refusal for _ in range(9)]
        server.faults["GET", "/redfish/v1/Systems"] = [refusal for _ in range(9)]
        tree["/redfish/v1"]["AccountService"] = {"@odata.id": "/redfish/v1/AccountService"}
        server.faults["GET", "/redfish/v1/AccountService"] = [refusal for _ in range(9)]
        with fresh().open_accounts(reached, soon()) as bmc:
            sight = bmc.look("root", soon())
            assert (sight.account.path, sight.must_change) == (path, True)
            assert bmc.change(sight.account, NEW, soon()).value
        assert server.patched == [(path, {"Password": NEW})]
        with pytest.raises(PasswordChangeError), fresh().open(reached, soon()):
            pass
