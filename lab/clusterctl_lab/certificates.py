"""The lab's certificate authority: one key, created by each `lab up`, that signs the certificate of every service."""

from __future__ import annotations

import os
import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID = timedelta(days=90)
SKEW = timedelta(hours=1)


class LabCa:
    """A P-256 certificate authority in `folder`, which is made with mode 0700.

    Its own key stays in memory; a service's key is a file (mode 0600), because OpenSSL loads it from one.
    """

    def __init__(self, folder: Path, lab: str) -> None:
        self._folder = folder
        self._lab = lab
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._sign_itself()
        folder.mkdir(mode=0o700, parents=True)
        self.ca_file = folder / "ca.pem"
        self.ca_file.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def certificate_for(self, *addresses: str) -> ssl.SSLContext:
        """Return a server's TLS context with its own certificate for these IP addresses (at least one)."""
        return self._context(addresses, datetime.now(UTC) + VALID, addresses[0])

    def expired_certificate_for(self, *addresses: str) -> ssl.SSLContext:
        """The same with a certificate that was valid until yesterday."""
        return self._context(addresses, datetime.now(UTC) - timedelta(days=1), f"{addresses[0]}-expired")

    def _context(self, addresses: tuple[str, ...], until: datetime, name: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(key, addresses, until)
        file = self._folder / f"{name}.pem"
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as handle:
            handle.write(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
            handle.write(certificate.public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(file)
        return context

    def _sign_itself(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"clusterctl lab {self._lab}")])
        public = self._key.public_key()
        builder = (
            _builder(name, name, public, datetime.now(UTC) + VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())

    def _sign(self, key: ec.EllipticCurvePrivateKey, addresses: tuple[str, ...], until: datetime) -> x509.Certificate:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, addresses[0])])
        names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(address)) for address in addresses])
        issuer = self._key.public_key()
        builder = (
            _builder(subject, self._certificate.subject, key.public_key(), until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(names, critical=False)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer), critical=False)
        )
        return builder.sign(self._key, hashes.SHA256())


def _builder(
    subject: x509.Name, issuer: x509.Name, public: ec.EllipticCurvePublicKey, until: datetime
) -> x509.CertificateBuilder:
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=subject,
        public_key=public,
        serial_number=x509.random_serial_number(),
        not_valid_before=until - VALID - SKEW,
        not_valid_after=until,
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
