"""A BMC that answers from a tree of resources, over TLS, with faults on demand."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusterctl.formats.redfish.tree import Unreadable
from clusterctl.ports import BmcAddress
from tests.edges.redfish.trees import Manner, Tree, answer
from tests.faulty import Fault, FaultyHandler, FaultyServer

PASSWORD = "S3cr3t-of-the-test"
TOKEN = "token-of-the-test-0123456789"
SESSIONS = "/redfish/v1/SessionService/Sessions"


class Bmc(FaultyServer):
    """Answers from `tree`, where no fault is waiting and `manner` does not answer in its place."""

    def __init__(self, tree: Tree) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.tree = tree
        self.resets: list[str] = []
        self.patched: list[tuple[str, Any]] = []
        self.open_sessions = 0
        self.manner: Callable[[Handler], bool] = lambda _handler: False
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)


class Handler(FaultyHandler, BaseHTTPRequestHandler):
    server: Bmc
    body: Any = None

    def do_GET(self) -> None:
        if self.fault() or self.server.manner(self):
            return
        path = self.path.rstrip("/")
        found = answer(self.server.tree, path, Manner.EXPANDS)
        if path != "/redfish/v1" and not self._known():
            self.reply(401, {})
        elif isinstance(found, Unreadable):
            self.reply(404 if found.reason == "HTTP 501" else int(found.reason.removeprefix("HTTP ")), {})
        else:
            self.reply(200, found)

    def do_POST(self) -> None:
        self.body = body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.fault() or self.server.manner(self):
            return
        if self.path == SESSIONS:
            self._log_in(body)
        elif "VirtualMedia" in self.path:
            slot, _, action = self.path.partition("/Actions/VirtualMedia.")
            self._media(slot, body.get("Image") if action == "InsertMedia" else None)
        else:
            self._reset(body["ResetType"])

    def do_PATCH(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.patched.append((self.path, body))
        if self.fault():
            return
        merge(self.server.tree[self.path], body)
        self.reply(200, {})

    def _media(self, slot: str, image: str | None) -> None:
        self.server.tree[slot].update(Image=image, Inserted=image is not None)
        self.reply(204, None)

    def _known(self) -> bool:
        """By session, or by user and password with each request."""
        basic = base64.b64encode(f"root:{PASSWORD}".encode()).decode()
        return self.headers.get("X-Auth-Token") == TOKEN or self.headers.get("Authorization") == f"Basic {basic}"

    def _log_in(self, body: dict[str, str]) -> None:
        if body == {"UserName": "root", "Password": PASSWORD}:
            self.server.open_sessions += 1
            self.reply(201, {}, {"X-Auth-Token": TOKEN, "Location": f"https://127.0.0.1{SESSIONS}/7"})
        else:
            self.reply(401, error("Base.1.0.AccessDenied", "The credentials are wrong."))

    def _reset(self, kind: str) -> None:
        """The OS of this machine does not listen: it never shuts down by itself."""
        self.server.resets.append(kind)
        if kind in ("On", "ForceOff"):
            self.server.tree["/redfish/v1/Systems/1"]["PowerState"] = kind.removeprefix("Force")
        self.reply(204, None)

    def do_DELETE(self) -> None:
        if self.fault():
            return
        assert self.path == f"{SESSIONS}/7"
        assert self.headers["X-Auth-Token"] == TOKEN
        self.server.open_sessions -= 1
        self.reply(204, None)


def merge(resource: dict[str, Any], change: dict[str, Any]) -> None:
    """As a PATCH does: objects field by field, all else as a whole."""
    for key, value in change.items():
        if isinstance(value, dict) and isinstance(resource.get(key), dict):
            merge(resource[key], value)
        else:
            resource[key] = value


def raw(content: bytes) -> Fault:
    return lambda handler: handler.raw(200, content)


def drip(handler: Handler) -> None:
    """An answer of one byte now and then, for ever: each byte would restart a plain time-out."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    while not handler.server.released.wait(0.02):
        handler.wfile.write(b" ")


def error(message_id: str, message: str) -> dict[str, Any]:
    """The body of a Redfish error."""
    return {"error": {"code": message_id, "@Message.ExtendedInfo": [{"MessageId": message_id, "Message": message}]}}


@contextmanager
def serve(tree: Tree, directory: Path, *, tls: bool = True) -> Iterator[tuple[Bmc, BmcAddress]]:
    """A BMC while the block runs, and how to reach it; its certificate is its own authority."""
    pem = certificate(directory)
    server = Bmc(tree)
    server.context.load_cert_chain(pem)
    if tls:
        server.socket = server.context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server, BmcAddress("127.0.0.1", "root", PASSWORD, server.server_address[1], str(pem))
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def certificate(directory: Path, name: str = "bmc", address: str = "127.0.0.1") -> Path:
    """Key and self-signed certificate for an address in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(names, critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = directory / f"{name}.pem"
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    pem.write_bytes(key.private_bytes(*form) + made.public_bytes(serialization.Encoding.PEM))
    return pem
