"""`provisioning.https` of a site file: what it is read into, what is refused, and what a run then warns about."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clusterctl.edges.pxe.boot_certificate import boot_certificate
from clusterctl.edges.site import Site, load_site
from clusterctl.fleet.errors import UsageError
from clusterctl.operations.pxe import pxe_settings
from clusterctl.operations.trust import notices
from tests.edges.pxe.tls_kit import site_files
from tests.edges.site.ready import write_ready_site

HTTPS = """  https:
    certificate: tls/boot.pem
    private_key: tls/boot.key
    ca: tls/boot-ca.pem
"""
PXE = """provisioning:
  backend: pxe
  interface: prov0
  address: 192.0.2.1
  boot_folder: /nowhere
"""


def site(folder: Path, more: str) -> Site:
    written = write_ready_site(folder / "site")
    site_files(written / "tls", "192.0.2.1")
    text = (written / "site.yml").read_text()
    text, found = re.subn(r"provisioning:\n(  .*\n)+", PXE + more, text)
    assert found == 1
    (written / "site.yml").write_text(text)
    return load_site(written)


def about_boot(loaded: Site) -> list[str]:
    return [notice for notice in notices(loaded) if "machines boot" in notice]


def test_it_is_read(tmp_path: Path) -> None:
    """Certificate, key and authority, relative to the site; machines reach the service by https; no warning is left."""
    loaded = site(tmp_path, f"  image: debian-12\n{HTTPS}")
    settings = pxe_settings(loaded)
    assert (settings.base, settings.enroll) == ("https://192.0.2.1:8080", True)
    tls = tmp_path / "site/tls"
    now = datetime.now(UTC)
    assert settings.tls == boot_certificate(tls / "boot.pem", tls / "boot.key", tls / "boot-ca.pem", "192.0.2.1", now)
    assert about_boot(loaded) == []


def test_by_hand_is_a_warning(tmp_path: Path) -> None:
    """Nothing is known of the firmware then. Plain HTTP is one, too."""
    by_hand = site(tmp_path / "a", f"  image: debian-12\n{HTTPS}    enroll: by-hand\n")
    assert not pxe_settings(by_hand).enroll
    assert "enroll: by-hand" in about_boot(by_hand)[0]
    plain = site(tmp_path / "b", "  image: debian-12\n")
    assert (pxe_settings(plain).base, pxe_settings(plain).tls) == ("http://192.0.2.1:8080", None)
    assert "plain HTTP" in about_boot(plain)[0]


def test_a_distributions_installer_is_refused(tmp_path: Path) -> None:
    """It would load its own parts over plain HTTP: exit code 2, with the field."""
    with pytest.raises(UsageError, match="method must be image, not autoinstall"):
        site(tmp_path, f"  method: autoinstall\n  kernel: k\n  initrd: i\n  iso: x.iso\n  series: noble\n{HTTPS}")


def test_a_missing_certificate_is_refused(tmp_path: Path) -> None:
    """Before anything is served, with the field."""
    loaded = site(tmp_path, f"  image: debian-12\n{HTTPS}")
    (tmp_path / "site/tls/boot.key").unlink()
    with pytest.raises(UsageError, match="does not exist") as caught:
        pxe_settings(loaded)
    assert "provisioning.https.private_key" in caught.value.where
