"""OAuth 1.0 PLAINTEXT, as MAAS checks it. A bad secret's answer prints the right one: that is MAAS's own behaviour."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from urllib.parse import unquote

from clusterctl_lab.emulators.maas.refusal import UnauthorisedError

THRESHOLD_SECONDS = 300
_PARAMETER = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True, slots=True)
class User:
    """A MAAS user and its one API key, `consumer:token:secret`."""

    name: str
    api_key: str = field(repr=False)
    admin: bool = False


class Keys:
    """Stores the users by their keys, and the used nonces."""

    def __init__(self, users: Iterable[User], clock: Callable[[], float] = time.time) -> None:
        self._users = {user.api_key.split(":")[1]: user for user in users}
        self._clock = clock
        self._nonces: dict[tuple[str, str], int] = {}

    def user(self, authorization: str) -> User | None:
        """Return the user of a request; None without an OAuth header. Raises `UnauthorisedError`."""
        scheme, _, rest = authorization.partition(" ")
        given = {name: unquote(value) for name, value in _PARAMETER.findall(rest)}
        if scheme.lower() != "oauth" or "oauth_consumer_key" not in given:
            return None
        user = self._users.get(given.get("oauth_token", ""))
        if given["oauth_consumer_key"] not in {known.api_key.split(":")[0] for known in self._users.values()}:
            raise UnauthorisedError("Invalid API key.")
        if user is None:
            raise UnauthorisedError(f"'Invalid access token: {given.get('oauth_token', '')}'")
        self._check_time(given)
        secret = user.api_key.split(":")[2]
        if given.get("oauth_signature") != f"&{secret}":
            raise UnauthorisedError(f"'Invalid signature. Expected signature base string: &{secret}'")
        return user

    def _check_time(self, given: dict[str, str]) -> None:
        now = int(self._clock())
        stamp = given.get("oauth_timestamp", "")
        stamp_seconds = int(stamp) if stamp.isdigit() else 0
        if abs(now - stamp_seconds) > THRESHOLD_SECONDS:
            raise UnauthorisedError(
                f"'Expired timestamp: given {stamp} and now {now} has a greater difference than threshold "
                f"{THRESHOLD_SECONDS}'"
            )
        nonce = (given.get("oauth_token", ""), given.get("oauth_nonce", ""))
        if nonce in self._nonces:
            raise UnauthorisedError(f"'Nonce already used: {nonce[1]}'")
        self._forget_before(now - THRESHOLD_SECONDS)
        self._nonces[nonce] = now

    def _forget_before(self, oldest: int) -> None:
        """Forget old nonces. They are in the order of their use, so that the oldest come first."""
        while self._nonces and next(iter(self._nonces.values())) < oldest:
            del self._nonces[next(iter(self._nonces))]
