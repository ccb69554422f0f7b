"""Trust in TLS peers: a certificate authority, or one pinned certificate. There is no third way.

Sources: RFC 9325 (TLS 1.2 at least), urllib3's `assert_fingerprint`, which compares right after the handshake, before
the first byte of a request.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from requests import PreparedRequest, Response
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.exceptions import SSLError

from clusterctl.fleet.errors import UntrustedError, UsageError
from clusterctl.formats.certificate_pin import with_colons

C = TypeVar("C", bound=ssl.SSLContext)

_NO_MATCH = re.compile(r'Fingerprints did not match\. Expected "[0-9a-f]+", got "([0-9a-f]+)"')


@dataclass(frozen=True, slots=True)
class Trust:
    """Who may be at the other end: the holder of the certificate `fingerprint` and no other, or, where that is empty,
    the peers that `ca_file` (empty: the controller's own authorities) certifies for the name or address that we called.
    """

    ca_file: str = ""
    fingerprint: str = ""

    @property
    def authorities(self) -> str:
        return self.ca_file or system_authorities()

    def client(self) -> ssl.SSLContext:
        """Return a new context for `TrustingAdapter`; any number of connections and threads may share it."""
        return self.context(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))

    def context(self, made: C) -> C:
        """Make `made`, a fresh client context, trust by this; with a pin, the caller's adapter compares it."""
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        if self.fingerprint:
            made.check_hostname = False
            made.verify_mode = ssl.CERT_NONE
            return made
        made.check_hostname = True
        made.verify_mode = ssl.CERT_REQUIRED
        try:
            made.load_verify_locations(self.authorities)
        except (OSError, ssl.SSLError) as error:
            raise UsageError(
                f"the file with the certificate authority cannot be used: {error.strerror or type(error).__name__}",
                where=self.authorities,
                remedy="name a readable PEM file",
            ) from error
        return made


class TrustingAdapter(HTTPAdapter):
    """Requests' transport under a `Trust`; the `verify` of a session or request does not matter.

    `context` is of `Trust.client` or `Trust.context`: to read a bundle of authorities takes 20 ms, so it is read once
    and not, as requests would, again for every connection.
    """

    def __init__(self, trust: Trust, context: ssl.SSLContext, **options: Any) -> None:
        self._pin = trust.fingerprint
        self._tls = context
        super().__init__(**options)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool: object) -> None:
        pin = {"assert_fingerprint": self._pin} if self._pin else {}
        super().init_poolmanager(connections, maxsize, block, **{**pool, **pin, "ssl_context": self._tls})

    def cert_verify(self, conn: Any, url: str, verify: bool | str, cert: Any) -> None:
        """Add nothing: the context has the authorities."""
        del url, verify, cert
        conn.cert_reqs = "CERT_NONE" if self._pin else "CERT_REQUIRED"

    def send(
        self,
        request: PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> Response:
        del verify
        return super().send(request, stream, timeout, not self._pin, cert, proxies)


def system_authorities() -> str:
    """Return the controller's bundle, to which a site may have added its own authority; else the one of our package."""
    found = ssl.get_default_verify_paths().cafile
    return found if found and Path(found).is_file() else DEFAULT_CA_BUNDLE_PATH


def distrust(chain: list[BaseException], peer: str, ca_field: str, pin_field: str) -> UntrustedError | None:
    """Return the error for a peer with a wrong identity, from an exception and all its causes; None for other causes.

    `ca_field` and `pin_field` are where an operator configures the trust.
    """
    for cause in chain:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return UntrustedError(
                f"{peer}'s TLS certificate is not accepted: {cause.verify_message}; nothing secret was sent",
                remedy=f"name the authority that signed it as {ca_field}, or pin it: {pin_field}",
            )
        found = _NO_MATCH.search(str(cause)) if isinstance(cause, SSLError) else None
        if found:
            return UntrustedError(
                f"{peer}'s TLS certificate is not the pinned one, but {with_colons(found[1])}; nothing secret was sent",
                remedy=f"find out what answers there; only if its certificate was renewed, change the pin: {pin_field}",
            )
    return None


def causes(error: BaseException) -> list[BaseException]:
    """Return the error and everything it was made from: causes, contexts, and urllib3's `reason` and arguments."""
    seen: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        here = waiting.pop(0)
        if any(here is known for known in seen):
            continue
        seen.append(here)
        linked = (here.__cause__, here.__context__, getattr(here, "reason", None), *here.args)
        waiting += [item for item in linked if isinstance(item, BaseException)]
    return seen
