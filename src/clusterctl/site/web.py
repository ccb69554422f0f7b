"""`web` of a site: where the web page is served, its certificate, and the identity provider that signs users in."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from clusterctl.site.fields import Secret, Words, section

LOOPBACK = ("localhost", "127.0.0.1", "::1")
Groups = tuple[Words, ...]


def _issuer(value: str) -> str:
    try:
        parts = urlsplit(value)
        host = parts.hostname or ""
    except ValueError:
        raise ValueError("must be the URL of an issuer: https://id.example.com/realms/site") from None
    if parts.scheme == "http" and host not in LOOPBACK:
        raise ValueError("must begin with https:// (http:// on a loopback address only)")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment or parts.username:
        raise ValueError("must be the URL of an issuer: https://id.example.com/realms/site")
    return value


@section
class OidcRoles:
    """Values of the claim that give a role. A user with several has the highest."""

    admin: Groups = ()
    operator: Groups = ()
    viewer: Groups = ()


@section
class OidcSettings:
    """The OpenID Connect provider. Register `https://NAME:PORT/sign-in/callback` there as the redirect URI."""

    issuer: Annotated[str, AfterValidator(_issuer)]
    client_id: Words
    client_secret: Annotated[Secret | None, Field(description="none for a public client (PKCE is always used)")] = None
    label: Annotated[Words, Field(description="name of the provider on the sign-in page")] = "single sign-on"
    scopes: Annotated[tuple[Words, ...], Field(min_length=1)] = ("openid", "profile", "email")
    name_claim: Annotated[Words, Field(description="the claim that names the user in the journal")] = (
        "preferred_username"
    )
    role_claim: Annotated[Words, Field(description="the claim with the groups or roles of the user")] = "groups"
    roles: OidcRoles
    ca_file: Annotated[str, Field(description="authority of the provider's certificate; empty: the system's own")] = ""


@section
class WebSettings:
    """The web page. Other than on a loopback address it needs a certificate, and users or a provider."""

    listen: Annotated[Words, Field(description="ADDRESS:PORT")] = "127.0.0.1:8080"
    certificate: Annotated[str, Field(description="PEM file: the certificate, then its chain")] = ""
    private_key: Annotated[str, Field(description="PEM file, mode 0600, of the certificate's key")] = ""
    session_hours: Annotated[int, Field(ge=1, le=168, strict=True, description="until a user has to sign in again")] = (
        12
    )
    idle_minutes: Annotated[
        int, Field(ge=5, le=1440, strict=True, description="without a request, after which a session ends")
    ] = 60
    oidc: OidcSettings | None = None
