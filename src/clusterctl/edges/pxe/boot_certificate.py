"""The installer service's certificate, for machines whose firmware boots over HTTPS."""

from __future__ import annotations

import os
import ssl
from base64 import b64encode
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from ipaddress import ip_address
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from clusterctl.edges.certificate_authority import issued_by, load_authority
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.secrets import private_text
from clusterctl.edges.site.textfile import read_text
from clusterctl.fleet.errors import UsageError

CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20:DHE+AESGCM:kRSA+AESGCM:AES256-SHA256:AES128-SHA256"
"""OpenSSL's names, the best first. The last three are without forward secrecy: the firmware of Debian 12 (OVMF 2022.11)
offers no others.
"""
_FIELD = "provisioning.https"


@dataclass(frozen=True, slots=True)
class BootCertificate:
    """PEM: certificate with its chain, its key, and the authority. `key_pin` is the key's SHA-256 as curl takes it."""

    certificate: str
    private_key: str = field(repr=False)
    authority: str
    key_pin: str


def boot_certificate(certificate: Path, private_key: Path, ca: Path, address: str, now: datetime) -> BootCertificate:
    """Return the certificate of the service at `address`. Raises `UsageError` where firmware would refuse it."""
    authority = load_authority(ca)
    key_text = private_text(private_key, f"{_FIELD}.private_key")
    KNOWN.add([key_text])
    text = read_text(certificate, f"{_FIELD}.certificate")
    try:
        chain = x509.load_pem_x509_certificates(text.encode())
        public = load_pem_private_key(key_text.encode(), password=None).public_key()
    except (ValueError, TypeError):
        remedy = "name PEM files of a certificate and of its key, the key without a passphrase"
        raise UsageError("certificate or key is not understood", where=_FIELD, remedy=remedy) from None
    first = chain[0]
    if wrong := _defect(first, address, now):
        remedy = f"issue a certificate for the address {address}, signed by {ca}"
        raise UsageError(f"the certificate {wrong}", where=str(certificate), remedy=remedy)
    if not all(isinstance(one.public_key(), rsa.RSAPublicKey) for one in (*chain, authority)):
        remedy = "use RSA keys for the certificate and for each authority: firmware may know no others"
        raise UsageError("a key of the certificate, its chain or its ca is not RSA", where=_FIELD, remedy=remedy)
    if first.public_key() != public:
        raise UsageError("is not the key of the certificate", where=str(private_key), remedy="name the key of it")
    if not all(issued_by(one, signer) for one, signer in pairwise((*chain, authority))):
        remedy = "name the authority that signed it as ca, or append the authorities between to the certificate"
        raise UsageError("the certificate does not lead to ca", where=str(certificate), remedy=remedy)
    spki = first.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    pin = b64encode(sha256(spki).digest()).decode()
    return BootCertificate(text, key_text, authority.public_bytes(Encoding.PEM).decode(), pin)


def _defect(first: x509.Certificate, address: str, now: datetime) -> str:
    """Return why firmware would refuse it, or the service could not use it; empty where nothing is wrong."""
    if not first.not_valid_before_utc <= now <= first.not_valid_after_utc:
        return f"is valid from {first.not_valid_before_utc:%Y-%m-%d} to {first.not_valid_after_utc:%Y-%m-%d}"
    try:
        names = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return "has no subjectAltName"
    if ip_address(address) not in names.get_values_for_type(x509.IPAddress):
        return f"is not for {address}, the address that machines ask"
    return ""


def service_context(certificate: str, private_key: str) -> ssl.SSLContext:
    """Return the service's context. The key is in memory alone: OpenSSL reads it from a file without a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(CIPHERS)
    descriptor = os.memfd_create("boot-certificate", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(f"{private_key}\n{certificate}".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
    return context
