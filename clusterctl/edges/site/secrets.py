"""Secrets, from where the site file says they are kept. Read at the edge, never stored."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from clusterctl.edges.site.model import SecretRef
from clusterctl.fleet.errors import UsageError


def resolve(ref: SecretRef, folder: Path, field: str) -> str:
    """The secret behind a reference; `field` names it in errors (`site.yml bmc.password`)."""
    if ref.env is not None:
        return _from_env(ref.env, field)
    if ref.vault is not None:
        return _from_vault(folder / ref.vault, folder / (ref.vault_password_file or ""), field)
    return private_text(folder / (ref.file or ""), field)


def private_text(file: Path, field: str) -> str:
    """The content of a file that only its owner may read."""
    try:
        mode = stat.S_IMODE(file.stat().st_mode)
        text = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise UsageError(f"cannot read {file}: {reason}", where=field, remedy="create it with mode 0600") from None
    if mode & 0o077:
        raise UsageError(f"{file} has mode {mode:04o}: others may read it", where=field, remedy=f"chmod 600 {file}")
    if not text:
        raise UsageError(f"{file} is empty", where=field, remedy="write the secret into it")
    return text


def _from_env(name: str, field: str) -> str:
    value = os.environ.get(name, "")
    if not value:
        raise UsageError(f"the environment variable {name} is not set", where=field, remedy=f"export {name}=…")
    return value


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
            f"{file} cannot be decrypted", where=field, remedy="check vault_password_file, or encrypt it anew"
        ) from None
