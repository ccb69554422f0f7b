"""Users and API tokens of the web page: one file, mode 0600, in the site's state folder.

Passwords are kept as argon2id digests (RFC 9106), tokens as SHA-256 digests. Each change is made under a lock and
written whole or not at all.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError
from pydantic import TypeAdapter, ValidationError

from clusterctl.edges.disk import disk_explained, lock, write_over
from clusterctl.edges.redaction import KNOWN
from clusterctl.edges.site.secrets import private_text
from clusterctl.fleet.access import ApiToken, UserRole, WebUser, new_password, user_name
from clusterctl.fleet.errors import EnvironmentBrokenError, UsageError

N = TypeVar("N", WebUser, ApiToken)
FILE = "accounts.json"
TOKEN_PREFIX = "cctl_"  # noqa: S105 — the prefix by which scanners of repositories find a published token
MOST = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Content:
    version: int = 1
    users: tuple[WebUser, ...] = ()
    tokens: tuple[ApiToken, ...] = ()


_ADAPTER = TypeAdapter(_Content)


@dataclass
class AccountFile:
    """Meets `WebAccounts`; `folder` is the site's `state/web`, made with mode 0700 at the first change. Thread-safe."""

    folder: Path
    hasher: PasswordHasher = field(default_factory=PasswordHasher)
    _content: _Content = field(default_factory=_Content)
    _stamp: tuple[int, int, int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _decoy: str = field(default="", repr=False)

    @property
    def file(self) -> Path:
        return self.folder / FILE

    def users(self) -> tuple[WebUser, ...]:
        return self._read().users

    def tokens(self) -> tuple[ApiToken, ...]:
        return self._read().tokens

    def user(self, name: str) -> WebUser | None:
        return next((user for user in self.users() if user.name == name), None)

    def check(self, name: str, password: str) -> WebUser | None:
        """Return the user whose password this is, else None; one digest is computed in each case."""
        user = self.user(name)
        right = self._verify(user.digest if user else self._unknown(), password)
        return user if right else None

    def _verify(self, digest: str, password: str) -> bool:
        try:
            return self.hasher.verify(digest, password)
        except (VerificationError, InvalidHashError):
            return False

    def _unknown(self) -> str:
        """Return the digest of a random password, with the parameters of all others."""
        if not self._decoy:
            self._decoy = self.hasher.hash(secrets.token_urlsafe(32))
        return self._decoy

    def token(self, secret: str) -> ApiToken | None:
        if not secret.startswith(TOKEN_PREFIX):
            return None
        digest = _digest(secret)
        return next((one for one in self.tokens() if secrets.compare_digest(one.digest, digest)), None)

    def add_user(self, name: str, role: UserRole, password: str, now: datetime) -> None:
        """Add a user. Raises `UsageError` where the name is taken."""
        user = WebUser(name=user_name(name), role=role, digest=self._hash(password), changed_at=now)

        def change(content: _Content) -> _Content:
            if any(one.name == name for one in content.users):
                remedy = f"change the password: clusterctl web user passwd {name}; or remove the user first"
                raise UsageError("there is such a user already", where=name, remedy=remedy)
            return _Content(users=_bounded((*content.users, user)), tokens=content.tokens)

        self._change(change)

    def set_password(self, name: str, password: str, now: datetime) -> None:
        digest = self._hash(password)

        def change(content: _Content) -> _Content:
            old = _one(content.users, name)
            new = WebUser(name=name, role=old.role, digest=digest, changed_at=now)
            return _Content(users=(*_without(content.users, name), new), tokens=content.tokens)

        self._change(change)

    def remove_user(self, name: str) -> None:
        def change(content: _Content) -> _Content:
            _one(content.users, name)
            return _Content(users=_without(content.users, name), tokens=content.tokens)

        self._change(change)

    def add_token(self, name: str, role: UserRole, made_by: str, now: datetime, expires_at: datetime) -> str:
        """Return the text of the new token: it is not kept, and cannot be read again."""
        return self.add(ApiToken(name=name, role=role, digest="", made_at=now, made_by=made_by, expires_at=expires_at))

    def add(self, wanted: ApiToken) -> str:
        """Add a token, whose digest is made here; return its text: it is not kept, and cannot be read again."""
        secret = TOKEN_PREFIX + secrets.token_urlsafe(32)
        KNOWN.add([secret])
        token = replace(wanted, name=user_name(wanted.name), digest=_digest(secret))

        def change(content: _Content) -> _Content:
            if any(one.name == token.name for one in content.tokens):
                remedy = f"remove it first: clusterctl web token remove {token.name}"
                raise UsageError("there is such a token already", where=token.name, remedy=remedy)
            return _Content(users=content.users, tokens=_bounded((*content.tokens, token)))

        self._change(change)
        return secret

    def remove_token(self, name: str) -> None:
        def change(content: _Content) -> _Content:
            _one(content.tokens, name)
            return _Content(users=content.users, tokens=_without(content.tokens, name))

        self._change(change)

    def _hash(self, password: str) -> str:
        KNOWN.add([password])
        return self.hasher.hash(new_password(password))

    def _read(self) -> _Content:
        """Return the content; the file is read again where it has changed."""
        with self._lock, disk_explained("cannot be read", self.file):
            try:
                found = self.file.stat()
            except FileNotFoundError:
                self._stamp, self._content = None, _Content()
                return self._content
            stamp = (found.st_ino, found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._content, self._stamp = self._parse(), stamp
            return self._content

    def _parse(self) -> _Content:
        text = private_text(self.file, "state/web")
        try:
            content = _ADAPTER.validate_json(text)
        except ValidationError:
            remedy = "restore it from a copy, or remove it and add the users again: clusterctl web user add"
            raise EnvironmentBrokenError("is no list of users", where=str(self.file), remedy=remedy) from None
        if content.version != 1:
            remedy = "use the clusterctl that wrote it, or a newer one"
            raise EnvironmentBrokenError("was written by a newer clusterctl", where=str(self.file), remedy=remedy)
        return content

    def _change(self, change: Callable[[_Content], _Content]) -> None:
        with self._locked():
            write_over(self.file, _ADAPTER.dump_json(change(self._read()), indent=1) + b"\n")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one process at a time change the file."""
        with disk_explained("cannot be made", self.folder):
            for folder in (self.folder.parent, self.folder):
                folder.mkdir(mode=0o700, exist_ok=True)
            descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with disk_explained("cannot be locked", self.folder / ".lock"):
                lock(descriptor)
            yield
        finally:
            os.close(descriptor)


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _one(items: tuple[N, ...], name: str) -> N:
    found = next((item for item in items if item.name == name), None)
    if found is None:
        raise UsageError("there is no such name", where=name, remedy="clusterctl web user list, web token list")
    return found


def _without(items: tuple[N, ...], name: str) -> tuple[N, ...]:
    return tuple(item for item in items if item.name != name)


def _bounded(items: tuple[N, ...]) -> tuple[N, ...]:
    if len(items) > MOST:
        raise UsageError(f"there are {MOST} already", where=items[-1].name, remedy="remove those that are not used")
    return items
