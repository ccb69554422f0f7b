"""Secrets from sops, pass and Vault: by stand-ins with their documented command line, and by the real pass where it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from clusterctl.edges.site import secret_programs
from clusterctl.edges.site.secrets import resolve
from clusterctl.fleet.errors import UsageError
from clusterctl.site.fields import SecretRef

WHERE = "site.yml:7 bmc.password"
SOPS = """\
#!/bin/sh
echo "$@" >> "{log}"
[ "$SOPS_AGE_KEY_FILE" = "{key}" ] || exit 3
[ -z "$OTHER_SECRET" ] || exit 4
case "$*" in
  *'--extract ["bmc"]["password"]'*) echo of-the-bmc ;;
  *broken*) echo "plain text of the file" >&2; exit 1 ;;
  *) echo whole-secret ;;
esac
"""


VAULT = """\
#!/bin/sh
[ "$VAULT_ADDR" = "https://vault.example:8200" ] || exit 3
[ -z "$VAULT_SKIP_VERIFY" ] || exit 4
case "$*" in
  "kv get -field=password secret/cluster/bmc") printf of-the-bmc ;;
  "kv get -field=token secret/netbox") printf of-netbox ;;
  *) echo "No value found at $4" >&2; exit 2 ;;
esac
"""


@pytest.fixture
def sops(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A program `sops` in PATH that notes its arguments; returns the file of its notes."""
    programs, log = tmp_path / "bin", tmp_path / "log"
    programs.mkdir()
    (programs / "sops").write_text(SOPS.format(log=log, key=tmp_path / "key"))
    (programs / "sops").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("SOPS_AGE_KEY_FILE", str(tmp_path / "key"))
    monkeypatch.setenv("OTHER_SECRET", "of-the-environment")
    for name in ("secrets.yml", "broken.yml"):
        (tmp_path / name).write_text("encrypted")
    secret_programs._asked.cache_clear()
    yield log
    secret_programs._asked.cache_clear()


def test_a_value_of_a_sops_file(sops: Path, tmp_path: Path) -> None:
    """The value at a key, and a whole file; sops gets its own variables and no other secret of the environment."""
    assert resolve(SecretRef(sops="secrets.yml", sops_key="bmc.password"), tmp_path, WHERE) == "of-the-bmc"
    assert resolve(SecretRef(sops="secrets.yml"), tmp_path, WHERE) == "whole-secret"


def test_sops_is_asked_once_for_a_secret(sops: Path, tmp_path: Path) -> None:
    """A password of two thousand BMCs is decrypted once, and stands in no argument."""
    for _ in range(3):
        resolve(SecretRef(sops="secrets.yml"), tmp_path, WHERE)
    assert len(sops.read_text().splitlines()) == 1
    assert "whole-secret" not in sops.read_text()


def test_a_failure_repeats_no_output(sops: Path, tmp_path: Path) -> None:
    """The error names the field and the exit status, and not what the program printed."""
    with pytest.raises(UsageError) as caught:
        resolve(SecretRef(sops="broken.yml"), tmp_path, WHERE)
    assert (caught.value.where, caught.value.message) == (WHERE, "sops gave no secret: exit status 1")
    assert "plain text" not in str(caught.value)


def test_a_file_that_is_not_there(sops: Path, tmp_path: Path) -> None:
    """A missing file is named before any program runs."""
    with pytest.raises(UsageError, match="does not exist"):
        resolve(SecretRef(sops="none.yml"), tmp_path, WHERE)
    assert not sops.exists()


def test_a_program_that_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing program is named, with the remedy to install it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "file").write_text("")
    secret_programs._asked.cache_clear()
    for ref in (SecretRef(sops="file"), SecretRef(pass_entry="cluster/bmc")):
        with pytest.raises(UsageError) as caught:
            resolve(ref, tmp_path, WHERE)
        assert "install" in caught.value.remedy


@pytest.mark.parametrize(
    "value",
    [
        {"env": "A", "sops": "b"},
        {"sops_key": "a", "file": "b"},
        {"pass": "-rf"},
        {"pass": "../../etc"},
        {"sops": "a", "sops_key": 'a"]'},
        {"kv": "-mount=secret"},
        {"kv": "secret/../sys"},
        {"kv": "secret/bmc", "kv_field": "a b"},
        {"kv": "secret/bmc", "env": "A"},
    ],
)
def test_references_that_are_refused(value: dict[str, str]) -> None:
    """Two places, a key without a file, and names that a program would take for an option or a path upwards."""
    with pytest.raises(ValidationError):
        TypeAdapter(SecretRef).validate_python(value)


def test_a_field_of_an_entry_in_vault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its program, which logs in as the site has it and always verifies the server; an unknown entry is an error."""
    (tmp_path / "vault").write_text(VAULT)
    (tmp_path / "vault").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("VAULT_ADDR", "https://vault.example:8200")
    monkeypatch.setenv("VAULT_SKIP_VERIFY", "1")
    secret_programs._asked.cache_clear()
    assert resolve(SecretRef(kv="secret/cluster/bmc"), tmp_path, WHERE) == "of-the-bmc"
    assert resolve(SecretRef(kv="secret/netbox", kv_field="token"), tmp_path, WHERE) == "of-netbox"
    with pytest.raises(UsageError, match="vault gave no secret: exit status 2"):
        resolve(SecretRef(kv="secret/none"), tmp_path, WHERE)
    secret_programs._asked.cache_clear()


def test_a_reference_of_the_site_file() -> None:
    """The field is called `pass` in the site file."""
    assert TypeAdapter(SecretRef).validate_python({"pass": "cluster/bmc"}).pass_entry == "cluster/bmc"


@pytest.mark.skipif(not (shutil.which("pass") and shutil.which("gpg")), reason="needs pass and gpg")
def test_the_real_pass(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first line of an entry is the password; an unknown entry is an error."""
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="gpg") as home:  # a socket's path has 108 bytes at most
        monkeypatch.setenv("GNUPGHOME", home)
        monkeypatch.setenv("PASSWORD_STORE_DIR", str(tmp_path / "store"))
        key = ["gpg", "--batch", "--passphrase", "", "--quick-generate-key", "ops@hall-1.example", "future-default"]
        try:
            for argv in (key, ["pass", "init", "ops@hall-1.example"]):
                subprocess.run(argv, check=True, capture_output=True)
            text = b"of-the-store\nuser: root\n"
            subprocess.run(["pass", "insert", "-m", "cluster/bmc"], check=True, capture_output=True, input=text)
            secret_programs._asked.cache_clear()
            assert resolve(SecretRef(pass_entry="cluster/bmc"), tmp_path, WHERE) == "of-the-store"
            with pytest.raises(UsageError, match="exit status 1"):
                resolve(SecretRef(pass_entry="cluster/none"), tmp_path, WHERE)
        finally:
            secret_programs._asked.cache_clear()
            subprocess.run(["gpgconf", "--kill", "all"], check=False, capture_output=True)
