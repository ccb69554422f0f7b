"""A browser of the tests: an httpx client of the application in this process, with cookies and forms."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import anyio
import httpx
from argon2 import PasswordHasher

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.operations import detached
from clusterctl.operations.context import SiteContext
from clusterctl.operations.job_watchers import Order
from clusterctl_web.app import application
from clusterctl_web.live_fleet import LiveFleet
from clusterctl_web.sessions import SignInRules, StartToken
from tests.fake_timer import FakeTimer

TOKEN = "a-token-of-this-start"
PASSWORD = "correct horse battery"
MADE = datetime(2026, 11, 1, tzinfo=UTC)
QUICK = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)
"""Digests that take no time; the site's own take 64 MiB."""
_CSRF = re.compile(r'name="csrf" value="([^"]+)"')


def accounts(folder: Path) -> AccountFile:
    """A user of each role, whose name is the role and whose password is `PASSWORD`."""
    file = AccountFile(folder / "web", QUICK)
    for role in UserRole:
        file.add_user(role.value, role, PASSWORD, MADE)
    return file


def access(folder: Path, **changes: object) -> SignInRules:
    """Users of each role and the token of a start on a loopback address."""
    start = StartToken(secret=TOKEN, actor="root")
    return SignInRules(**{"accounts": accounts(folder), "start": start, **changes})


@dataclass
class Browser:
    """Sends requests one after the other, and keeps cookies between them. `start`: starts the watchers of users' runs."""

    context: SiteContext
    access: SignInRules
    address: str = "203.0.113.7"
    scheme: str = "http"
    host: str = "127.0.0.1:8080"
    cookies: httpx.Cookies = field(default_factory=httpx.Cookies)
    headers: dict[str, str] = field(default_factory=lambda: {"Accept": "text/html"})
    start: Order = detached.order

    def __post_init__(self) -> None:
        self.app = application(LiveFleet(self.context), self.access, start=self.start)

    def send(self, method: str, path: str, **options: object) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, client=(self.address, 40000))
            base = f"{self.scheme}://{self.host}"
            async with httpx.AsyncClient(transport=transport, base_url=base, headers=self.headers) as client:
                client.cookies = self.cookies
                answer = await client.request(method, path, **options)
                self.cookies = client.cookies
                return answer

        return anyio.run(ask)

    def get(self, path: str, **options: object) -> httpx.Response:
        return self.send("GET", path, **options)

    def post(self, path: str, fields: dict[str, str] | None = None, **options: object) -> httpx.Response:
        return self.send("POST", path, data=fields or {}, **options)

    def keep_only(self, name: str, value: str) -> None:
        """Hold one cookie, and no other."""
        self.cookies = httpx.Cookies()
        self.cookies.set(name, value)

    @property
    def session(self) -> tuple[str, str]:
        """Name and value of the session's cookie."""
        return next(item for item in self.cookies.items() if not item[0].endswith(("-form", "-flow")))

    def csrf(self, path: str = "/sign-in") -> str:
        """The token of the form on a page."""
        found = _CSRF.search(self.get(path).text)
        assert found is not None
        return found[1]

    def sign_in(self, user: str, password: str = PASSWORD, following: str = "/") -> httpx.Response:
        fields = {"user": user, "password": password, "next": following, "csrf": self.csrf()}
        return self.post("/sign-in", fields)


def timed(timer: FakeTimer) -> dict[str, object]:
    """Access by a clock that stands."""
    return {"clock": timer.now}
