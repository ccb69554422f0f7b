"""An authority and certificates as a site would have them for machines that boot over HTTPS: RSA, with an address."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from clusterctl.edges.pxe.boot_certificate import BootCertificate, boot_certificate

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
NOW = dt.datetime(2026, 11, 20, 12, 0, tzinfo=dt.UTC)
YEARS = dt.timedelta(days=7300)


@cache
def rsa_key(number: int) -> rsa.RSAPrivateKey:
    """A key; the same one for the same number, since making one takes a while."""
    del number
    return rsa.generate_private_key(65537, 2048)


@dataclass
class BootAuthority:
    """An authority; `key` RSA where none is given."""

    number: int = 0
    key: Key | None = None
    certificate: x509.Certificate = field(init=False)

    def __post_init__(self) -> None:
        self.key = self.key or rsa_key(self.number)
        name = _name(f"boot authority {self.number}")
        builder = x509.CertificateBuilder(name, name, self.key.public_key(), 1 + self.number, NOW - YEARS, NOW + YEARS)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.certificate = builder.sign(self.key, hashes.SHA256())

    @property
    def pem(self) -> str:
        return self.certificate.public_bytes(Encoding.PEM).decode()

    def issue(self, key: Key, *addresses: str, until: dt.datetime = NOW + YEARS) -> str:
        """A certificate (PEM) for these addresses; without any it has no subjectAltName."""
        assert self.key is not None
        builder = x509.CertificateBuilder(
            self.certificate.subject, _name("boot service"), key.public_key(), 77, NOW - YEARS, until
        )
        if addresses:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(one)) for one in addresses])
            builder = builder.add_extension(names, critical=False)
        return builder.sign(self.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


@dataclass(frozen=True)
class BootFilesOfSite:
    """What a site has: certificate, key and authority as files."""

    certificate: Path
    private_key: Path
    ca: Path

    def read(self, address: str) -> BootCertificate:
        return boot_certificate(self.certificate, self.private_key, self.ca, address, NOW)


def write_files(folder: Path, certificate: str, key: Key, ca: str) -> BootFilesOfSite:
    folder.mkdir(exist_ok=True)
    found = BootFilesOfSite(folder / "boot.pem", folder / "boot.key", folder / "boot-ca.pem")
    found.certificate.write_text(certificate)
    found.private_key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    found.private_key.chmod(0o600)
    found.ca.write_text(ca)
    return found


def site_files(folder: Path, *addresses: str, authority: int = 0) -> BootFilesOfSite:
    """A certificate for these addresses, as it should be."""
    made, key = BootAuthority(authority), rsa_key(100)
    return write_files(folder, made.issue(key, *addresses), key, made.pem)
