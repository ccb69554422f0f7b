"""Sign-in at an OpenID Connect provider: authorization code flow with PKCE (OpenID Connect Core 1.0, RFC 7636, 9700).

The provider's answers are those of a peer: bounded, and believed only as far as their signature reaches.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests
from authlib.integrations.base_client.errors import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jwt import JWTClaimsRegistry

from clusterctl.edges.answers import AnswerAdapter, answer_context, answered_by, guard, keep_body, read_body
from clusterctl.edges.tls import Trust, causes, distrust
from clusterctl.fleet.access import PROVIDED, Identity, UserRole
from clusterctl.fleet.errors import AuthenticationError, EdgeError, ParseError, PrivilegeError, UnreachableError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.ports import Deadline
from clusterctl.ports.sign_in import SignInRequest
from clusterctl.site.web import OidcSettings

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512")
"""Signatures that are accepted: neither none nor those by a shared secret."""
LIMITS = JsonLimits(size=256 << 10, values=5000, depth=12, text=64 << 10)
SECONDS = 10.0
METADATA_S = 300.0
LEEWAY_S = 60
LONGEST_NAME = 64
ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


@dataclass
class OidcProvider:
    """Meets `IdentityProvider`. What the provider publishes about itself is read again after `METADATA_S`.

    seconds  that one request to it may take
    """

    settings: OidcSettings
    secret: str = field(repr=False)
    ca_file: str = ""
    seconds: float = SECONDS
    _metadata: Mapping[str, Any] = field(default_factory=dict)
    _keys: KeySet | None = None
    _read_at: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def label(self) -> str:
        return self.settings.label

    def begin(self, redirect: str) -> SignInRequest:
        with self._session(redirect) as session:
            metadata = self._about(session)
            verifier, nonce = secrets.token_urlsafe(48), secrets.token_urlsafe(24)
            url, state = session.create_authorization_url(
                metadata["authorization_endpoint"], code_verifier=verifier, nonce=nonce
            )
        return SignInRequest(url, state, nonce, verifier, redirect)

    def finish(self, request: SignInRequest, answer: Mapping[str, str]) -> Identity:
        self._require_answer(request, answer)
        with self._session(request.redirect) as session:
            metadata = self._about(session)
            token = session.fetch_token(
                metadata["token_endpoint"],
                grant_type="authorization_code",
                code=answer["code"],
                code_verifier=request.verifier,
                timeout=self.seconds,
                allow_redirects=False,
            )
            claims = self._claims(session, str(token.get("id_token", "")), request.nonce)
        return self._identity(claims)

    def _require_answer(self, request: SignInRequest, answer: Mapping[str, str]) -> None:
        if "error" in answer:
            raise self._refused(f"the provider refused: {visible_line(answer['error'], 80)}")
        if not secrets.compare_digest(answer.get("state", "").encode(), request.state.encode()):
            raise self._refused("the answer belongs to another sign-in")
        if answer.get("iss", self.settings.issuer) != self.settings.issuer:  # RFC 9207
            raise self._refused("the answer is of another provider")
        if not answer.get("code"):
            raise self._refused("the provider sent no code")

    @contextmanager
    def _session(self, redirect: str) -> Iterator[OAuth2Session]:
        """Yield a session of one sign-in; errors of the way to the provider become ours."""
        session = OAuth2Session(
            self.settings.client_id,
            self.secret or None,
            token_endpoint_auth_method="client_secret_basic" if self.secret else "none",
            scope=" ".join(self.settings.scopes),
            redirect_uri=redirect,
            code_challenge_method="S256",
        )
        guard(session, _BoundedAdapter(Trust(self.ca_file), self.seconds))  # without TLS on a loopback address alone
        try:
            yield session
        except OAuthError as error:
            raise self._refused(f"the provider refused: {visible_line(str(error.error), 80)}") from None
        except requests.exceptions.RequestException as error:
            where = self.settings.issuer
            untrusted = distrust(causes(error), where, "web.oidc.ca_file", "no pin is possible here")
            if untrusted is not None:
                raise untrusted from None
            remedy = "check that the provider runs, and that this controller reaches it"
            raise UnreachableError("does not answer", where=where, remedy=remedy) from None
        finally:
            session.close()

    def _about(self, session: OAuth2Session) -> Mapping[str, Any]:
        """Return the provider's metadata (OpenID Connect Discovery 1.0)."""
        with self._lock:
            if not self._metadata or time.monotonic() - self._read_at > METADATA_S:
                found = self._get(session, f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration")
                self._metadata, self._keys, self._read_at = self._checked(found), None, time.monotonic()
            return self._metadata

    def _checked(self, found: Any) -> Mapping[str, Any]:
        where = self.settings.issuer
        if not isinstance(found, dict) or found.get("issuer") != self.settings.issuer:
            remedy = "write web.oidc.issuer exactly as the provider does"
            raise ParseError("its metadata names another issuer", where=where, remedy=remedy)
        scheme = "https://" if where.startswith("https://") else ("https://", "http://")
        for name in ENDPOINTS:
            if not isinstance(found.get(name), str) or not found[name].startswith(scheme):
                raise ParseError(f"its metadata has no usable {name}", where=where)
        return found

    def _get(self, session: OAuth2Session, url: str) -> Any:
        answer = session.get(url, withhold_token=True, timeout=self.seconds, allow_redirects=False)
        if answer.status_code != requests.codes.ok:
            raise EdgeError(f"answers HTTP {answer.status_code}", where=url, remedy="check web.oidc.issuer")
        return read_json(answer.content, LIMITS, where=url)

    def _claims(self, session: OAuth2Session, id_token: str, nonce: str) -> Mapping[str, Any]:
        """Return the claims of an ID token that the provider has signed for us and for this sign-in."""
        try:
            try:
                claims = jwt.decode(id_token, self._key_set(session), algorithms=list(ALGORITHMS)).claims
            except (JoseError, ValueError):
                with self._lock:
                    self._keys = None  # the provider may have new keys
                claims = jwt.decode(id_token, self._key_set(session), algorithms=list(ALGORITHMS)).claims
            registry = JWTClaimsRegistry(
                leeway=LEEWAY_S,
                iss={"essential": True, "value": self.settings.issuer},
                aud={"essential": True, "value": self.settings.client_id},
                exp={"essential": True},
                iat={"essential": True},
                sub={"essential": True},
                nonce={"essential": True, "value": nonce},
            )
            registry.validate(claims)
        except (JoseError, ValueError) as error:
            raise self._refused(f"the identity token is not accepted ({type(error).__name__})") from None
        if claims.get("azp", self.settings.client_id) != self.settings.client_id:
            raise self._refused("the identity token is for another client")
        return claims

    def _key_set(self, session: OAuth2Session) -> KeySet:
        with self._lock:
            url = self._metadata["jwks_uri"]
            if self._keys is None:
                found = self._get(session, url)
                if not isinstance(found, dict) or not isinstance(found.get("keys"), list):
                    raise ParseError("is no set of keys", where=url)
                self._keys = KeySet.import_key_set(found)  # type: ignore[arg-type]
            return self._keys

    def _identity(self, claims: Mapping[str, Any]) -> Identity:
        given = claims.get(self.settings.name_claim)
        name = visible_line(str(given if isinstance(given, str) and given.strip() else claims["sub"]), LONGEST_NAME)
        values = claims.get(self.settings.role_claim)
        groups = {values} if isinstance(values, str) else {one for one in values or () if isinstance(one, str)}
        roles = self.settings.roles
        by_role = {UserRole.ADMIN: roles.admin, UserRole.OPERATOR: roles.operator, UserRole.VIEWER: roles.viewer}
        role = next((role for role, names in by_role.items() if groups & {*names}), None)
        if role is None:
            remedy = f"ask for a group that web.oidc.roles names in the claim {self.settings.role_claim}"
            raise PrivilegeError(f"{name} has no role on this page", where=self.label, remedy=remedy)
        return Identity(name=f"{PROVIDED}{name}", role=role)

    def _refused(self, message: str) -> AuthenticationError:
        return AuthenticationError(message, where=self.label, remedy="sign in again")


class _BoundedAdapter(AnswerAdapter):
    """Reads each answer whole, within its limits: the library would read what it asks for itself without any."""

    def __init__(self, trust: Trust, seconds: float) -> None:
        self._seconds = seconds
        super().__init__(trust, answer_context(trust))

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        del stream
        deadline = Deadline.after(self._seconds)
        with answered_by(deadline):
            answer = super().send(request, True, timeout, verify, cert, proxies)
        keep_body(answer, read_body(answer, LIMITS.size, deadline, "the provider", request.url or ""))
        return answer
