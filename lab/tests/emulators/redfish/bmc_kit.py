"""What the BMC tests share: a small world, requests, a test CA."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import json
import ssl
from ipaddress import IPv4Network
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.dell import DELL
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.healthy import build
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import Delays, World

PASSWORD = "of-no-use-elsewhere"
QUICK = Delays(
    power_off=0.01, post=0.01, commission=0.01, write_os=0.01, flash=0.04, bmc_restart=0.01, netboot_timeout=0.05
)
SYSTEM = "/redfish/v1/Systems/System.Embedded.1"
RESET = f"{SYSTEM}/Actions/ComputerSystem.Reset"
SESSIONS = "/redfish/v1/SessionService/Sessions"
SEL_ENTRIES = "/redfish/v1/Managers/iDRAC.Embedded.1/LogServices/Sel/Entries"
BASIC = "Basic " + base64.b64encode(f"root:{PASSWORD}".encode()).decode()


def world_of(count: int = 1, network: str = "127.88.0.0/16") -> World:
    """A world of healthy machines node001, node002, …, whose BMCs are on loopback addresses."""
    layout = Layout(IPv4Network(network))
    machines: list[Machine] = [build(index, layout, PASSWORD) for index in range(1, count + 1)]
    return World(layout, {machine.name: machine for machine in machines}, QUICK)


def bmc_of(world: World, name: str = "node001", clock=lambda: 0.0) -> Bmc:
    return Bmc(world, name, DELL, clock)


def ask(bmc: Bmc, method: str, path: str, body: Any = None, **request: Any) -> Answer:
    """Send a request with Basic authentication, unless `token` or `authorization` replaces it."""
    if "token" not in request:
        request.setdefault("authorization", BASIC)
    raw = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    return bmc.answer(Request(method, path, raw, **request))


def message_ids(answer: Answer) -> list[str]:
    """The message ids of an error body, without their registry versions."""
    assert answer.body is not None
    return [entry["MessageId"].rsplit(".", 1)[-1] for entry in answer.body["error"]["@Message.ExtendedInfo"]]


class TestCa:
    """A CA that issues one server certificate per address."""

    __test__ = False

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test CA")])
        self._certificate = self._issue(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0))

    def client_context(self) -> ssl.SSLContext:
        """Verifies servers against this CA alone."""
        return ssl.create_default_context(cadata=self._certificate.public_bytes(serialization.Encoding.PEM).decode())

    def server_context(self, address: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
        san = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
        pem = self._directory / f"{address}.pem"
        pem.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + self._issue(subject, key, san).public_bytes(serialization.Encoding.PEM)
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        return context

    def _issue(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(minutes=5))
            .not_valid_after(now + dt.timedelta(days=1))
            .add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        )
        return builder.sign(self._key, hashes.SHA256())
