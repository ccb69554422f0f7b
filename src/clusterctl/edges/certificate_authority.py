"""The site's authority for the certificates of BMCs: its own key, or a program that signs.

A BMC is hostile until proven: names, lifetime and usage are the site's, and of its request only the public key counts
(RFC 5280; the CA/Browser Forum's baseline for key sizes). What a program signed is checked likewise.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from clusterctl.fleet.bmc.certificates import CertificateWish, Issued, Presented
from clusterctl.fleet.errors import EdgeError, ParseError, UsageError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports import Clock, Deadline

SigningKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey
Sign = Callable[[x509.CertificateSigningRequest, CertificateWish, Deadline], x509.Certificate]
LEAST_RSA_BITS, LEAST_EC_BITS = 2048, 256
SKEW = timedelta(hours=1)
"""A BMC's clock may be behind."""
MAX_BYTES = 64 * 1024
_BROKEN = (ValueError, TypeError, UnsupportedAlgorithm, InvalidSignature)


class SiteAuthority:
    """Meets `CertificateAuthority`. `sign` makes the certificate: `own_key` or an external signer."""

    def __init__(self, certificate: x509.Certificate, sign: Sign) -> None:
        self.certificate = certificate
        self._sign = sign

    def read(self, der: bytes) -> Presented:
        """Return the contents of a certificate. Raises `ParseError`."""
        try:
            return self._presented(x509.load_der_x509_certificate(der), der)
        except _BROKEN as error:
            raise ParseError(f"the BMC's certificate is not understood ({type(error).__name__})") from None

    def _presented(self, found: x509.Certificate, der: bytes) -> Presented:
        return Presented(
            fingerprint=hashlib.sha256(der).hexdigest(),
            subject=visible_line(found.subject.rfc4514_string(), 200),
            issuer=visible_line(found.issuer.rfc4514_string(), 200) or "an unnamed authority",
            not_before=found.not_valid_before_utc,
            not_after=found.not_valid_after_utc,
            names=_names(found),
            by_site=issued_by(found, self.certificate),
        )

    def issue(self, request: str, wish: CertificateWish, deadline: Deadline) -> Issued:
        """Sign a request. Raises `EdgeError` for one that proves no key, and for a certificate that is not ours."""
        csr = _request(request)
        signed = self._sign(csr, wish, deadline)
        self._check(signed, csr, wish)
        return Issued(
            pem=signed.public_bytes(Encoding.PEM).decode(),
            fingerprint=signed.fingerprint(hashes.SHA256()).hex(),
            request=hashlib.sha256(csr.public_bytes(Encoding.DER)).hexdigest(),
        )

    def _check(self, signed: x509.Certificate, csr: x509.CertificateSigningRequest, wish: CertificateWish) -> None:
        wrong = ""
        if _public(signed) != _public(csr):
            wrong = "is for another key than the BMC's"
        elif not issued_by(signed, self.certificate):
            wrong = "is not signed by bmc.certificates.ca"
        elif not set(wish.names + wish.addresses) <= set(_names(signed)):
            wrong = f"does not name {', '.join((*wish.names, *wish.addresses))}"
        elif _is_authority(signed):
            wrong = "would make the BMC an authority"
        if wrong:
            raise EdgeError(f"the signed certificate {wrong}: nothing was sent", remedy="correct the signer")


def _public(of: x509.Certificate | x509.CertificateSigningRequest) -> bytes:
    return of.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def issued_by(found: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return whether the authority's key has signed the certificate."""
    try:
        found.verify_directly_issued_by(authority)
    except _BROKEN:
        return False
    return True


def _names(found: x509.Certificate) -> tuple[str, ...]:
    try:
        listed = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return ()
    names = [visible_line(name, 253).lower() for name in listed.get_values_for_type(x509.DNSName)]
    return (*names, *(str(one) for one in listed.get_values_for_type(x509.IPAddress)))


def _is_authority(found: x509.Certificate) -> bool:
    try:
        return found.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _request(text: str) -> x509.CertificateSigningRequest:
    try:
        csr = x509.load_pem_x509_csr(text.encode())
        valid, key = csr.is_signature_valid, csr.public_key()
    except _BROKEN as error:
        raise EdgeError(f"the BMC's certificate request is not understood ({type(error).__name__})") from None
    if not valid:
        raise EdgeError("the BMC's certificate request is not signed by its own key", remedy="reset the BMC")
    bits = key.key_size if isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey) else 0
    if bits < (LEAST_EC_BITS if isinstance(key, ec.EllipticCurvePublicKey) else LEAST_RSA_BITS):
        remedy = "update the BMC's firmware: it makes keys that TLS clients refuse"
        raise EdgeError(f"the BMC's new key is too weak ({bits} bits)", remedy=remedy)
    return csr


def load_authority(file: Path) -> x509.Certificate:
    """Return the authority's certificate. Raises `UsageError` for a file that holds none."""
    try:
        found = x509.load_pem_x509_certificate(file.read_bytes()[:MAX_BYTES])
    except OSError as error:
        raise UsageError(f"cannot be read: {error.strerror}", where=str(file), remedy="name a PEM file") from None
    except ValueError:
        raise UsageError("is no certificate", where=str(file), remedy="name a PEM file") from None
    if not _is_authority(found):
        remedy = "name the certificate of an authority (basicConstraints CA:TRUE)"
        raise UsageError("is no authority's certificate", where=str(file), remedy=remedy)
    return found


def in_bundle(authority: x509.Certificate, bundle: Path) -> bool:
    """Return whether a bundle of trusted authorities holds this one, or one that signed it."""
    try:
        trusted = x509.load_pem_x509_certificates(bundle.read_bytes())
    except (OSError, ValueError):
        return False
    return any(one == authority or issued_by(authority, one) for one in trusted)


def own_key(authority: x509.Certificate, pem: str, days: int, clock: Clock, field: str) -> Sign:
    """Return what signs with the authority's key. Raises `UsageError` for a text that is not that key."""
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except _BROKEN:
        raise UsageError("is no private key", where=field, remedy="keep it as PEM, without a passphrase") from None
    if not isinstance(key, SigningKey):
        raise UsageError("is no RSA or EC key", where=field, remedy="use an authority with an RSA or EC key")
    if key.public_key() != authority.public_key():
        raise UsageError("is not the key of bmc.certificates.ca", where=field, remedy="name the key that belongs to it")

    def sign(csr: x509.CertificateSigningRequest, wish: CertificateWish, _deadline: Deadline) -> x509.Certificate:
        return _builder(authority, csr, wish, clock.now(), days).sign(key, hashes.SHA256())

    return sign


def _builder(
    authority: x509.Certificate, csr: x509.CertificateSigningRequest, wish: CertificateWish, now: datetime, days: int
) -> x509.CertificateBuilder:
    names = x509.SubjectAlternativeName(
        [*map(x509.DNSName, wish.names), *(x509.IPAddress(ip_address(one)) for one in wish.addresses)]
    )
    until = min(now + timedelta(days=days), authority.not_valid_after_utc)
    if until <= now:
        remedy = "renew bmc.certificates.ca first"
        raise EdgeError(f"the site's authority expired on {authority.not_valid_after_utc:%Y-%m-%d}", remedy=remedy)
    return (
        x509.CertificateBuilder()
        .issuer_name(authority.subject)
        .subject_name(_subject(wish))
        .public_key(csr.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(max(now - SKEW, authority.not_valid_before_utc))
        .not_valid_after(until)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(names, critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(_usage(rsa_key=isinstance(csr.public_key(), rsa.RSAPublicKey)), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(csr.public_key()), critical=False)
        .add_extension(_key_identifier(authority), critical=False)
    )


def _key_identifier(authority: x509.Certificate) -> x509.AuthorityKeyIdentifier:
    try:
        own = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    except x509.ExtensionNotFound:
        key = authority.public_key()
        if not isinstance(key, rsa.RSAPublicKey | ec.EllipticCurvePublicKey):
            raise EdgeError("the site's authority has neither an RSA nor an EC key") from None
        return x509.AuthorityKeyIdentifier.from_issuer_public_key(key)
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(own)


def _subject(wish: CertificateWish) -> x509.Name:
    parts = {
        NameOID.COUNTRY_NAME: wish.country,
        NameOID.STATE_OR_PROVINCE_NAME: wish.state,
        NameOID.LOCALITY_NAME: wish.city,
        NameOID.ORGANIZATION_NAME: wish.organization,
        NameOID.ORGANIZATIONAL_UNIT_NAME: wish.unit,
        NameOID.COMMON_NAME: wish.common_name[:64],
    }
    return x509.Name([x509.NameAttribute(oid, text) for oid, text in parts.items()])


def _usage(*, rsa_key: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=rsa_key,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def external_signer(argv: tuple[str, ...]) -> Sign:
    """Return what lets a program sign: it reads the request as PEM and prints the certificate as PEM."""

    def sign(csr: x509.CertificateSigningRequest, wish: CertificateWish, deadline: Deadline) -> x509.Certificate:
        from clusterctl.edges.processes import Surroundings, run  # noqa: PLC0415 — few sites need it

        names = {"BMC_NAMES": ",".join(wish.names), "BMC_ADDRESSES": ",".join(wish.addresses)}
        stdin = csr.public_bytes(Encoding.PEM)
        done = run(argv, deadline.within(SIGNER_S), Surroundings(stdin=stdin, variables=names))
        try:
            if done.exit_status == 0:
                return x509.load_pem_x509_certificate(done.stdout.encode())
        except ValueError:
            pass
        remedy = "run it by hand with a request on its standard input"
        raise EdgeError(f"the signer {argv[0]} gave no certificate (exit code {done.exit_status})", remedy=remedy)

    return sign


SIGNER_S = 60.0
"""Seconds for an external signer."""
