"""The certificate of the installer service: refused before a machine is armed where its firmware would refuse it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

from clusterctl.edges.pxe.boot_certificate import service_context
from clusterctl.edges.redaction import KNOWN, MASK
from clusterctl.fleet.errors import UsageError
from tests.edges.pxe.tls_kit import NOW, BootAuthority, BootFilesOfSite, Key, rsa_key, site_files, write_files

ADDRESS = "192.0.2.1"


def files(folder: Path, certificate: str, key: Key | None = None, ca: str | None = None) -> BootFilesOfSite:
    return write_files(folder / "tls", certificate, key or rsa_key(100), ca or BootAuthority().pem)


def test_a_good_one_is_read(tmp_path: Path) -> None:
    """Its key is in memory alone: neither printed nor logged; the service can serve with it."""
    found = site_files(tmp_path / "tls", ADDRESS, "192.0.2.2").read(ADDRESS)
    assert found.authority == BootAuthority().pem
    assert "PRIVATE" not in repr(found)
    assert found.private_key.splitlines()[3] not in repr(found)
    assert KNOWN(f"key: {found.private_key}") == f"key: {MASK}"
    assert len(found.key_pin) == 44
    service_context(found.certificate, found.private_key)


def test_a_chain_is_followed_to_the_authority(tmp_path: Path) -> None:
    """An authority between, whose certificate follows in the file."""
    root, between = BootAuthority(), BootAuthority(1)
    key = rsa_key(100)
    middle = _signed_by(root, between)
    read = files(tmp_path, between.issue(key, ADDRESS) + middle)
    assert read.read(ADDRESS).certificate.count("BEGIN CERTIFICATE") == 2
    with pytest.raises(UsageError, match="does not lead to ca"):
        files(tmp_path, between.issue(key, ADDRESS)).read(ADDRESS)


def _signed_by(root: BootAuthority, between: BootAuthority) -> str:
    assert root.key is not None
    assert between.key is not None
    builder = x509.CertificateBuilder(
        root.certificate.subject,
        between.certificate.subject,
        between.key.public_key(),
        5,
        between.certificate.not_valid_before_utc,
        between.certificate.not_valid_after_utc,
    ).add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return builder.sign(root.key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()


@pytest.mark.parametrize(
    ("certificate", "reason"),
    [
        (lambda: BootAuthority().issue(rsa_key(100), "192.0.2.9"), "is not for 192.0.2.1"),
        (lambda: BootAuthority().issue(rsa_key(100)), "no subjectAltName"),
        (lambda: BootAuthority().issue(rsa_key(100), ADDRESS, until=NOW - timedelta(days=1)), "is valid from"),
        (lambda: BootAuthority(2).issue(rsa_key(100), ADDRESS), "does not lead to ca"),
        (lambda: BootAuthority().issue(rsa_key(101), ADDRESS), "not the key of the certificate"),
        (lambda: "no certificate", "not understood"),
    ],
)
def test_what_firmware_would_refuse(tmp_path: Path, certificate: object, reason: str) -> None:
    """Exit code 2 with the field or file, and a remedy."""
    with pytest.raises(UsageError, match=reason) as caught:
        files(tmp_path, certificate()).read(ADDRESS)  # type: ignore[operator]
    assert caught.value.where
    assert caught.value.remedy


def test_keys_that_firmware_may_not_know(tmp_path: Path) -> None:
    """An elliptic curve, of the certificate or of the authority: the firmware of Debian 12 knows none."""
    curve = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(UsageError, match="not RSA"):
        files(tmp_path, BootAuthority().issue(curve, ADDRESS), key=curve).read(ADDRESS)
    other = BootAuthority(key=curve)
    with pytest.raises(UsageError, match="not RSA"):
        files(tmp_path, other.issue(rsa_key(100), ADDRESS), ca=other.pem).read(ADDRESS)


def test_a_key_that_others_can_read(tmp_path: Path) -> None:
    """Refused, with the command that repairs it."""
    site = site_files(tmp_path / "tls", ADDRESS)
    site.private_key.chmod(0o640)
    with pytest.raises(UsageError, match="others may read it") as caught:
        site.read(ADDRESS)
    assert "chmod 600" in caught.value.remedy
