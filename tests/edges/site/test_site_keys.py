"""The site's keys: BMC passwords are encrypted where clusterctl keeps them, and a former key still decrypts."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from clusterctl.edges.doctor.site_checks import check_passwords
from clusterctl.edges.site import load_site
from clusterctl.edges.site.secrets import private_text
from clusterctl.fleet.diagnosis import Health
from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.node import NodeId
from clusterctl.ports.accounts import Generation
from tests.edges.site.ready import write_ready_site

PASSWORD = "Kept-one-4711"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    site = write_ready_site(tmp_path / "site")
    (site / "bmcs.csv").write_text("name,bmc_address\nn1,10.20.0.11\n")
    return site


def use_keys(folder: Path, *keys: bytes) -> None:
    """Name the keys in the site file, the first first; each in a file of its own."""
    text = (folder / "site.yml").read_text().partition("site_keys:")[0]
    names = []
    for number, key in enumerate(keys):
        file = folder / "secrets" / f"key{number}"
        file.parent.mkdir(exist_ok=True)
        file.touch(0o600)
        file.write_bytes(key)
        names.append(f"{{file: secrets/{file.name}}}")
    (folder / "site.yml").write_text(f"{text}site_keys: [{', '.join(names)}]\n" if names else text)


def write(folder: Path, number: int = 1) -> str:
    """Keep a password; return what stands in its file."""
    kept = load_site(folder).logins.kept
    kept.write(Generation(NodeId("id-n1"), number, "n1", "10.20.0.11", "S1", "admin", PASSWORD))
    return (folder / "state" / "bmc_passwords" / f"id-n1.{number}").read_text()


def passwords(folder: Path) -> list[str]:
    return [one.password for one in load_site(folder).logins.kept.all()]


def test_a_password_is_encrypted_and_read_again(folder: Path) -> None:
    """No part of it stands in the file; a new key comes first, and the former one still reads it."""
    former, newer = Fernet.generate_key(), Fernet.generate_key()
    use_keys(folder, former)
    assert PASSWORD not in write(folder)
    assert passwords(folder) == [PASSWORD]
    use_keys(folder, newer, former)
    write(folder, 2)
    assert passwords(folder) == [PASSWORD, PASSWORD]
    use_keys(folder, newer)
    with pytest.raises(UsageError, match="cannot be decrypted by any key") as caught:
        passwords(folder)
    assert caught.value.where.endswith("id-n1.1")


def test_a_key_that_is_missing_is_named(folder: Path) -> None:
    use_keys(folder, Fernet.generate_key())
    write(folder)
    use_keys(folder)
    with pytest.raises(UsageError, match="is encrypted, and the site names no key"):
        passwords(folder)


def test_what_is_no_key_is_refused_and_not_repeated(folder: Path) -> None:
    """The error names the line of the site file, and how to make a key."""
    use_keys(folder, b"not-a-key-4711")
    with pytest.raises(UsageError, match="no Fernet key") as caught:
        write(folder)
    assert "site.yml:" in caught.value.where
    assert "not-a-key-4711" not in str(caught.value)


def test_what_was_kept_before_is_still_read_and_doctor_names_it(folder: Path) -> None:
    """Until it is rotated."""
    assert PASSWORD in write(folder)
    use_keys(folder, Fernet.generate_key())
    assert passwords(folder) == [PASSWORD]
    site = load_site(folder)
    kept = site.logins.kept
    kept.prove(kept.all()[0], None)
    found = check_passwords(load_site(folder))
    assert (found.health, "n1" in found.found) == (Health.WARN, True)
    write(folder, 2)
    kept.prove(load_site(folder).logins.kept.all()[1], None)
    assert check_passwords(load_site(folder)).health is Health.OK


def test_a_credential_of_systemd(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`LoadCredential=` names a folder in the environment (systemd.exec(5))."""
    (folder / "site.yml").write_text((folder / "site.yml").read_text() + "site_keys: [{credential: site-key}]\n")
    with pytest.raises(UsageError, match="systemd has passed no credentials"):
        write(folder)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    (tmp_path / "site-key").write_bytes(Fernet.generate_key() + b"\n")
    assert PASSWORD not in write(folder)
    assert passwords(folder) == [PASSWORD]


def test_a_folder_that_may_not_be_searched_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root nothing is forbidden: the system's answer is played."""
    secret = tmp_path / "secrets" / "key"

    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.open", denied)
    monkeypatch.setattr(Path, "lstat", denied)
    with pytest.raises(UsageError, match="may not be read"):
        private_text(secret, "site.yml:3 bmc.password")
