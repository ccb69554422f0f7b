"""Sign-in at an OpenID Connect provider that others wrote (oidc-provider-mock), over HTTP on a loopback address."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from oidc_provider_mock import User, app
from werkzeug.serving import make_server

from clusterctl.edges.web.oidc import OidcProvider
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import AuthenticationError, ParseError, PrivilegeError, UnreachableError
from clusterctl.operations.context import SiteContext
from clusterctl.site.web import OidcRoles, OidcSettings
from tests.ports import reserve_port
from tests.web.browser import Browser, access

HOST = "127.0.0.1:8080"
BACK = f"http://{HOST}/sign-in/callback"
ROLES = OidcRoles(admin=("hpc-admins",), operator=("hpc-operators",), viewer=("staff",))
USERS = (
    User(sub="1", claims={"preferred_username": "ada", "groups": ["staff", "hpc-operators"]}),
    User(sub="2", claims={"preferred_username": "eve", "groups": ["guests"]}),
    User(sub="3", claims={"preferred_username": "<script>", "groups": "hpc-admins"}),
    User(sub="4", claims={"groups": ["staff"]}),
)


@pytest.fixture(scope="module")
def issuer() -> Iterator[str]:
    """The provider on a port of its own; its own runner gives up after one second, which a busy machine exceeds."""
    server = make_server(
        "localhost", reserve_port("127.0.0.1"), app(require_nonce=True, user_claims=USERS), threaded=True
    )
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1})
    thread.start()
    try:
        yield f"http://localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def provider(issuer: str, **changes: object) -> OidcProvider:
    """Our client of the provider, with a secret of its own."""
    settings = OidcSettings(**{"issuer": issuer, "client_id": "clusterctl", "roles": ROLES, **changes})
    return OidcProvider(settings, "a-client-secret", seconds=200.0)


@pytest.fixture
def browser(site: SiteContext, tmp_path: Path, issuer: str) -> Browser:
    return Browser(site, access(tmp_path, provider=provider(issuer)), host=HOST)


def begin(browser: Browser, following: str = "/nodes/n2") -> str:
    """Press the button; return the provider's address that the browser is sent to."""
    page = browser.post("/sign-in/provider", {"csrf": browser.csrf(), "next": following})
    assert page.status_code == 200
    return page.headers["refresh"].partition("url=")[2]


def answer(address: str, sub: str) -> str:
    """Sign in at the provider; return the path that it sends the browser to."""
    found = httpx.post(address, data={"sub": sub}, timeout=600)
    assert found.status_code == 302
    back = urlsplit(found.headers["location"])
    assert f"{back.scheme}://{back.netloc}{back.path}" == BACK
    return f"{back.path}?{back.query}"


def test_a_user_signs_in_at_the_provider(browser: Browser) -> None:
    """The highest of the user's roles holds; the browser returns to the page that it came from."""
    asked = parse_qs(urlsplit(begin(browser)).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["redirect_uri"] == [BACK]
    entered = browser.get(answer(begin(browser), "1"))
    assert (entered.status_code, entered.headers["location"]) == (303, "/nodes/n2")
    page = browser.get("/").text
    assert "oidc:ada" in page
    assert "(operator)" in page


def test_a_user_without_a_role_does_not_come_in(browser: Browser) -> None:
    refused = browser.get(answer(begin(browser), "2"))
    assert refused.status_code == 403
    assert "has no role" in refused.text
    assert browser.get("/").status_code == 303


def test_what_the_provider_names_stays_text(browser: Browser) -> None:
    """A hostile name is escaped; a role may be one text; without the claim the subject is the name."""
    browser.get(answer(begin(browser), "3"))
    page = browser.get("/").text
    assert "oidc:&lt;script&gt;" in page
    assert "<script>\n" not in page
    browser.get(answer(begin(browser), "4"))
    assert "oidc:4" in browser.get("/").text


def test_an_answer_counts_once_and_in_its_own_browser(browser: Browser) -> None:
    """Not a second time, not in a browser that did not begin, not with another state."""
    path = answer(begin(browser), "1")
    (flow,) = [item for item in browser.cookies.items() if item[0].endswith("-flow")]
    other = Browser(browser.context, browser.access, host=HOST)
    assert other.get(path).status_code == 400
    assert browser.get(path).status_code == 303
    browser.keep_only(*flow)
    assert browser.get(path).status_code == 400


def test_a_foreign_state_is_refused(browser: Browser) -> None:
    """The answer of another sign-in does not sign this browser in."""
    path = answer(begin(browser), "1")
    begin(browser)
    assert browser.get(path).status_code == 401


def test_a_denial_is_shown(browser: Browser) -> None:
    address = begin(browser)
    found = httpx.post(address, data={"action": "deny"}, timeout=600)
    back = urlsplit(found.headers["location"])
    refused = browser.get(f"{back.path}?{back.query}")
    assert refused.status_code == 401
    assert "access_denied" in refused.text


def finished(issuer: str, sub: str = "1", **changes: object) -> OidcProvider:
    """Run one sign-in without a browser."""
    client = provider(issuer, **changes)
    request = client.begin(BACK)
    query = dict(parse_qs(urlsplit(answer(request.url, sub)).query))
    client.finish(request, {name: values[0] for name, values in query.items()})
    return client


def test_the_token_must_be_for_this_sign_in(issuer: str) -> None:
    """A token with another nonce or a code of another verifier is refused."""
    client = provider(issuer)
    one, other = client.begin(BACK), client.begin(BACK)
    query = parse_qs(urlsplit(answer(one.url, "1")).query)
    given = {"code": query["code"][0], "state": other.state}
    with pytest.raises(AuthenticationError):
        client.finish(other, given)


def test_an_issuer_that_is_written_otherwise_is_refused(issuer: str) -> None:
    """The metadata must name the issuer exactly (OpenID Connect Discovery 1.0, section 4.3)."""
    with pytest.raises(ParseError) as refused:
        provider(issuer.replace("localhost", "127.0.0.1") + "/").begin(BACK)
    assert "another issuer" in refused.value.message


def test_a_provider_that_is_not_there(site: SiteContext, tmp_path: Path) -> None:
    """The page shows it, and the sign-in with a password goes on to work."""
    gone = f"http://localhost:{reserve_port('127.0.0.1')}"
    with pytest.raises(UnreachableError):
        provider(gone).begin(BACK)
    browser = Browser(site, access(tmp_path, provider=provider(gone)), host=HOST)
    assert browser.post("/sign-in/provider", {"csrf": browser.csrf()}).status_code == 503
    assert browser.sign_in("viewer").status_code == 303


def test_roles_of_claims(issuer: str) -> None:
    """Claims of other names are read where the site names them."""
    client = provider(issuer, role_claim="preferred_username", roles=OidcRoles(viewer=("ada",)))
    request = client.begin(BACK)
    query = {name: values[0] for name, values in parse_qs(urlsplit(answer(request.url, "1")).query).items()}
    assert client.finish(request, query).role is UserRole.VIEWER
    with pytest.raises(PrivilegeError):
        finished(issuer, roles=OidcRoles(admin=("others",)))
