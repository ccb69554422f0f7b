"""Secrets, from the places that the site file names. Read at the edge, never stored."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.secret_programs import from_kv, from_pass, from_sops
from clusterctl.edges.site.textfile import decoded, read_bytes
from clusterctl.fleet.errors import UsageError
from clusterctl.site.fields import SecretRef

_SECRET_LINE = 40
"""Characters: a shorter line of a text of many lines is no secret by itself, such as the marks of a PEM file."""


def resolve(ref: SecretRef, folder: Path, field: str) -> str:
    """Return the secret behind a reference; `field` names it in errors (`site.yml bmc.password`). Never logged."""
    secret = _read(ref, folder, field)
    if "\n" in secret:
        kept = ref.file or ref.vault or ref.credential or ref.sops or ref.kv or f"the environment variable {ref.env}"
        raise UsageError(f"{kept} holds more than one line", where=field, remedy="keep the secret alone in it")
    KNOWN.add([secret])
    return secret


def resolve_text(ref: SecretRef, folder: Path, field: str) -> str:
    """Return a secret of many lines, such as a private key as PEM. Never logged."""
    text = _read(ref, folder, field)
    KNOWN.add([text, *(line for line in text.splitlines() if len(line) >= _SECRET_LINE)])
    return text


def _read(ref: SecretRef, folder: Path, field: str) -> str:
    if ref.env is not None:
        return _from_env(ref.env, field)
    if ref.credential is not None:
        return _from_credential(ref.credential, field)
    if ref.vault is not None:
        return _from_vault(folder / ref.vault, folder / (ref.vault_password_file or ""), field)
    if ref.file is not None:
        return private_text(folder / ref.file, field)
    return _from_program(ref, folder, field)


def _from_program(ref: SecretRef, folder: Path, field: str) -> str:
    if ref.pass_entry is not None:
        return from_pass(ref.pass_entry, field)
    if ref.kv is not None:
        return from_kv(ref.kv, ref.kv_field, field)
    return from_sops(folder / (ref.sops or ""), ref.sops_key, field)


def private_text(file: Path, field: str, source: str = "") -> str:
    """Return the content of a file that only its owner may read. Owner and mode are those of the file that is read.

    `source`: where an operator gets the secret, for the remedy.
    """

    def check(found: os.stat_result) -> None:
        mode = stat.S_IMODE(found.st_mode)
        if found.st_uid not in _trusted_owners():
            message = f"{file} belongs to user {found.st_uid}, which may read and change it"
            raise UsageError(message, where=field, remedy=f"chown it to yourself: chown $(id -u) {file}")
        if mode & 0o077:
            raise UsageError(f"{file} has mode {mode:04o}: others may read it", where=field, remedy=f"chmod 600 {file}")

    if _is_absent(file):
        remedy = f"write the secret into it{source}, and make it readable for its owner alone: chmod 600 {file}"
        raise UsageError(f"{file} does not exist", where=field, remedy=remedy)
    text = decoded(read_bytes(_behind_links(file, field), field, check=check, follow=False), file).strip()
    if not text:
        raise UsageError(f"{file} is empty", where=field, remedy="write the secret into it")
    return text


def _is_absent(file: Path) -> bool:
    """Return whether there is no such file. A folder that may not be searched hides nothing: the read fails with it."""
    try:
        file.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False


MAX_LINKS = 8


def _behind_links(file: Path, field: str) -> Path:
    """Return the file that links lead to. Only links of trusted owners are followed: by a link of its own, another
    account could have any file of root sent to a BMC.
    """
    place = file
    for _ in range(MAX_LINKS):
        try:
            descriptor = os.open(place, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        except FileNotFoundError:
            raise UsageError(
                f"{file} is a link to {place}, which does not exist", where=field, remedy="point the link at the file"
            ) from None
        except (OSError, ValueError):
            return place  # it cannot be opened: the read fails with the reason
        try:
            found = os.fstat(descriptor)
            if not stat.S_ISLNK(found.st_mode):
                return place
            if found.st_uid not in _trusted_owners():
                message = f"{place} is a link that user {found.st_uid} has made"
                raise UsageError(message, where=field, remedy="put the file itself in its place")
            place = place.parent / os.readlink("", dir_fd=descriptor)
        finally:
            os.close(descriptor)
    return place


def _trusted_owners() -> frozenset[int]:
    """Return the trusted owners of files: ourselves, root, and the user behind sudo."""
    behind = os.environ.get("SUDO_UID", "")
    return frozenset({os.geteuid(), 0, *([int(behind)] if behind.isdecimal() else [])})


def _from_env(name: str, field: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"the environment variable {name} is not set", where=field, remedy=f"export {name}=…")
    return value


def _from_credential(name: str, field: str) -> str:
    """Return a credential that systemd passes to the service (systemd.exec(5), LoadCredential=)."""
    folder = os.environ.get("CREDENTIALS_DIRECTORY", "")
    if not folder:
        remedy = f"run as a service with LoadCredential={name}:FILE or LoadCredentialEncrypted={name}:FILE"
        raise UsageError("systemd has passed no credentials to this process", where=field, remedy=remedy)
    return decoded(read_bytes(Path(folder) / name, field), Path(name)).strip()


def _from_vault(file: Path, password_file: Path, field: str) -> str:
    from ansible.constants import DEFAULT_VAULT_ID_MATCH  # noqa: PLC0415 — half a second that few need
    from ansible.errors import AnsibleError  # noqa: PLC0415 — likewise
    from ansible.parsing.vault import VaultLib, VaultSecret  # noqa: PLC0415 — likewise

    key = VaultSecret(private_text(password_file, field).encode())
    text = private_text(file, field)
    try:
        return str(VaultLib([(DEFAULT_VAULT_ID_MATCH, key)]).decrypt(text.encode()).decode()).strip()
    except AnsibleError:
        raise UsageError(
            f"{file} cannot be decrypted", where=field, remedy="check vault_password_file, or encrypt it again"
        ) from None
