"""The DMTF `redfish` library with its traps closed.

Left to itself it retries ten times (writes too), waits for ever, verifies no certificate, follows the environment's
proxies and netrc, and logs the answer to a login. Here: no retries, bounded waits, verified TLS, no environment, a
silent logger. One request in, one `Reply` or one `ClusterctlError` out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import redfish
import requests
from redfish.rest.v1 import RetriesExhaustedError

from clusterctl.edges.redfish.failures import translated
from clusterctl.edges.redfish.patience import (
    SLICE_SECONDS,
    BmcAdapter,
    Watch,
    context,
    system_authorities,
)
from clusterctl.ports import BmcAddress, Deadline

CONNECT_SECONDS = 10.0
Method = Literal["GET", "POST", "DELETE"]

logging.getLogger("redfish.rest.v1").disabled = True  # its debug and info lines hold session tokens


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
        base_url = f"https://{host}:{address.port}"
        self._adapter = BmcAdapter(base_url, context(ca_file, self._watch))
        self._client = redfish.redfish_client(
            base_url=base_url,
            cafile=ca_file,
            timeout=CONNECT_SECONDS,
            max_retry=0,
            check_connectivity=False,
            https_adapter=self._adapter,
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
        """One request, tried once. With `keep` it may use the connection of the one before, and leaves it open.

        Without, both ends forget their connections: some BMCs close one without saying so.
        """
        doing = f"waiting for the answer to {method} {path}"
        deadline.check(doing)
        self._watch.begin(deadline, doing)
        headers = {"Accept-Encoding": "identity"} if keep else {"Accept-Encoding": "identity", "Connection": "close"}
        if not keep:
            self._adapter.close()
        try:
            reply = self._call(method, path, body, headers, deadline)
            if reply.status_code == 406:
                headers.pop("Accept-Encoding")
                reply = self._call(method, path, body, headers, deadline)
        except RetriesExhaustedError as error:
            raise translated(error.__cause__ or error, doing) from error.__cause__
        finally:
            if not keep:
                self._adapter.close()
        return Reply(reply.status_code, reply.content, {key.lower(): value for key, value in reply.headers.items()})

    def close(self) -> None:
        """Close the connections; the BMC's session is closed by whoever opened it."""
        self._client._session.close()  # noqa: SLF001 — `logout` would, but asks without our deadline

    def _call(
        self, method: Method, path: str, body: Mapping[str, str] | None, headers: dict[str, str], deadline: Deadline
    ) -> requests.Response:
        connect = max(SLICE_SECONDS, min(CONNECT_SECONDS, deadline.remaining))
        options: dict[str, Any] = {"headers": dict(headers), "timeout": (connect, SLICE_SECONDS), "max_retry": 0}
        if method == "POST":
            answered = self._client.post(path, body=dict(body or {}), **options)
        elif method == "DELETE":
            answered = self._client.delete(path, **options)
        else:
            answered = self._client.get(path, **options)
        response: requests.Response = answered._http_response  # noqa: SLF001 — its headers have no other way out
        return response
