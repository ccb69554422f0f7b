"""An authority of a test, and a BMC that makes keys, requests them, and presents what it is given."""

from __future__ import annotations

import datetime as dt
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.edges.redfish.replay import Handler
from tests.edges.redfish.trees import Tree

ROOT = "/redfish/v1"
SERVICE = f"{ROOT}/CertificateService"
GENERATE = f"{SERVICE}/Actions/CertificateService.GenerateCSR"
REPLACE = f"{SERVICE}/Actions/CertificateService.ReplaceCertificate"
PROTOCOL = f"{ROOT}/Managers/1/NetworkProtocol"
COLLECTION = f"{PROTOCOL}/HTTPS/Certificates"
Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


def with_certificates(tree: Tree) -> Tree:
    """The tree with the resources as recorded at Supermicro: service, actions, collection, one certificate."""
    tree[ROOT]["CertificateService"] = {"@odata.id": SERVICE}
    tree[SERVICE] = {
        "@odata.id": SERVICE,
        "Actions": {
            "#CertificateService.GenerateCSR": {"target": GENERATE},
            "#CertificateService.ReplaceCertificate": {"target": REPLACE},
        },
    }
    tree.setdefault(PROTOCOL, {"@odata.id": PROTOCOL})["HTTPS"] = {
        "ProtocolEnabled": True,
        "Certificates": {"@odata.id": COLLECTION},
    }
    tree[f"{ROOT}/Managers/1"]["NetworkProtocol"] = {"@odata.id": PROTOCOL}
    tree[COLLECTION] = {
        "@odata.id": COLLECTION,
        "Members@odata.count": 1,
        "Members": [{"@odata.id": f"{COLLECTION}/1"}],
    }
    tree[f"{COLLECTION}/1"] = {"@odata.id": f"{COLLECTION}/1", "CertificateType": "PEM"}
    return tree


def pem_of(key: Key) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@dataclass
class Authority:
    """A P-256 authority; `days` that it is valid from now on."""

    name: str = "BMC authority"
    days: int = 3650
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def __post_init__(self) -> None:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        now = dt.datetime.now(dt.UTC)
        self.certificate = (
            x509.CertificateBuilder(
                name, name, self.key.public_key(), 1, now - dt.timedelta(days=2), now + dt.timedelta(days=self.days)
            )
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self.key, hashes.SHA256())
        )

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()


def request_of(key: Key, **names: str) -> str:
    """A request that asks for other names than the site's: nothing of it may count but the key."""
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names.get("common", "evil.example"))])
    builder = x509.CertificateSigningRequestBuilder().subject_name(subject)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName("evil.example")]), critical=False)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


@dataclass
class Certifying:
    """The certificate service of the BMC behind `context`: a `manner` of tests.edges.redfish.replay.

    bits      of its new keys; 0: EC
    refuses   answers GenerateCSR so
    stubborn  accepts a certificate, and goes on presenting the old one
    drops     closes the connection instead of an answer to ReplaceCertificate
    """

    context: ssl.SSLContext
    folder: Path
    bits: int = 0
    refuses: int = 0
    stubborn: bool = False
    drops: bool = False
    key: Key | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def __call__(self, handler: Handler) -> bool:
        if handler.command != "POST" or handler.path not in (GENERATE, REPLACE):
            return False
        body = handler.body
        self.asked.append((handler.path, body))
        if handler.path == GENERATE:
            self._generate(handler)
        elif self.drops:
            self._take(body["CertificateString"])
            handler.close_connection = True
            handler.connection.close()
        else:
            self._take(body["CertificateString"])
            handler.reply(204, None)
        return True

    def _generate(self, handler: Handler) -> None:
        if self.refuses:
            handler.reply(self.refuses, {})
            return
        self.key = rsa.generate_private_key(65537, self.bits) if self.bits else ec.generate_private_key(ec.SECP256R1())
        handler.reply(200, {"CSRString": request_of(self.key), "CertificateCollection": {"@odata.id": COLLECTION}})

    def _take(self, pem: str) -> None:
        assert self.key is not None
        if not self.stubborn:
            file = self.folder / "new.pem"
            file.write_text(pem_of(self.key) + pem)
            self.context.load_cert_chain(file)
