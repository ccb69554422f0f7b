"""The web service's API for jobs, as a user's command on a login node calls it.

What the service answers is bounded, and its texts are made visible before they become errors. The token goes to the
one address that the user has named: no redirect is followed, and without TLS only to a loopback address.
"""

from __future__ import annotations

import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import quote, urlsplit

import requests

from clusterctl.fleet.errors import (
    AuthenticationError,
    BusyError,
    ClusterctlError,
    ConflictError,
    EdgeError,
    OutcomeUnknownError,
    ParseError,
    PrivilegeError,
    UnreachableError,
    UntrustedError,
    UsageError,
)
from clusterctl.fleet.peer_text import visible_line
from clusterctl.fleet.secret import NeverPickled

BASE = "/api/v1"
MOST_BYTES = 64 << 20
LONGEST_EVENT = 8 << 20
CONNECT_S = 15.0
ANSWER_S = 900.0
"""To read all nodes of a large job takes the service minutes."""
SILENT_S = 90.0
"""An event stream without a line for so long is broken: the service sends one every half minute."""
_TEXT = 500
_SIGNED_OUT = "the token is wrong or has expired: an administrator makes one with clusterctl web token add --jobs-of"
_ERRORS: Mapping[int, type[ClusterctlError]] = {
    400: UsageError, 401: AuthenticationError, 403: PrivilegeError, 404: UsageError, 409: ConflictError, 429: BusyError,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobService(NeverPickled):
    """Asks one service. `ca_file`: certificates that its own is checked with; empty for those of the system."""

    url: str
    token: str = field(repr=False)
    ca_file: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        remedy = "give it as https://controller.example.com:8443"
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or parts.query:
            raise UsageError("is no address of the web service", where="--server", remedy=remedy)
        if parts.username or parts.password:
            raise UsageError("holds a user or a password", where="--server", remedy="name a token file: --token-file")
        if parts.scheme == "http" and not _is_loopback(parts.hostname):
            raise UsageError("a token is not sent without TLS", where="--server", remedy=remedy)
        if self.ca_file:
            _require_certificates(self.ca_file)

    def get(self, *path: str, **query: str) -> Any:
        """Return the JSON document below `/api/v1/PATH`."""
        return self._ask("GET", path, query, None)

    def post(self, *path: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a JSON document, once; return the answer. Raises `OutcomeUnknownError` where that was lost."""
        return self._ask("POST", path, {}, body or {})

    def events(self, *path: str) -> Iterator[Any]:
        """Yield the documents of an event stream until it ends. Raises `UnreachableError` where it breaks off."""
        try:
            with self._send("GET", path, {}, None, SILENT_S) as answer:
                for line in answer.iter_lines(chunk_size=512, delimiter=b"\n"):
                    if len(line) > LONGEST_EVENT:
                        raise ParseError("an event is too long", where=self.url)
                    if line.startswith(b"data: "):
                        yield _parsed(line.removeprefix(b"data: "), self.url)
        except requests.exceptions.RequestException as error:
            raise self._lost("GET", error) from None

    def _ask(self, method: str, path: tuple[str, ...], query: Mapping[str, str], body: Mapping[str, Any] | None) -> Any:
        try:
            with self._send(method, path, query, body, ANSWER_S) as answer:
                return _parsed(_content(answer), self.url)
        except requests.exceptions.RequestException as error:
            raise self._lost(method, error) from None

    def _send(
        self,
        method: str,
        path: tuple[str, ...],
        query: Mapping[str, str],
        body: Mapping[str, Any] | None,
        silent: float,
    ) -> requests.Response:
        """Return the answer; the caller closes it. Raises the error that the service has answered with."""
        session = requests.Session()
        session.trust_env = False  # no proxy and no .netrc of the surroundings: the token is for this service alone
        answer = session.request(
            method,
            self.url.rstrip("/") + BASE + "".join(f"/{quote(part, safe='')}" for part in path),
            params=dict(query),
            json=body,
            headers={"Authorization": f"Bearer {self.token}", "Accept": "application/json"},
            timeout=(CONNECT_S, silent),
            verify=self.ca_file or True,
            allow_redirects=False,
            stream=True,
        )
        if answer.status_code not in (200, 202):
            with answer:
                raise _refusal(answer, self.url)
        return answer

    def _lost(self, method: str, error: requests.exceptions.RequestException) -> ClusterctlError:
        if isinstance(error, requests.exceptions.SSLError):
            remedy = "name the certificate of its authority: --ca-file FILE"
            return UntrustedError("its certificate is not trusted", where=self.url, remedy=remedy)
        if method == "POST" and not isinstance(
            error, requests.exceptions.ConnectTimeout | requests.exceptions.ConnectionError
        ):
            remedy = "clusterctl job list prints what was ordered"
            return OutcomeUnknownError("its answer was lost", where=self.url, remedy=remedy)
        remedy = "check --server and the network; what was ordered goes on without this command"
        return UnreachableError(f"the service does not answer ({type(error).__name__})", where=self.url, remedy=remedy)


def _require_certificates(file: str) -> None:
    """Raise `UsageError` for a file that holds no certificate: else each service would be called untrusted."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(file)
    except OSError as error:
        remedy = "give a file of certificates in PEM form: that of the authority, or the service's own"
        cause = "cannot be read" if error.filename else "holds no certificate"
        raise UsageError(f"{file} {cause}", where="--ca-file", remedy=remedy) from None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _content(answer: requests.Response) -> bytes:
    content = bytearray()
    for part in answer.iter_content(1 << 16):
        content += part
        if len(content) > MOST_BYTES:
            raise ParseError(f"its answer is larger than {MOST_BYTES >> 20} MiB", where=answer.url)
    return bytes(content)


def _parsed(content: bytes, where: str) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise ParseError("its answer is no JSON document", where=where) from None


def _refusal(answer: requests.Response, where: str) -> ClusterctlError:
    """Return the error that the service answers with, as the same command on the controller raises it."""
    kind = _ERRORS.get(answer.status_code, EdgeError)
    try:
        found = _parsed(_content(answer), where)
        error: Mapping[str, Any] = found["error"]
        texts = {name: visible_line(str(error.get(name, "")), _TEXT) for name in ("message", "where", "remedy")}
    except (ParseError, KeyError, TypeError, AttributeError):
        texts = {
            "message": f"HTTP status {answer.status_code}",
            "where": where,
            "remedy": "check --server and the token",
        }
    remedy = texts["remedy"] or (_SIGNED_OUT if answer.status_code == requests.codes.unauthorized else "")
    return kind(texts["message"], where=texts["where"] or where, remedy=remedy)
