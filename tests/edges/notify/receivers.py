"""Real receivers of messages on the loopback: an SMTP server (aiosmtpd) and an HTTP server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.ports import reserve_port

HOST = "127.0.0.1"


@dataclass
class Mailbox:
    """An SMTP server. `refuses`: so many mails it refuses first."""

    port: int
    refuses: int = 0
    mails: list[EmailMessage] = field(default_factory=list)

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 — aiosmtpd's name
        if self.refuses:
            self.refuses -= 1
            return "451 Requested action aborted: local error in processing"
        assert isinstance(envelope.content, bytes)
        found = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(found, EmailMessage)
        self.mails.append(found)
        return "250 Message accepted for delivery"

    @property
    def url(self) -> str:
        return f"mailto://{HOST}:{self.port}?from=clusterctl%40site.example&to=ops%40site.example&mode=insecure"


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    mailbox = Mailbox(reserve_port(HOST))
    controller = Controller(mailbox, hostname=HOST, port=mailbox.port)
    controller.start()
    try:
        yield mailbox
    finally:
        controller.stop()


@dataclass
class Receiver:
    """An HTTP server that keeps what is posted. `answers`: status codes of the next answers; 200 afterwards."""

    port: int
    posts: list[tuple[str, Any]] = field(default_factory=list)
    answers: list[int] = field(default_factory=list)

    def url(self, token: str) -> str:
        return f"json://{HOST}:{self.port}/hooks/{token}"


@contextmanager
def http_receiver() -> Iterator[Receiver]:
    receiver = Receiver(reserve_port(HOST))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            receiver.posts.append((self.path, json.loads(body)))
            self.send_response(receiver.answers.pop(0) if receiver.answers else 200)
            self.send_header("Location", f"http://{HOST}:{receiver.port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer((HOST, receiver.port), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
