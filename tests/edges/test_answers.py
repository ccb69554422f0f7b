"""A peer of HTTP holds no request by its answer: neither by its size, nor by its encoding, nor by its slowness."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest
import requests

from clusterctl.edges.answers import answer_session, read_body, send
from clusterctl.edges.loki import Loki
from clusterctl.edges.maas.api import MaasApi
from clusterctl.edges.maas.settings import MaasSettings
from clusterctl.edges.netbox.api import NetboxApi
from clusterctl.edges.netbox.session import NetboxConnection
from clusterctl.edges.tickets.http import TicketApi
from clusterctl.edges.tls import Trust
from clusterctl.edges.ufm.api import UfmApi, UfmConnection
from clusterctl.edges.web.oidc import OidcProvider
from clusterctl.fleet.errors import CancelledError, ClusterctlError, ParseError
from clusterctl.ports import Deadline
from clusterctl.ports.logs import LogWindow
from clusterctl.site.monitoring import LokiSettings
from clusterctl.site.web import OidcRoles, OidcSettings
from tests.edges.doctor.bmc_server import loopback_certificate
from tests.edges.maas.kit import API_KEY, UtcClock

BODY = b'{"text": "' + b"x" * 200_000 + b'"}'


class Peer(BaseHTTPRequestHandler):
    """`/cut` promises more than it sends; `/gzip` is packed; `SLOW` never ends; each other path is `BODY`, whole.

    slow  the one of `SLOW` that is the answer to each request
    next_byte  released when a byte of `/byte…` may be sent
    """

    protocol_version = "HTTP/1.1"
    slow = ""
    next_byte: threading.Semaphore

    def do_GET(self) -> None:
        kind = self.slow or self.path
        try:
            if kind in SLOW:
                self._slowly(*SLOW[kind])
                return
            self.send_response(302 if kind == "/away" else 200)
            self.send_header("Content-Type", "application/json")
            {"/cut": self._cut, "/gzip": self._gzip, "/away": self._away, "/parts": self._parts}.get(
                kind, self._whole
            )()
        except OSError:
            self.close_connection = True

    do_POST = do_GET  # noqa: N815 — the name that http.server calls

    def _slowly(self, begin: bytes, again: bytes) -> None:
        """Send the beginning of an answer, then the other bytes again and again, until the client has gone."""
        self.wfile.write(begin)
        while True:
            if len(again) == 1:
                self.next_byte.acquire()
            self.wfile.write(again)

    def _away(self) -> None:
        self.send_header("Location", "/whole")
        self._gzip()

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


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SLOW = {
    "/continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "/chunks": (CHUNKED, b"1\r\n \r\n"),
    "/trailers": (CHUNKED + b"0\r\n", b"X: y\r\n"),
    "/byte-of-status": (b"HTTP/1.1 ", b"0"),
    "/byte-of-header": (b"HTTP/1.1 200 OK\r\nX-Long: ", b"y"),
    "/byte-of-length": (CHUNKED + b"1", b"0"),
    "/byte-of-extension": (CHUNKED + b"1;", b"x"),
    "/byte-of-body": (b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", b" "),
}
"""Answers that never end: how each begins, and what follows again and again; one byte follows when the client looks at
its clock."""


class Quiet(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Clients that go away are what these tests are about."""


class Peers:
    """A server of `Peer`, at `url`."""

    def __init__(self, slow: str = "", tls: ssl.SSLContext | None = None) -> None:
        self.next_byte = threading.Semaphore(0)
        self._server = Quiet(("127.0.0.1", 0), type("Answering", (Peer,), {"slow": slow, "next_byte": self.next_byte}))
        if tls:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"http{'s' if tls else ''}://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.next_byte.release(1_000_000)  # a handler that still waits sends, and sees that its client has gone
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def peer() -> Iterator[str]:
    with Peers() as peers:
        yield peers.url


class LookTimer:
    """A `Timer` by which a second passes whenever one looks at it. `looked` is called then."""

    def __init__(self, looked: Callable[[], None]) -> None:
        self._looks = 0
        self._looked = looked

    def now(self) -> float:
        self._looks += 1
        self._looked()
        return float(self._looks)

    def wait(self, event: threading.Event, seconds: float) -> None:
        del event
        self._looks += int(seconds)


def passing(looked: Callable[[], None] = lambda: None) -> Deadline:
    return Deadline.after(100, timer=LookTimer(looked))


def read(url: str, most: int = 1 << 20, deadline: Deadline | None = None, trust: Trust | None = None) -> bytes:
    until = deadline or Deadline.after(600)
    with answer_session(trust or Trust()) as session, send(session, requests.Request("GET", url), until) as answer:
        return read_body(answer, most, until, "the peer", url)


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


def test_the_body_of_a_redirect_is_not_unpacked(peer: str) -> None:
    """Nor is it followed: `requests` would read the body at once, decoded, whatever its size."""
    with pytest.raises(ParseError, match="encoded"):
        read(f"{peer}/away")


@pytest.mark.parametrize("kind", SLOW)
def test_an_answer_that_never_ends(kind: str) -> None:
    """Ends at the deadline, or when the run is stopped, wherever in the answer it is slow."""
    with Peers() as peers:
        with pytest.raises(requests.exceptions.RequestException) as refused:
            read(f"{peers.url}{kind}", deadline=passing(peers.next_byte.release))
        assert "did not end in time" in str(refused.value) or isinstance(refused.value, requests.exceptions.ReadTimeout)
        stopped = threading.Event()
        stopped.set()
        with pytest.raises(CancelledError):
            read(f"{peers.url}{kind}", deadline=Deadline.after(600, stopped))


def test_an_answer_without_end_is_refused_at_its_limit_of_bytes(peer: str) -> None:
    with pytest.raises(ParseError, match="larger than"):
        read(f"{peer}/chunks", 1000)


def test_an_answer_over_tls_that_never_ends(tmp_path: Path) -> None:
    """The sockets with TLS observe the deadline, too; an honest answer through them is whole."""
    pem, pin = loopback_certificate(tmp_path, datetime.now(UTC) + timedelta(days=1))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pem)
    with Peers(tls=tls) as peers:
        assert read(f"{peers.url}/whole", trust=Trust(fingerprint=pin)) == BODY
        with pytest.raises(requests.exceptions.ReadTimeout):
            read(f"{peers.url}/byte-of-header", deadline=passing(peers.next_byte.release), trust=Trust(fingerprint=pin))


def test_a_handshake_that_never_ends() -> None:
    """A record of TLS that comes a byte at a time: the time is that of the whole handshake, not of each byte."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip() -> None:
            with listening.accept()[0] as client, contextlib.suppress(OSError):
                client.sendall(b"\x16\x03\x03\x3f\xff\x02")
                while True:
                    client.sendall(b"\0")
                    time.sleep(0.02)  # 16,383 bytes of it take minutes

        threading.Thread(target=drip, daemon=True).start()
        with pytest.raises(requests.exceptions.Timeout):
            read(f"https://127.0.0.1:{listening.getsockname()[1]}/", deadline=Deadline.after(0.3))


def test_a_session_sends_nothing_without_a_deadline(peer: str) -> None:
    """So that no client can forget it."""
    with answer_session(Trust()) as session, pytest.raises(LookupError):
        session.get(f"{peer}/whole")


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


@pytest.mark.parametrize("slow", ["/chunks", "/continue"])
@pytest.mark.parametrize("ask", CLIENTS, ids=lambda ask: ask.__name__)
def test_no_client_waits_for_ever(slow: str, ask: Callable[[str], object]) -> None:
    """A service whose headers or whose body never end is an error of the client, which names the service."""
    with Peers(slow) as peers, pytest.raises(ClusterctlError):
        ask(peers.url)
