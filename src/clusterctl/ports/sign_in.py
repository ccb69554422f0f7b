"""How the web page proves who is there: accounts of the site, and an identity provider."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from clusterctl.fleet.access import ApiToken, Identity, WebUser
from clusterctl.fleet.secret import NeverPickled


class WebAccounts(Protocol):
    """The users and API tokens of a site. Each call sees what a command has changed meanwhile."""

    def users(self) -> tuple[WebUser, ...]: ...
    def tokens(self) -> tuple[ApiToken, ...]: ...
    def user(self, name: str) -> WebUser | None: ...
    def check(self, name: str, password: str) -> WebUser | None:
        """Return the user whose password this is, else None. An unknown user takes as long as a wrong password."""
        ...

    def token(self, secret: str) -> ApiToken | None:
        """Return the token whose text this is, whether it has expired or not."""
        ...


@dataclass(frozen=True, slots=True)
class SignInRequest(NeverPickled):
    """A sign-in at an identity provider that has begun. `url`: where the browser goes; the rest stays here."""

    url: str
    state: str = field(repr=False)
    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect: str


class IdentityProvider(Protocol):
    """An OpenID Connect provider."""

    @property
    def label(self) -> str: ...
    def begin(self, redirect: str) -> SignInRequest:
        """Return where to send the browser. Raises `EdgeError`."""
        ...

    def finish(self, request: SignInRequest, answer: Mapping[str, str]) -> Identity:
        """Return who has signed in, by the provider's answer to `request.redirect`.

        Raises `AuthenticationError` for an answer that proves nothing, `PrivilegeError` for a user without a role.
        """
        ...
