"""A peer of HTTP holds no request by its answer: neither by its size, nor by its encoding, nor by its slowness."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import requests

from clusterctl.edges.answer_body import read_body
from clusterctl.edges.loki import Loki
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.netbox.api import NetboxApi
from clusterctl.edges.netbox.session import NetboxConnection
from clusterctl.edges.tickets.http import TicketApi
from clusterctl.edges.ufm.api import UfmApi, UfmConnection
from clusterctl.edges.web.oidc import OidcProvider
from clusterctl.fleet.errors import CancelledError, ClusterctlError, ParseError
from clusterctl.ports import Deadline
from clusterctl.ports.logs import LogWindow
from clusterctl.site.monitoring import LokiSettings
from clusterctl.site.web import OidcRoles, OidcSettings
from tests.edges.maas.kit import API_KEY, UtcClock

BODY = b'{"text": "' + b"x" * 200_000 + b'"}'


class Peer(BaseHTTPRequestHandler):
    """`/drip` never ends; `/cut` promises more than it sends; `/gzip` is packed; each other path is `BODY`, whole.

    dripping  `drip` is the answer to each request
    """

    protocol_version = "HTTP/1.1"
    dripping = False

    def do_GET(self) -> None:
        kind = "/drip" if self.dripping else self.path
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        send: Callable[[], None] = {
            "/drip": self._drip,
            "/cut": self._cut,
            "/gzip": self._gzip,
            "/parts": self._parts,
        }.get(kind, self._whole)
        send()

    do_POST = do_GET  # noqa: N815 — the name that http.server calls

    def _drip(self) -> None:
        """Send a chunk of one byte again and again, until the client has gone."""
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b"1\r\n \r\n")
        except OSError:
            self.close_connection = True

    def _cut(self) -> None:
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY[:1000])
        self.close_connection = True

    def _gzip(self) -> None:
        packed = gzip.compress(bytes(10_000_000))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(packed)))
        self.end_headers()
        self.wfile.write(packed)

    def _parts(self) -> None:
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for part in (BODY[:7], BODY[7:], b""):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))

    def _whole(self) -> None:
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Clients that go away are what these tests are about."""


def serving(handler: type[Peer]) -> Iterator[str]:
    server = Quiet(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def peer() -> Iterator[str]:
    yield from serving(Peer)


@pytest.fixture
def dripping() -> Iterator[str]:
    yield from serving(type("Dripping", (Peer,), {"dripping": True}))


class LookTimer:
    """A `Timer` by which a second passes whenever one looks at it."""

    def __init__(self) -> None:
        self._looks = 0

    def now(self) -> float:
        self._looks += 1
        return float(self._looks)

    def wait(self, event: threading.Event, seconds: float) -> None:
        del event
        self._looks += int(seconds)


def passing(seconds: float = 500) -> Deadline:
    return Deadline.after(seconds, timer=LookTimer())


def read(url: str, most: int = 1 << 20, deadline: Deadline | None = None) -> bytes:
    with requests.get(url, stream=True, timeout=600) as answer:
        return read_body(answer, most, deadline or Deadline.after(600), "the peer", url)


@pytest.mark.parametrize("path", ["/whole", "/parts"])
def test_an_honest_answer_is_whole(peer: str, path: str) -> None:
    """With a length and in chunks, and not a byte more than its limit is refused."""
    assert read(f"{peer}{path}", len(BODY)) == BODY
    with pytest.raises(ParseError, match="larger than"):
        read(f"{peer}{path}", len(BODY) - 1)


def test_an_answer_that_is_cut_off_is_an_error(peer: str) -> None:
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        read(f"{peer}/cut")


def test_an_encoding_that_was_not_asked_for_is_refused(peer: str) -> None:
    with pytest.raises(ParseError, match="encoded"):
        read(f"{peer}/gzip")


def test_an_answer_that_never_ends(peer: str) -> None:
    """Ends at the deadline, at its limit of bytes, or when the run is stopped."""
    with pytest.raises(requests.exceptions.ReadTimeout):
        read(f"{peer}/drip", deadline=passing())
    with pytest.raises(ParseError, match="larger than"):
        read(f"{peer}/drip", 1000)
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(CancelledError):
        read(f"{peer}/drip", deadline=Deadline.after(600, stopped))


def ask_maas(url: str) -> object:
    settings = MaasSettings(url, API_KEY, "jammy", allow_plain_http=True)
    return MaasApi(settings, UtcClock()).get("version/", (), passing())


def ask_ufm(url: str) -> object:
    return UfmApi(UfmConnection(url=url, token="t0k3n-of-ufm"), UtcClock()).version(passing())


def ask_netbox(url: str) -> object:
    with NetboxApi(NetboxConnection(url, "t0k3n-of-netbox"), passing()) as api:
        return api.version()


def ask_tickets(url: str) -> object:
    return TicketApi(url, bearer="t0k3n-of-tickets").get("/x", passing())


def order_ticket(url: str) -> object:
    return TicketApi(url, bearer="t0k3n-of-tickets").post("/x", passing(), json={})


def ask_loki(url: str) -> object:
    now = datetime.now(UTC)
    window = LogWindow(since=now - timedelta(hours=1), until=now, text="", at_most=10)
    return Loki(LokiSettings(url=url), "", "").read("n1", window, passing())


def sign_in(url: str) -> object:
    settings = OidcSettings(issuer=url, client_id="clusterctl", roles=OidcRoles(admin=("a",)))
    return OidcProvider(settings, "a-client-secret", seconds=0.5).begin("http://127.0.0.1:8080/sign-in/callback")


CLIENTS = (ask_maas, ask_ufm, ask_netbox, ask_tickets, order_ticket, ask_loki, sign_in)


@pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__)
def test_no_client_waits_for_ever(dripping: str, ask: Callable[[str], object]) -> None:
    """A service that sends a byte at a time is an error of the client, which names the service."""
    with pytest.raises(ClusterctlError):
        ask(dripping)
