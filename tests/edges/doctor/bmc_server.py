"""A BMC's Redfish root over TLS on 127.0.0.1, with a certificate as the test wants it."""

from __future__ import annotations

import hashlib
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True)
class Served:
    """Where it listens, the PEM file that vouches for it, and the SHA-256 of its certificate."""

    port: int
    ca_file: Path
    fingerprint: str
    requests: list[str]


@contextmanager
def bmc(folder: Path, *, ends: timedelta = timedelta(days=1), clock: timedelta = timedelta(0)) -> Iterator[Served]:
    """Its certificate ends so far from now; its clock is so far before ours."""
    pem, digest = loopback_certificate(folder, datetime.now(UTC) + ends)
    requests: list[str] = []

    class Root(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
            self.send_response_only(200)
            self.send_header("Date", format_datetime(datetime.now(UTC) + clock, usegmt=True))
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 — the library's name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Root)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield Served(server.server_address[1], pem, digest, requests)
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def loopback_certificate(folder: Path, ends: datetime) -> tuple[Path, str]:
    """Write a key with its certificate for 127.0.0.1 that signs itself; return the file and the certificate's digest."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    address = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    begins = min(datetime.now(UTC), ends) - timedelta(days=1)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), begins, ends)
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "bmc.pem"
    file.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + certificate.public_bytes(Encoding.PEM)
    )
    return file, hashlib.sha256(certificate.public_bytes(Encoding.DER)).hexdigest()
