"""sushy-tools' emulator over TLS, which neither of us wrote: its fake machine, with a serial, and without its waits."""

from __future__ import annotations

import copy
import json
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from clusterctl.fleet.node import Serial
from clusterctl.ports import BmcAddress
from tests.edges.redfish.replay import PASSWORD, certificate

UUID = "27946b59-9e44-4fa7-8e91-f3527a1ef094"
SERIAL = Serial("SUSHY1")
MACHINE = {"uuid": UUID, "name": "n1", "power_state": "Off", "external_notifier": False, "nics": []}
RESET = f"/redfish/v1/Systems/{UUID}/Actions/ComputerSystem.Reset"


class Sushy:
    """WSGI: the emulator, its System with a serial; `asked` are the requests. Its machine takes a second to eleven to
    switch, which no test waits for: what it has pending is due at once.
    """

    def __init__(self, app: Any) -> None:
        self._app = app
        self._inner: Callable[..., Iterable[bytes]] = app.wsgi_app
        self.asked: list[str] = []
        self.serial = SERIAL

    def reset(self) -> None:
        """The machine as it was delivered: off, and nothing set."""
        self._app.systems._systems[UUID] = copy.deepcopy(MACHINE)
        self.asked.clear()
        self.serial = SERIAL

    def __call__(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append(f"{method} {path}")
        if method == "GET" and path == f"/redfish/v1/Systems/{UUID}" and self.serial:
            return self._with_serial(environ, start)
        reported = self._inner(environ, start)
        if (method, path) == ("POST", RESET):
            reported = [b"".join(reported)]
            self._hurry()
        return reported

    def _with_serial(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        reported: list[Any] = []
        body = b"".join(self._inner(environ, lambda *head: reported.extend(head)))
        if reported[0].startswith("200"):
            body = json.dumps({**json.loads(body), "SerialNumber": self.serial}).encode()
        start(reported[0], [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _hurry(self) -> None:
        systems = self._app.systems._systems
        there = systems[UUID]
        if there.get("pending_power"):
            there["pending_power"]["apply_time"] = 0
            systems[UUID] = there


class Shelf(BaseHTTPRequestHandler):
    """An image for the emulator, which fetches what is put into its drives."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "4")
        self.end_headers()
        self.wfile.write(b"ISO!")

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 — http.server's name
        """Quiet."""


@contextmanager
def shelf() -> Iterator[str]:
    """The image's URI while the block runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shelf)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/some.iso"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def served(folder: Path) -> Iterator[tuple[Sushy, BmcAddress]]:
    """It, and how to reach it, while the block runs; skips where it is not installed."""
    bcrypt = pytest.importorskip("bcrypt")
    emulator = pytest.importorskip("sushy_tools.emulator.main")
    serving = pytest.importorskip("werkzeug.serving")
    hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
    (folder / "htpasswd").write_text(f"root:{hashed}\n")
    emulator.app.configure(
        extra_config={
            "SUSHY_EMULATOR_FAKE_DRIVER": True,
            "SUSHY_EMULATOR_FAKE_SYSTEMS": [MACHINE],
            "SUSHY_EMULATOR_STATE_DIR": str(folder),
            "SUSHY_EMULATOR_AUTH_FILE": str(folder / "htpasswd"),
        }
    )
    shown = Sushy(emulator.app)
    pem = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server = serving.make_server("127.0.0.1", 0, shown, ssl_context=context)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield shown, BmcAddress("127.0.0.1", "root", PASSWORD, server.server_port, str(pem))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
