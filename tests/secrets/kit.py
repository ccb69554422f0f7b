"""A web server that trusts no client: it records every byte that reaches it behind TLS, and echoes what it is sent."""

from __future__ import annotations

import datetime as dt
import hashlib
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.edges.redfish.replay import certificate

Answer = Callable[["Handler"], tuple[int, dict[str, str], bytes]]


class UtcClock:
    def now(self) -> dt.datetime:
        return dt.datetime.now(dt.UTC)


@dataclass
class Received:
    """What clients sent: request lines, headers and bodies, as they came."""

    requests: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join(self.requests)


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.received = Received()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that break off are what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    server: Server

    def _any(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.server.received.requests.append(f"{self.requestline}\n{self.headers}\n{self.body.decode()}")
        status, headers, content = self.server.answer(self)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = _any  # noqa: N815 — the names that http.server calls

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — http.server's name
        """Quiet."""


def echo(status: int, kind: str = "text/plain") -> Answer:
    """Refuses, and repeats all that it received, as a careless service would."""

    def answer(handler: Handler) -> tuple[int, dict[str, str], bytes]:
        reported = f"you sent {handler.requestline} {dict(handler.headers)} ".encode() + handler.body
        return status, {"Content-Type": kind}, reported

    return answer


def redirect(location: str) -> Answer:
    return lambda _: (302, {"Location": location}, b"")


@contextmanager
def serving(answer: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """On 127.0.0.1, over TLS where a context is given."""
    server = Server(answer)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass(frozen=True)
class Certified:
    """A self-signed certificate: its file (with the key), its SHA-256, a server's context that shows it."""

    pem: Path

    @classmethod
    def make(cls, folder: Path, name: str = "server", address: str = "127.0.0.1") -> Certified:
        return cls(certificate(folder, name, address))

    @property
    def fingerprint(self) -> str:
        text = self.pem.read_text()
        return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[text.index("-----BEGIN CERT") :])).hexdigest()

    @property
    def context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.pem)
        return made

    @property
    def outdated(self) -> ssl.SSLContext:
        """TLS 1.1 at most, as an old BMC."""
        made = self.context
        return _downgraded(made)

    def uses_outdated_tls(self, port: int) -> bool:
        """True where a client that is as old comes to terms with the server: it is not broken otherwise."""
        client = _downgraded(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        client.load_verify_locations(self.pem)
        with (
            socket.create_connection(("127.0.0.1", port), timeout=600) as plain,
            client.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
        ):
            return tls.version() == "TLSv1.1"


def _downgraded(context: ssl.SSLContext) -> ssl.SSLContext:
    context.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings(category=DeprecationWarning, action="ignore"):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    return context
