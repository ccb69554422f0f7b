"""cloud-init's user-data, as far as the lab's installed hosts honour it: pure text to values.

Honoured: hostname, fqdn, users (name, ssh_authorized_keys, sudo, shell), ssh_authorized_keys, ssh_keys (ed25519),
write_files (path, content, permissions, owner, encoding b64). Other keys are named in `ignored`, never guessed at.
Source: the module reference of cloud-init's documentation.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from clusterctl.fleet.errors import UsageError

HEADER = b"#cloud-config"
DEFAULT_USER = "root"
_HONOURED = {"hostname", "fqdn", "users", "ssh_authorized_keys", "ssh_keys", "write_files"}
_ALREADY_SO = {"ssh_pwauth", "ssh_deletekeys", "disable_root", "manage_etc_hosts", "preserve_hostname"}


@dataclass(frozen=True, slots=True)
class User:
    """`sudo`: may become root without a password."""

    name: str
    keys: tuple[str, ...]
    sudo: bool
    shell: str = "/bin/bash"


@dataclass(frozen=True, slots=True)
class PlacedFile:
    """An absolute path, its content, mode, and owner as `user:group`."""

    path: str
    content: bytes
    mode: int
    owner: str = "root:root"


@dataclass(frozen=True, slots=True)
class CloudConfig:
    """What a host reads at its first boot. `host_key_private` is a secret."""

    hostname: str = ""
    users: tuple[User, ...] = ()
    host_key_private: str = field(default="", repr=False)
    host_key_public: str = ""
    files: tuple[PlacedFile, ...] = ()
    ignored: tuple[str, ...] = ()


def parse(user_data: bytes) -> CloudConfig:
    """Raises `UsageError` naming the key that is not as cloud-init's reference has it."""
    if not user_data.strip():
        return CloudConfig()
    document = _document(user_data)
    keys = _mapping(document, "ssh_keys")
    return CloudConfig(
        hostname=_text(document, "hostname") or _text(document, "fqdn").split(".")[0],
        users=_users(document),
        host_key_private=_text(keys, "ed25519_private"),
        host_key_public=_text(keys, "ed25519_public"),
        files=tuple(_file(entry) for entry in _list(document, "write_files")),
        ignored=tuple(sorted(str(key) for key in document if key not in _HONOURED | _ALREADY_SO)),
    )


def _document(user_data: bytes) -> dict[Any, Any]:
    if user_data.split(b"\n", 1)[0].strip() != HEADER:
        raise _wrong("first line", "only #cloud-config is understood")
    try:
        document = yaml.safe_load(user_data) or {}
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise _wrong(f"line {mark.line + 1}" if mark else "document", "not YAML") from None
    if not isinstance(document, dict):
        raise _wrong("document", "not a mapping")
    return document


def _users(document: Mapping[str, Any]) -> tuple[User, ...]:
    shared = _texts(document, "ssh_authorized_keys")
    users = []
    for entry in _list(document, "users"):
        if entry == "default":
            users.append(User(DEFAULT_USER, shared, sudo=False))
        elif isinstance(entry, dict) and _text(entry, "name"):
            users.append(_user(entry))
        else:
            raise _wrong("users", "each needs a name")
    if shared and not users:
        users.append(User(DEFAULT_USER, shared, sudo=False))
    return tuple(users)


def _user(entry: Mapping[str, Any]) -> User:
    sudo = entry.get("sudo")
    return User(
        name=_text(entry, "name"),
        keys=_texts(entry, "ssh_authorized_keys"),
        sudo=bool(sudo) and "NOPASSWD" in str(sudo),
        shell=_text(entry, "shell") or "/bin/bash",
    )


def _file(entry: object) -> PlacedFile:
    if not isinstance(entry, dict) or not _text(entry, "path").startswith("/"):
        raise _wrong("write_files", "each needs an absolute path")
    permissions = str(entry.get("permissions", "0644"))
    try:
        mode = int(permissions, 8)
    except ValueError:
        raise _wrong("write_files permissions", f"`{permissions}` is not octal") from None
    content = _text(entry, "content").encode()
    match _text(entry, "encoding"):
        case "" | "text/plain":
            pass
        case "b64" | "base64":
            content = _decode(content)
        case other:
            raise _wrong("write_files encoding", f"`{other}` is not understood")
    return PlacedFile(entry["path"], content, mode, _text(entry, "owner") or "root:root")


def _decode(content: bytes) -> bytes:
    try:
        return base64.b64decode(content, validate=False)
    except binascii.Error:
        raise _wrong("write_files content", "not base64") from None


def _text(document: Mapping[str, Any], key: str) -> str:
    value = document.get(key, "")
    if not isinstance(value, str):
        raise _wrong(key, "not a text")
    return value


def _texts(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = _list(document, key)
    if not all(isinstance(value, str) for value in values):
        raise _wrong(key, "not a list of texts")
    return tuple(values)


def _list(document: Mapping[str, Any], key: str) -> list[Any]:
    value = document.get(key, [])
    if not isinstance(value, list):
        raise _wrong(key, "not a list")
    return value


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(key, "not a mapping")
    return value


def _wrong(key: str, what: str) -> UsageError:
    """Never quotes a value: user-data holds private keys."""
    return UsageError(
        f"the user-data's {key} is wrong: {what}", where="user-data", remedy="Write it as cloud-init's reference does."
    )
