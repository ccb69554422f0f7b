"""The service itself, over TLS on an address that is not loopback's name, with a certificate of the test's own."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from clusterctl.edges.web.accounts import AccountFile
from clusterctl.fleet.access import UserRole
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.context import SiteContext, open_site
from clusterctl.site.web import WebSettings
from clusterctl_web.service import serve
from tests.cli.site_of_three import write
from tests.web.browser import MADE, PASSWORD, QUICK


def certificate(folder: Path, *names: x509.GeneralName) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "the page")])
    now = datetime.now(UTC)
    builder = x509.CertificateBuilder(
        name, name, key.public_key(), x509.random_serial_number(), now - timedelta(days=1), now + timedelta(days=1)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    pem, private = folder / "page.pem", folder / "page.key"
    pem.write_bytes(builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    private.chmod(0o600)
    return pem, private


@pytest.fixture
def context(tmp_path: Path) -> Iterator[SiteContext]:
    """A site with a certificate for localhost."""
    opened = open_site(write(tmp_path))
    pem, key = certificate(tmp_path, x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1")))
    yield with_certificate(opened, pem, key)
    opened.journal.close()


def with_certificate(context: SiteContext, pem: Path, key: Path) -> SiteContext:
    web = WebSettings(certificate=str(pem), private_key=str(key))
    return replace(context, site=replace(context.site, settings=replace(context.site.settings, web=web)))


@contextmanager
def served(context: SiteContext, listen: str) -> Iterator[str]:
    """The page, really, until the end of the block; yields its address."""
    stop, entered, address = threading.Event(), threading.Event(), []

    def ready(given: str) -> None:
        address.append(given)
        entered.set()

    thread = threading.Thread(target=serve, args=(context, listen, ready, stop))
    thread.start()
    try:
        assert entered.wait(600)
        yield address[0]
    finally:
        stop.set()
        thread.join(600)
    assert not thread.is_alive()


def test_other_than_on_loopback_it_is_tls_and_users(context: SiteContext, tmp_path: Path) -> None:
    """The address has no token; a name that the certificate does not have is refused; the user signs in."""
    AccountFile(context.site.folder / "state" / "web", QUICK).add_user("ada", UserRole.VIEWER, PASSWORD, MADE)
    with served(context, "0.0.0.0:0") as address:
        assert address.startswith("https://localhost:")
        assert "token" not in address
        trust = ssl.create_default_context(cafile=str(tmp_path / "page.pem"))
        with httpx.Client(verify=trust, timeout=600, base_url=address, headers={"Accept": "text/html"}) as client:
            assert client.get("/").headers["location"] == "/sign-in?next=%2F"
            assert client.get("/", headers={"Host": "evil.example"}).status_code == 400
            form = client.get("/sign-in").text
            csrf = form.partition('name="csrf" value="')[2].partition('"')[0]
            fields = {"user": "ada", "password": PASSWORD, "csrf": csrf}
            entered = client.post("/sign-in", data=fields)
            assert entered.status_code == 303
            assert "__Host-clusterctl-" in entered.headers["set-cookie"]
            assert "Fleet" in client.get("/").text
        with pytest.raises(httpx.HTTPError):
            httpx.get(address.replace("https:", "http:"), timeout=600)


def test_without_users_it_does_not_start(context: SiteContext) -> None:
    """Other than on loopback a page that no user can open is a mistake."""
    with pytest.raises(UsageError) as refused:
        serve(context, "0.0.0.0:0", print, threading.Event())
    assert "clusterctl web user add" in refused.value.remedy


def test_certificates_that_are_refused(context: SiteContext, tmp_path: Path) -> None:
    """One without names, one with another's key, a key that others may read, and no certificate at all."""
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    nameless, its_key = certificate(tmp_path / "a")
    named, key = certificate(tmp_path / "b", x509.DNSName("page.example"))
    readable = tmp_path / "readable.key"
    readable.write_bytes(key.read_bytes())
    readable.chmod(0o644)
    for pem, private in ((nameless, its_key), (named, its_key), (named, readable), (tmp_path / "none", key)):
        with pytest.raises(UsageError):
            serve(with_certificate(context, pem, private), "0.0.0.0:0", print, threading.Event())
