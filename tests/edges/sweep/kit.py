"""BMCs on addresses of 127.0.0.0/8, all on one port, over TLS, with faults on demand; what a sweep needs to visit them."""

from __future__ import annotations

import datetime as dt
import hashlib
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusterctl.edges.redfish import KnownBmcs
from clusterctl.edges.redfish.sweep import CandidateProbe
from clusterctl.edges.redfish.timing import Timing
from clusterctl.fleet.bmc.observation import BmcObservation, Greeting
from clusterctl.ports import BmcAddress, Deadline
from clusterctl.ports.logins import Login
from tests.edges.sweep.shapes import ROOT, Tree
from tests.faulty import FaultyHandler, FaultyServer
from tests.ports import reserve_port

PASSWORD = "S3cr3t-of-the-sweep"
SESSIONS = f"{ROOT}/SessionService/Sessions"
QUICK = Timing(attempts=2, busy=0.01, busy_max=0.02, asked_max=0.02, logout=1.0)


class Bmc(FaultyServer):
    """Answers from `tree`, where no fault is waiting. Sessions have tokens of their own."""

    request_queue_size = 64

    def __init__(self, address: str, port: int, tree: Tree) -> None:
        super().__init__((address, port), Handler)
        self.tree = tree
        self.posted: list[str] = []
        self.sessions: dict[str, str] = {}
        self.logins = 0
        self.password = PASSWORD


class Handler(FaultyHandler, BaseHTTPRequestHandler):
    server: Bmc

    def do_GET(self) -> None:
        if self.fault():
            return
        path, _, query = self.path.partition("?")
        found = self.server.tree.get(path.rstrip("/"))
        if path.rstrip("/") != ROOT and self.headers.get("X-Auth-Token") not in self.server.sessions:
            self.reply(401, {})
        elif found is None:
            self.reply(404, {})
        else:
            self.reply(200, self._expanded(found) if "$expand" in query else found)

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.posted.append(text)
        if self.fault():
            return
        self.server.logins += 1
        body = json.loads(text)
        if self.path != SESSIONS or body != {"UserName": "root", "Password": self.server.password}:
            self.reply(401, {"error": {"message": "wrong credentials"}})
            return
        number = str(self.server.logins)
        self.server.sessions[f"token-{number}"] = f"{SESSIONS}/{number}"
        self.reply(201, {}, {"X-Auth-Token": f"token-{number}", "Location": f"{SESSIONS}/{number}"})

    def do_DELETE(self) -> None:
        if self.fault():
            return
        assert self.server.sessions.pop(self.headers["X-Auth-Token"]) == self.path
        self.reply(204, None)

    def _expanded(self, found: Tree) -> Tree:
        return {**found, "Members": [self.server.tree[item["@odata.id"]] for item in found["Members"]]}


@dataclass
class Network:
    """BMCs by address, behind one authority; `presented` are the SHA-256 of their certificates."""

    folder: Path
    port: int = 0
    bmcs: dict[str, Bmc] = field(default_factory=dict)
    presented: dict[str, str] = field(default_factory=dict)

    @property
    def ca_file(self) -> str:
        return str(self.folder / "ca.pem")

    def door(self, host: str) -> BmcAddress:
        return BmcAddress(host, "", "", self.port, ca_file=self.ca_file)

    def stranger(self, host: str) -> BmcAddress:
        """As `door`, but without an authority that vouches for it."""
        return BmcAddress(host, "", "", self.port)

    def visit(
        self, host: str, *, known: KnownBmcs | None = None, deadline: Deadline | None = None, **more: Any
    ) -> BmcObservation:
        """One visit under the site's login."""
        known = known or KnownBmcs(self.folder / "pins")
        probe = CandidateProbe(more.pop("door", self.door), more.pop("logins", OneLogin()), known, timing=QUICK)
        return probe(host, deadline or Deadline.after(60))


@dataclass
class OneLogin:
    """The same for every BMC; `asked` records the serials."""

    password: str = PASSWORD
    asked: list[tuple[str, Greeting]] = field(default_factory=list)

    def login(self, host: str, greeting: Greeting) -> Login | None:
        self.asked.append((host, greeting))
        return Login("the site's", "root", self.password)


@contextmanager
def network(
    folder: Path, trees: dict[str, Tree], *, ends: dt.timedelta = dt.timedelta(days=1), one_bmc: bool = False
) -> Iterator[Network]:
    """All of them listen while the block runs; their certificates are of one authority, and end so far from now.

    `one_bmc`: they are addresses of one BMC, which has one certificate.
    """
    made = Network(folder, reserve_port(*trees))
    key = ec.generate_private_key(ec.SECP256R1())
    authority = _certificate("authority", key, None, dt.timedelta(days=1))
    (folder / "ca.pem").write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    with ExitStack() as stack:
        own = ec.generate_private_key(ec.SECP256R1())
        certificate = _certificate(",".join(trees), own, (authority, key), ends)
        for address, tree in trees.items():
            if not one_bmc:
                own = ec.generate_private_key(ec.SECP256R1())
                certificate = _certificate(address, own, (authority, key), ends)
            made.presented[address] = hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest()
            pem = folder / f"{address}.pem"
            form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
            pem.write_bytes(own.private_bytes(*form) + certificate.public_bytes(serialization.Encoding.PEM))
            made.bmcs[address] = stack.enter_context(_serving(Bmc(address, made.port, tree), pem))
        yield made


@contextmanager
def _serving(server: Bmc, pem: Path) -> Iterator[Bmc]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _certificate(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    by: tuple[x509.Certificate, ec.EllipticCurvePrivateKey] | None,
    ends: dt.timedelta,
) -> x509.Certificate:
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name.partition(",")[0])])
    issuer, signer = (by[0].subject, by[1]) if by else (subject, key)
    until = dt.datetime.now(dt.UTC) + ends
    begins = min(until, dt.datetime.now(dt.UTC)) - dt.timedelta(days=1)
    builder = x509.CertificateBuilder(issuer, subject, key.public_key(), x509.random_serial_number(), begins, until)
    if by is None:
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    else:
        names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(one)) for one in name.split(",")])
        builder = builder.add_extension(names, critical=False)
    return builder.sign(signer, hashes.SHA256())
