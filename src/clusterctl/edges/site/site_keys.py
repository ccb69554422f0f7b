"""Encryption by the site's keys: of secrets that clusterctl keeps in the state directory, and of backups."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clusterctl.fleet.errors import UsageError
from clusterctl.fleet.secret import NeverPickled

if TYPE_CHECKING:
    from cryptography.fernet import MultiFernet

_VERSION_MARK = "gAAAA"  # a Fernet token begins with its version, 0x80 (https://github.com/fernet/spec)
_MAKE = "make one: python3 -c 'import base64, os; print(base64.urlsafe_b64encode(os.urandom(32)).decode())'"


class SiteKeys(NeverPickled):
    """The keys of a site, read when they are first needed. Without keys, text stays as it is.

    `named`: how many the site names. `read` returns them: the first encrypts, each decrypts, so that a new key comes
    first and the former one stays until no file needs it. `where` names the setting in errors.
    """

    def __init__(self, named: int = 0, read: Callable[[], Sequence[str]] = tuple, where: str = "site_keys") -> None:
        self._named = named
        self._read = read
        self._where = where
        self._fernet: MultiFernet | None = None

    def __bool__(self) -> bool:
        return bool(self._named)

    def encrypt(self, text: str) -> str:
        """Return a Fernet token; the text itself where the site has no keys."""
        fernet = self._opened()
        return fernet.encrypt(text.encode()).decode() if fernet else text

    def decrypt(self, text: str, where: str) -> str:
        """Return the text that `encrypt` was given; text that is no token is returned as it is.

        Raises `UsageError` where the site has no key for it; `where` is the file that it stands in.
        """
        if not is_encrypted(text):
            return text
        try:
            return self.decrypt_bytes(text.encode(), where).decode()
        except UnicodeError:
            raise self._undecryptable(where) from None

    def encrypt_bytes(self, content: bytes) -> bytes:
        """Return a Fernet token. Raise `UsageError` where the site has no keys."""
        return self._required("the site names no key").encrypt(content)

    def decrypt_bytes(self, token: bytes, where: str) -> bytes:
        """Return the content of a Fernet token. Raise `UsageError` where the site has no key for it."""
        fernet = self._required("is encrypted, and the site names no key", where)
        from cryptography.fernet import InvalidToken  # noqa: PLC0415 — loads OpenSSL, which few commands need

        try:
            return fernet.decrypt(token)
        except (InvalidToken, ValueError):
            raise self._undecryptable(where) from None

    def _required(self, message: str, where: str = "") -> MultiFernet:
        fernet = self._opened()
        if fernet is None:
            remedy = f"name the key that it was encrypted with in {self._where}"
            raise UsageError(message, where=where or self._where, remedy=remedy)
        return fernet

    def _undecryptable(self, where: str) -> UsageError:
        remedy = f"add the key that it was encrypted with to {self._where}, or restore the file from a copy"
        return UsageError("cannot be decrypted by any key of the site", where=where, remedy=remedy)

    def _opened(self) -> MultiFernet | None:
        if self._fernet is None and self._named:
            from cryptography.fernet import Fernet, MultiFernet  # noqa: PLC0415 — loads OpenSSL, which few commands need

            try:
                self._fernet = MultiFernet([Fernet(key) for key in self._read()])
            except ValueError:
                raise UsageError("a key is no Fernet key", where=self._where, remedy=_MAKE) from None
        return self._fernet


def is_encrypted(text: str) -> bool:
    """Return whether the text is a Fernet token."""
    return text.startswith(_VERSION_MARK)
