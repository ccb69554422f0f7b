"""`web` of a site: where the web page is served, its certificate, and the identity provider that signs users in."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from clusterctl.site.fields import Secret, Words, section
from clusterctl.site.urls import issuer_url

Groups = tuple[Words, ...]


@section
class OidcRoles:
    """Values of the claim that give a role. A user with several has the highest."""

    admin: Groups = ()
    operator: Groups = ()
    viewer: Groups = ()


@section
class OidcSettings:
    """The OpenID Connect provider. Register `https://NAME:PORT/sign-in/callback` there as the redirect URI."""

    issuer: Annotated[str, AfterValidator(issuer_url)]
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
