"""The DMTF `redfish` library with its traps closed.

Left to itself it retries ten times (writes too), waits for ever, verifies no certificate, follows the environment's
proxies and netrc, and logs the answer to a login. Here: no retries, bounded waits, verified TLS, no environment, a
silent logger. One request in, one `Reply` or one `ClusterctlError` out.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from http.client import IncompleteRead, RemoteDisconnected
from typing import Any, Literal

import redfish
import requests
from redfish.rest.v1 import RetriesExhaustedError
from urllib3.exceptions import ProtocolError

from clusterctl.edges.redfish.patience import (
    SLICE_SECONDS,
    BmcAdapter,
    NoAnswerError,
    Watch,
    context,
    system_authorities,
)
from clusterctl.fleet.errors import ClusterctlError, EdgeError, UnreachableError
from clusterctl.ports import BmcAddress, Deadline

CONNECT_SECONDS = 10.0
Method = Literal["GET", "POST", "DELETE"]

logging.getLogger("redfish.rest.v1").disabled = True  # its debug and info lines hold session tokens


class DroppedError(NoAnswerError):
    """The BMC closed the connection instead of answering."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, before anyone looked into it. `headers` have lower-case names."""

    status: int
    content: bytes
    headers: Mapping[str, str]


class Library:
    """One BMC through the library; not thread-safe, as a session is not."""

    def __init__(self, address: BmcAddress, deadline: Deadline) -> None:
        self._watch = Watch(deadline)
        ca_file = address.ca_file or system_authorities()
        host = f"[{address.host}]" if ":" in address.host else address.host
        netloc = f"{host}:{address.port}"
        self._client = redfish.redfish_client(
            base_url=f"https://{netloc}",
            cafile=ca_file,
            timeout=CONNECT_SECONDS,
            max_retry=0,
            check_connectivity=False,
            https_adapter=BmcAdapter(netloc, context(ca_file, self._watch)),
        )
        session: requests.Session = self._client._session  # noqa: SLF001 — the library offers no other way to …
        session.trust_env = False  # … ignore the environment's proxies and netrc
        session.adapters.pop("http://")  # … and to refuse a redirect to plain HTTP

    def use_token(self, token: str | None) -> None:
        """Send this session's token from now on."""
        self._client.set_session_key(token)

    def send(
        self,
        method: Method,
        path: str,
        deadline: Deadline,
        *,
        body: Mapping[str, str] | None = None,
        keep: bool = False,
    ) -> Reply:
        """One request, tried once. `keep` leaves the connection open for the next one."""
        doing = f"waiting for the answer to {method} {path}"
        deadline.check(doing)
        self._watch.begin(deadline, doing)
        headers = {"Accept-Encoding": "identity"} if keep else {"Accept-Encoding": "identity", "Connection": "close"}
        options: dict[str, Any] = {
            "headers": headers,
            "timeout": (max(SLICE_SECONDS, min(CONNECT_SECONDS, deadline.remaining)), SLICE_SECONDS),
            "max_retry": 0,
        }
        try:
            reply = self._call(method, path, dict(body) if body is not None else None, options)
            if reply.status_code == 406:
                headers.pop("Accept-Encoding")
                reply = self._call(method, path, dict(body) if body is not None else None, options)
        except RetriesExhaustedError as error:
            raise _translated(error.__cause__ or error, doing) from error.__cause__
        return Reply(reply.status_code, reply.content, {key.lower(): value for key, value in reply.headers.items()})

    def close(self) -> None:
        """Close the connections; the BMC's session is closed by whoever opened it."""
        self._client._session.close()  # noqa: SLF001 — `logout` would, but asks without our deadline

    def _call(
        self, method: Method, path: str, body: dict[str, str] | None, options: dict[str, Any]
    ) -> requests.Response:
        if method == "POST":
            answered = self._client.post(path, body=body, **options)
        elif method == "DELETE":
            answered = self._client.delete(path, **options)
        else:
            answered = self._client.get(path, **options)
        response: requests.Response = answered._http_response  # noqa: SLF001 — its headers have no other way out
        return response


def _translated(error: BaseException, doing: str) -> ClusterctlError:
    """The library's last cause as one of our errors; never with more of it than its own words."""
    chain = list(_chain(error))
    for cause in chain:
        if isinstance(cause, ClusterctlError):
            return cause
    for cause in chain:
        if isinstance(cause, requests.exceptions.SSLError):
            return _tls_error(chain)
        if isinstance(cause, requests.exceptions.Timeout):
            return UnreachableError("the BMC does not answer", remedy="check its power, its cable and its address")
        if isinstance(
            cause, ConnectionResetError | BrokenPipeError | RemoteDisconnected | ProtocolError | IncompleteRead
        ):
            return DroppedError(f"the BMC closed the connection while {doing}")
    if isinstance(error, requests.exceptions.ConnectionError):
        reason = next((c.strerror for c in chain if isinstance(c, OSError) and c.strerror), "no connection")
        return UnreachableError(f"the BMC cannot be reached: {reason}", remedy="check its power, cable and address")
    return EdgeError(f"{type(error).__name__} while {doing}")


def _tls_error(chain: list[BaseException]) -> EdgeError:
    reason = next((str(c.verify_message) for c in chain if hasattr(c, "verify_message")), "")
    return EdgeError(
        f"the BMC's TLS certificate is not accepted{': ' if reason else ''}{reason}",
        remedy="give the BMC a certificate of the site's authority, and name that authority as the BMCs' ca_file",
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and everything it was made from: causes, contexts, and urllib3's `reason` and arguments."""
    seen: list[BaseException] = []
    waiting: list[BaseException] = [error]
    while waiting:
        here = waiting.pop(0)
        if any(here is known for known in seen):
            continue
        seen.append(here)
        yield here
        linked = (here.__cause__, here.__context__, getattr(here, "reason", None), *here.args)
        waiting += [item for item in linked if isinstance(item, BaseException)]
