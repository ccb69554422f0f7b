"""Which BMCs have rejected our credentials in this run: they are not asked again, for BMCs lock accounts."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading

from clusterctl.fleet.errors import AuthenticationError
from clusterctl.ports import BmcAddress


class Rejections:
    """By BMC, user and password; of the password only a keyed digest is kept. Thread-safe."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._seen: dict[tuple[str, int, str, bytes], str] = {}
        self._lock = threading.Lock()

    def check(self, address: BmcAddress) -> None:
        """Raise `AuthenticationError` where these credentials were rejected before."""
        with self._lock:
            words = self._seen.get(self._id(address))
        if words:
            raise AuthenticationError(
                f"{words}; it was not asked again in this run", remedy="correct the credentials, then run again"
            )

    def add(self, address: BmcAddress, words: str) -> None:
        """These credentials are wrong, in the BMC's words."""
        with self._lock:
            self._seen[self._id(address)] = words

    def knows(self, address: BmcAddress) -> bool:
        """Whether these credentials were rejected."""
        with self._lock:
            return self._id(address) in self._seen

    def forget(self, address: BmcAddress) -> None:
        """These credentials may be right from now on: the BMC was asked to take them."""
        with self._lock:
            self._seen.pop(self._id(address), None)

    def _id(self, address: BmcAddress) -> tuple[str, int, str, bytes]:
        digest = hmac.digest(self._key, address.password.encode(), hashlib.sha256)
        return address.host, address.port, address.user, digest
