"""Waiting for a BMC without being held by it.

BMCs hang, and answer a byte at a time. `requests` knows only a time-out per byte, and nothing of cancelling; so the TLS
socket itself waits in slices and looks at the deadline and the cancel token between them.
"""

from __future__ import annotations

import ssl
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.utils import DEFAULT_CA_BUNDLE_PATH
from urllib3.connectionpool import ConnectionPool
from urllib3.util import parse_url

from clusterctl.fleet.errors import EdgeError, UnreachableError, UsageError
from clusterctl.ports import Deadline

SLICE_SECONDS = 0.25
REQUEST_SECONDS = 60.0
MAX_ANSWER_BYTES = 64 * 2**20


class NoAnswerError(UnreachableError):
    """The request went out and no answer came: whether it took effect is not known."""


@dataclass(slots=True)
class Watch:
    """The request that a socket waits for: until when, and how much it may send."""

    deadline: Deadline
    until: float = 0.0
    doing: str = ""
    received: int = 0

    def begin(self, deadline: Deadline, doing: str) -> None:
        self.deadline, self.doing, self.received = deadline, doing, 0
        self.until = min(deadline.at, time.monotonic() + REQUEST_SECONDS)

    def check(self) -> None:
        """Raise when the run was cancelled, the time is over, or the answer grows without end."""
        if self.deadline.cancelled.is_set():
            self.deadline.check(self.doing)
        if time.monotonic() >= self.until:
            raise NoAnswerError(f"no answer in time while {self.doing}")
        if self.received > MAX_ANSWER_BYTES:
            raise EdgeError(f"the answer is longer than {MAX_ANSWER_BYTES} bytes while {self.doing}")


class WatchedContext(ssl.SSLContext):
    """A verifying client context whose sockets look at `watch` while they wait."""

    watch: Watch


class _PatientSocket(ssl.SSLSocket):
    def recv_into(self, buffer: Any, nbytes: int | None = None, flags: int = 0) -> int:
        watch = cast("WatchedContext", self.context).watch
        while True:
            watch.check()
            try:
                count = super().recv_into(buffer, nbytes, flags)
            except TimeoutError:
                continue
            watch.received += count
            return count


def context(ca_file: str, watch: Watch) -> WatchedContext:
    """Certificates and host names are always verified: against `ca_file`, or the controller's own authorities."""
    made = WatchedContext(ssl.PROTOCOL_TLS_CLIENT)
    made.watch = watch
    made.sslsocket_class = _PatientSocket
    try:
        made.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the file with the BMCs' certificate authority cannot be used: {error.strerror or type(error).__name__}",
            where=ca_file,
            remedy="name a readable PEM file",
        ) from error
    return made


def system_authorities() -> str:
    """The controller's bundle, to which a site may have added its own authority; else the one that ships with us."""
    found = ssl.get_default_verify_paths().cafile
    return found if found and Path(found).is_file() else DEFAULT_CA_BUNDLE_PATH


class BmcAdapter(HTTPAdapter):
    """Sends to one host only (a redirect must not carry the session's token elsewhere), and never unverified."""

    def __init__(self, base_url: str, tls: WatchedContext) -> None:
        self._origin = _origin(base_url)
        self._tls = tls
        super().__init__(max_retries=0, pool_maxsize=1)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool: object) -> None:
        super().init_poolmanager(connections, maxsize, block, **{**pool, "ssl_context": self._tls})

    def get_connection_with_tls_context(
        self, request: PreparedRequest, verify: Any, proxies: Any = None, cert: Any = None
    ) -> ConnectionPool:
        if not verify:
            raise EdgeError("refusing to talk to a BMC without verifying its certificate")
        if _origin(request.url or "") != self._origin:
            raise EdgeError("the BMC sends us on to another host")
        return super().get_connection_with_tls_context(request, verify, proxies, cert)


def _origin(url: str) -> tuple[str | None, str | None, int]:
    """Scheme, host and port of an HTTPS URL."""
    parts = parse_url(url)
    return parts.scheme, parts.host, parts.port or 443
