"""Sign-in with a password: who comes in, for how long, and how often it may be tried."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.operations.context import SiteContext
from clusterctl_web.guard import safe_path
from clusterctl_web.sessions import UserSessions
from clusterctl_web.sign_in import ADDRESS_ATTEMPTS, USER_ATTEMPTS, USER_S
from tests.fake_timer import FakeTimer
from tests.web.browser import PASSWORD, QUICK, Browser, access, accounts, timed

LATER = datetime(2026, 11, 2, tzinfo=UTC)


def test_a_user_signs_in_and_out(browser: Browser) -> None:
    """The page names the user and the role; after signing out the cookie opens nothing."""
    answer = browser.sign_in("viewer", following="/nodes/n2")
    assert (answer.status_code, answer.headers["location"]) == (303, "/nodes/n2")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    page = browser.get("/nodes/n2")
    assert "viewer" in page.text
    before = browser.session
    out = browser.post("/sign-out", {"csrf": browser.csrf("/")})
    assert out.headers["location"] == "/sign-in"
    browser.keep_only(*before)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    ("user", "password"),
    [("viewer", "wrong password"), ("unknown", PASSWORD), ("", ""), ("viewer", "x" * 5000), ("<script>", PASSWORD)],
)
def test_each_refusal_is_the_same(browser: Browser, user: str, password: str) -> None:
    """Neither the text nor the status has whether the user exists."""
    answer = browser.sign_in(user, password)
    assert answer.status_code == 401
    assert "The user name or the password is wrong." in answer.text
    assert "&lt;script" not in answer.text
    assert browser.get("/").status_code == 303


class CountingHasher(PasswordHasher):
    """Counts the digests that are verified, with their parameters."""

    def __init__(self) -> None:
        super().__init__(time_cost=1, memory_cost=8, parallelism=1)
        self.verified: list[str] = []

    def verify(self, hash: str | bytes, password: str | bytes) -> bool:  # noqa: A002 — its name in the library
        text = hash if isinstance(hash, str) else hash.decode()
        self.verified.append(text.rsplit("$", 2)[0])
        return super().verify(hash, password)


def test_an_unknown_user_costs_what_a_wrong_password_costs(tmp_path: Path) -> None:
    """One digest with the same parameters in each case."""
    hasher = CountingHasher()
    file = AccountFile(tmp_path / "web", hasher)
    file.add_user("viewer", UserRole.VIEWER, PASSWORD, LATER)
    assert file.check("viewer", "wrong password") is None
    assert file.check("unknown", "wrong password") is None
    assert len(hasher.verified) == 2
    assert len(set(hasher.verified)) == 1


def test_too_many_attempts_of_an_address_are_refused(browser: Browser) -> None:
    """The right password, too, until the time has passed; other addresses are free."""
    for number in range(ADDRESS_ATTEMPTS):
        assert browser.sign_in(f"user{number}", "wrong").status_code == 401
    refused = browser.sign_in("viewer")
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    browser.address = "203.0.113.8"
    assert browser.sign_in("viewer").status_code == 303


def test_an_address_of_ipv6_is_its_network(browser: Browser) -> None:
    """All addresses of a /64 are one; the next /64 is another."""
    for number in range(ADDRESS_ATTEMPTS):
        browser.address = f"2001:db8:0:1::{number:x}"
        assert browser.sign_in(f"user{number}", "wrong").status_code == 401
    browser.address = "2001:db8:0:1:ffff::1"
    assert browser.sign_in("viewer").status_code == 429
    browser.address = "2001:db8:0:2::1"
    assert browser.sign_in("viewer").status_code == 303


def test_too_many_attempts_for_a_user_are_refused(site: SiteContext, tmp_path: Path) -> None:
    """From however many addresses; other users are free, and the time passes."""
    timer = FakeTimer()
    browser = Browser(site, access(tmp_path, **timed(timer)))
    for number in range(USER_ATTEMPTS):
        browser.address = f"203.0.113.{number}"
        assert browser.sign_in("viewer", "wrong password").status_code == 401
    browser.address = "198.51.100.1"
    assert browser.sign_in("viewer").status_code == 429
    assert browser.sign_in("operator").status_code == 303
    browser.cookies.clear()
    timer.advance(USER_S)
    assert browser.sign_in("viewer").status_code == 303


def test_right_passwords_are_not_counted(browser: Browser) -> None:
    for _ in range(ADDRESS_ATTEMPTS + 1):
        assert browser.sign_in("viewer").status_code == 303
        browser.cookies.clear()


def test_a_session_ends(site: SiteContext, tmp_path: Path) -> None:
    """After its longest time, however busy; and before, where no request comes."""
    timer = FakeTimer()
    browser = Browser(site, access(tmp_path, lifetime=timedelta(hours=2), idle=timedelta(hours=1), **timed(timer)))
    browser.sign_in("viewer")
    timer.advance(3599)
    assert browser.get("/").status_code == 200
    timer.advance(3600)
    assert browser.get("/").status_code == 303
    browser.sign_in("viewer")
    for _ in range(3):
        timer.advance(1800)
        assert browser.get("/").status_code == 200
    timer.advance(1800)
    assert browser.get("/").status_code == 303


def test_an_event_stream_keeps_no_session_from_being_idle(site: SiteContext, tmp_path: Path) -> None:
    """A page that is open all night does not count as used."""
    timer = FakeTimer()
    sessions = UserSessions(access(tmp_path, **timed(timer)))
    (viewer,) = [user for user in sessions.access.accounts.users() if user.name == "viewer"]
    cookie = sessions.of_user(viewer)
    timer.advance(3000)
    assert sessions.find(cookie, used=False) is not None
    timer.advance(3000)
    assert sessions.find(cookie, used=False) is None


def test_what_a_command_changes_holds_at_once(site: SiteContext, tmp_path: Path) -> None:
    """A removed user and one with a new password are signed out; a new role needs no new session."""
    file = accounts(tmp_path)
    browser = Browser(site, replace(access(tmp_path / "other"), accounts=AccountFile(tmp_path / "web", QUICK)))
    browser.sign_in("viewer")
    assert browser.get("/").status_code == 200
    file.set_password("viewer", PASSWORD + "!", LATER)
    assert browser.get("/").status_code == 303
    browser.sign_in("viewer", PASSWORD + "!")
    assert browser.get("/").status_code == 200
    file.remove_user("viewer")
    assert browser.get("/").status_code == 303


def test_signing_in_ends_the_session_before(browser: Browser) -> None:
    """A session that another one has put into the browser does not become the user's."""
    browser.sign_in("viewer")
    planted = browser.session
    browser.sign_in("admin")
    assert browser.session != planted
    browser.keep_only(*planted)
    assert browser.get("/").status_code == 303


@pytest.mark.parametrize(
    "given",
    [
        "https://evil.example/", "//evil.example/", "/\\evil.example", "\\\\evil.example", "evil.example", "",
        "javascript:alert(1)", "/%0d%0aSet-Cookie: a=b\r\nX: y", "/\tx", "///evil.example", "/sign-in?next=/",
    ],
)  # fmt: skip
def test_a_return_address_leads_nowhere_else(browser: Browser, given: str) -> None:
    answer = browser.sign_in("viewer", following=given)
    assert answer.headers["location"] == "/"


@pytest.mark.parametrize("given", ["/", "/nodes/n1", "/nodes/n1?x=1&y=2"])
def test_a_return_address_of_this_page_is_kept(given: str) -> None:
    assert safe_path(given) == given


def test_where_a_refused_page_leads_back_to(browser: Browser) -> None:
    assert browser.get("/nodes/n1?a=b").headers["location"] == "/sign-in?next=%2Fnodes%2Fn1%3Fa%3Db"


def test_over_tls_cookies_are_bound_to_tls(site: SiteContext, tmp_path: Path) -> None:
    """`__Host-` and `Secure`; browsers remember that this host has TLS."""
    browser = Browser(site, access(tmp_path, tls=True, start=None), scheme="https")
    answer = browser.sign_in("viewer")
    cookies = answer.headers.get_list("set-cookie")
    assert all("Secure" in cookie and cookie.startswith("__Host-") for cookie in cookies)
    assert "max-age" in answer.headers["strict-transport-security"]
    assert browser.get("/").status_code == 200
