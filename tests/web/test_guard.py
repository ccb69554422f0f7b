"""What is between a request and each page: proof, role, CSRF token, headers, limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.operations.context import SiteContext
from clusterctl.operations.metrics import FleetMetrics
from clusterctl_web.change_feed import ChangeFeed
from clusterctl_web.guard import LARGEST_FORM, actor_of, form_of, needs
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.live_orders import LiveOrders
from clusterctl_web.node_view import NodeViews
from clusterctl_web.pages import Pages
from clusterctl_web.rate_limit import RateLimit, StreamLimit, address_key
from clusterctl_web.rendering import Renderer
from clusterctl_web.sessions import UserSessions
from tests.fake_timer import FakeTimer
from tests.web.browser import MADE, QUICK, TOKEN, Browser, access

PUBLIC = {"/sign-in", "/sign-in/provider", "/sign-in/callback", "/static/{name}"}


async def change(request: Request) -> Response:
    return PlainTextResponse(f"{actor_of(request).name} {form_of(request).text('reason')}")


@needs(UserRole.ADMIN)
async def administer(request: Request) -> Response:
    return PlainTextResponse(actor_of(request).name)


@pytest.fixture
def acting(browser: Browser) -> Browser:
    """A browser of a page with two actions."""
    browser.app.router.routes += [
        Route("/act", change, methods=["POST"]),
        Route("/administer", administer, methods=["GET", "POST"]),
    ]
    return browser


def test_no_page_is_shown_without_a_proof(browser: Browser) -> None:
    """Each route of the application but those of the sign-in, by each of its methods."""
    routes = [route for route in browser.app.routes if isinstance(route, Route) and route.path not in PUBLIC]
    assert len(routes) > 5
    for route in routes:
        for method in route.methods or ():
            path = route.path.replace("{", "").replace("}", "")
            answer = browser.send(method, path, headers={"Accept": "*/*"})
            assert answer.status_code in (401, 403), f"{method} {path}"
            assert "n2" not in answer.text


def test_a_form_needs_the_token_of_its_session(acting: Browser) -> None:
    """Not that of another user, none at all, or that of the sign-in form."""
    before = acting.csrf()
    acting.sign_in("operator")
    token = acting.csrf("/")
    assert token != before
    assert acting.post("/act", {"reason": "a cable", "csrf": token}).text == "operator a cable"
    for wrong in ("", "x", before):
        assert acting.post("/act", {"csrf": wrong}).status_code == 403
    assert acting.post("/act", {}).status_code == 403
    assert acting.post("/act", {}, headers={"X-CSRF-Token": token}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:9999"},
        {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"},
    ],
)  # fmt: skip
def test_a_form_of_a_foreign_page_is_refused(acting: Browser, headers: dict[str, str]) -> None:
    """Even with the right token."""
    acting.sign_in("operator")
    token = acting.csrf("/")
    assert acting.post("/act", {"csrf": token}, headers=headers).status_code == 403
    own = {"Origin": "http://127.0.0.1:8080", "Sec-Fetch-Site": "same-origin"}
    assert acting.post("/act", {"csrf": token}, headers=own).status_code == 200


def test_the_sign_in_form_needs_a_token_too(browser: Browser) -> None:
    """A foreign page cannot sign a browser in as another user."""
    assert browser.post("/sign-in", {"user": "viewer", "password": "x"}).status_code == 403


def test_roles(acting: Browser) -> None:
    """A viewer changes nothing but signs out; an operator acts; an administrator does everything."""
    allowed = {"viewer": [403, 403, 303], "operator": [200, 403, 303], "admin": [200, 200, 303]}
    for role, expected in allowed.items():
        acting.sign_in(role)
        fields = {"csrf": acting.csrf("/")}
        assert [acting.post(path, fields).status_code for path in ("/act", "/administer", "/sign-out")] == expected


def test_a_bearer_token_needs_no_csrf_token(acting: Browser, tmp_path: Path) -> None:
    """It has a name, a role and an end; nothing sends it by itself."""
    file = acting.access.accounts
    assert isinstance(file, AccountFile)
    now = datetime.now(UTC)
    good = file.add_token("ci", UserRole.OPERATOR, "root", MADE, now + timedelta(days=1))
    old = file.add_token("old", UserRole.ADMIN, "root", MADE, MADE + timedelta(days=1))
    assert acting.post("/act", headers={"Authorization": f"Bearer {good}"}).text == "token:ci "
    assert acting.post("/administer", headers={"Authorization": f"Bearer {good}"}).status_code == 403
    for wrong in (old, good + "x", "", "cctl_"):
        assert acting.post("/act", headers={"Authorization": f"Bearer {wrong}"}).status_code == 401
    assert acting.post("/act", headers={"Authorization": f"Bearer {TOKEN}"}).text == "root "
    file.remove_token("ci")
    assert acting.post("/act", headers={"Authorization": f"Bearer {good}"}).status_code == 401


def test_a_wrong_bearer_token_is_not_replaced_by_a_cookie(acting: Browser) -> None:
    acting.sign_in("admin")
    assert acting.get("/", headers={"Authorization": "Bearer x", "Accept": "*/*"}).status_code == 401


def test_a_large_form_is_refused(acting: Browser) -> None:
    acting.sign_in("operator")
    fields = {"csrf": acting.csrf("/"), "reason": "x" * LARGEST_FORM}
    assert acting.post("/act", fields).status_code == 400


def test_other_methods_are_refused(browser: Browser) -> None:
    browser.sign_in("admin")
    for method in ("PUT", "PATCH", "OPTIONS", "TRACE"):
        assert browser.send(method, "/").status_code == 405


def test_each_answer_has_the_headers(browser: Browser) -> None:
    """Refusals and errors, too: no script but ours, no frame, no guessing of types, no cache."""
    for path in ("/", "/sign-in", "/nodes/none", "/nothing", "/static/site.css"):
        headers = browser.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"


def test_streams_are_limited_per_user_and_in_total() -> None:
    limit = StreamLimit(per_user=2, total=3)
    assert [limit.take("a"), limit.take("a"), limit.take("a")] == [True, True, False]
    assert [limit.take("b"), limit.take("c")] == [True, False]
    limit.give_back("a")
    assert limit.take("c")


def test_a_user_with_too_many_streams_is_refused(browser: Browser) -> None:
    browser.sign_in("viewer")
    pages = next(route.endpoint.__self__ for route in browser.app.routes if getattr(route, "path", "") == "/changes")
    while pages.streams.take("viewer"):
        pass
    assert browser.get("/changes?since=0").status_code == 429


def test_a_stream_ends_with_its_session(site: SiteContext, tmp_path: Path) -> None:
    """Where the user is removed, the next look of the stream is its last; the stream is given back."""
    allowed = access(tmp_path)
    sessions, streams = UserSessions(allowed), StreamLimit()
    file = allowed.accounts
    assert isinstance(file, AccountFile)
    user = file.user("viewer")
    assert user is not None
    cookie = sessions.of_user(user)
    live = LiveFleet(site)
    views, feed = NodeViews(live, LiveOrders(live)), ChangeFeed(live)
    pages = Pages(live, Renderer(site.site.settings), sessions, streams, FleetMetrics(site), views, feed)
    assert streams.take("viewer")

    async def read() -> list[str]:
        found = []
        async for text in pages._events(lambda: sessions.find(cookie, used=False) is not None, "viewer", 0):
            found.append(text)
            file.remove_user("viewer")
        return found

    (first,) = anyio.run(read)
    assert "data: " in first
    assert not streams._open


def test_the_rate_limit_forgets_the_keys_that_are_not_used() -> None:
    limit = RateLimit(1, 60, FakeTimer().now, most_keys=3)
    assert [limit.take(key) for key in "abcd"] == [0.0] * 4
    assert limit.take("d") > 0
    assert limit.take("a") == 0.0


@pytest.mark.parametrize(
    ("address", "key"),
    [
        ("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"), ("", "unknown"), ("x", "unknown"),
    ],
)  # fmt: skip
def test_keys_of_addresses(address: str, key: str) -> None:
    assert address_key(address) == key


def test_the_file_of_the_accounts_is_read_again(tmp_path: Path) -> None:
    """Two that have it open see each other's changes."""
    one, other = AccountFile(tmp_path / "web", QUICK), AccountFile(tmp_path / "web", QUICK)
    assert other.users() == ()
    one.add_user("eve", UserRole.VIEWER, "a long password", MADE)
    assert [user.name for user in other.users()] == ["eve"]


def test_attempts_with_other_names_do_not_free_a_name() -> None:
    """A limit is not lifted by filling its memory: what has the fewest attempts is forgotten first."""
    timer = FakeTimer()
    limit = RateLimit(3, 60, timer.now, most_keys=5)
    for _ in range(3):
        assert limit.take("alice") == 0.0
    for number in range(50):
        assert limit.take(f"other {number}") == 0.0
    assert limit.take("alice") > 0.0
    timer.advance(61)
    for number in range(50):
        limit.take(f"another {number}")
    assert limit.take("alice") == 0.0
