"""A BMC's server for tests: keeps what it was asked, and does wrong on demand before it does right."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = Callable[[Any], None]
"""What is done with a request instead of the right thing; it gets the handler."""


class FaultyServer(ThreadingHTTPServer):
    """`faults` by (method, path): each is used once, in order. `released`: what hangs may go."""

    daemon_threads = True

    def __init__(self, place: tuple[str, int], handler: type[FaultyHandler]) -> None:
        super().__init__(place, handler)
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.faults: dict[tuple[str, str], list[Fault]] = {}
        self.released = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go away are what these tests are about."""


class FaultyHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: FaultyServer

    def fault(self) -> bool:
        """To be asked first: True where the request has been dealt with."""
        self.server.asked.append((self.command, self.path))
        self.server.headers.append(dict(self.headers))
        waiting = self.server.faults.get((self.command, self.path))
        if not waiting:
            return False
        waiting.pop(0)(self)
        return True

    def reply(self, status: int, body: Any, headers: dict[str, str] | None = None) -> None:
        self.raw(status, b"" if body is None else json.dumps(body).encode(), headers)

    def raw(self, status: int, content: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — http.server's name
        """Quiet."""


def status(code: int, body: Any = None, **headers: str) -> Fault:
    """Such an answer; `Retry_After="1"` is the header Retry-After."""
    return lambda handler: handler.reply(code, body or {}, {k.replace("_", "-"): v for k, v in headers.items()})


def hang(handler: FaultyHandler) -> None:
    """No answer until the test is over."""
    handler.server.released.wait(600)
    handler.close_connection = True


def drop(handler: FaultyHandler) -> None:
    """The connection ends without an answer."""
    handler.close_connection = True
