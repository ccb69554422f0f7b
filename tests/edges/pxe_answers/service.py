"""A stand-in for the install service: gives prepared answers, and records the requests."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "0123456789abcdef" * 2
HANG_UP = 0
"""As a status: the connection ends without an answer, as when the service is killed."""


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    body: bytes


@dataclass
class Service:
    """`answers`: `GET probe.sh` → what to answer, one after the other, the last one for ever; else 200 and nothing."""

    answers: dict[str, Sequence[tuple[int, str]]] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    server: ThreadingHTTPServer = field(init=False)

    def __post_init__(self) -> None:
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service._answer(self, b"")

            def do_POST(self) -> None:
                service._answer(self, self.rfile.read(int(self.headers["Content-Length"])))

            def log_message(self, *reported: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server.server_bind()

    def open(self) -> None:
        """Until then connections are refused, on a port that no other process can take."""
        self.server.server_activate()
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"

    @property
    def attempt(self) -> str:
        return f"{self.url}/t/{TOKEN}"

    def paths(self, method: str = "POST") -> list[str]:
        return [asked.path for asked in self.asked if asked.method == method]

    def posted(self, path: str) -> list[bytes]:
        return [asked.body for asked in self.asked if (asked.method, asked.path) == ("POST", path)]

    def _answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        path = handler.path.removeprefix(f"/t/{TOKEN}/")
        key = f"{handler.command} {path}"
        before = sum(f"{asked.method} {asked.path}" == key for asked in self.asked)
        self.asked.append(Asked(handler.command, path, body))
        answers = self.answers.get(key, [(200, "")])
        status, text = answers[min(before, len(answers) - 1)]
        if status == HANG_UP:
            handler.close_connection = True
            return
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text.encode())


@contextmanager
def serving(answers: dict[str, Sequence[tuple[int, str]]]) -> Iterator[Service]:
    service = Service(answers)
    service.open()
    try:
        yield service
    finally:
        service.server.shutdown()
        service.server.server_close()
