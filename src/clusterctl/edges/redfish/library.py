"""The DMTF `redfish` library with its traps closed.

Left to itself it retries ten times (writes too), waits for ever, verifies no certificate, follows the environment's
proxies and netrc, and logs the answer to a login. Here: no retries, bounded waits, TLS to whom `transport.py` trusts,
no environment, a silent logger. One request in, one `Reply` or one `ClusterctlError` out.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import redfish
import requests
from redfish.rest.v1 import RetriesExhaustedError

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.failures import translated
from clusterctl.edges.redfish.form import Upload
from clusterctl.edges.redfish.patience import SLICE_SECONDS, Watch
from clusterctl.edges.redfish.stopwatch import Stopwatch
from clusterctl.edges.redfish.transport import adapter_for, base_url
from clusterctl.ports import BmcAddress, Deadline

CONNECT_SECONDS = 10.0
Method = Literal["GET", "POST", "PATCH", "DELETE"]
Body = Mapping[str, Any]

logging.getLogger("redfish.rest.v1").disabled = True  # its debug and info lines hold session tokens


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back, before anyone looked into it. `headers` have lower-case names; `told` is the content of a refusal
    without our secrets, which it may repeat.
    """

    status: int
    content: bytes
    headers: Mapping[str, str]
    told: bytes = b""


class Library:
    """One BMC through the library; not thread-safe, as a session is not. `sent` counts requests, redirects included;
    `stopwatch` knows how slow its answers were.
    """

    def __init__(self, address: BmcAddress, deadline: Deadline, stopwatch: Stopwatch | None = None) -> None:
        self.sent = 0
        self.stopwatch = stopwatch or Stopwatch()
        self._watch = Watch(deadline)
        self._redact = Redaction([address.password])
        self._adapter = adapter_for(address, self._watch)
        self._encoding = {"Accept-Encoding": "identity"}
        self._base_url = base_url(address)
        self._client = redfish.redfish_client(
            base_url=self._base_url, timeout=CONNECT_SECONDS, max_retry=0, check_connectivity=False
        )
        session: requests.Session = self._client._session
        session.trust_env = False  # … ignore the environment's proxies and netrc
        session.adapters.clear()  # … refuse a redirect to another scheme
        session.mount("http://" if address.plain_http else "https://", self._adapter)  # … and decide whom to believe

    def use_token(self, token: str | None) -> None:
        """Send this session's token from now on."""
        self._client.set_session_key(token)
        self._redact.add([token] if token else [])

    def use_basic(self, address: BmcAddress) -> None:
        """Send user and password with each request from now on (RFC 7617)."""
        pair = f"{address.user}:{address.password}".encode()
        self._client.set_authorization_key(f"Basic {base64.b64encode(pair).decode()}")

    def send(
        self,
        method: Method,
        path: str,
        deadline: Deadline,
        *,
        body: Body | None = None,
        if_match: str = "",
        keep: bool = False,
    ) -> Reply:
        """One request, tried once. With `keep` it may use the connection of the one before, and leaves it open.

        Without, both ends forget their connections: some BMCs close one without saying so. A BMC that answers 406 gets
        no word about encodings from then on; a read is asked again at once, a write is for its sender to judge.
        """
        doing = f"waiting for the answer to {method} {path}"
        if not keep:
            self._adapter.close()
        try:
            response = self._call(method, path, body, self._headers(if_match, keep), deadline, doing)
            if response.status_code == 406 and self._encoding:
                self._encoding = {}
                if method == "GET":
                    response = self._call(method, path, body, self._headers(if_match, keep), deadline, doing)
        except RetriesExhaustedError as error:
            raise translated(error.__cause__ or error, doing) from error.__cause__
        finally:
            if not keep:
                self._adapter.close()
        return self._reply(response)

    def upload(self, path: str, upload: Upload, deadline: Deadline) -> Reply:
        """A POST of a file, tried once, which may take until the deadline. The library would keep it all in memory."""
        doing = f"waiting for the answer to POST {path}"
        deadline.check(doing)
        upload.rewind()
        self._adapter.close()
        self._watch.begin(deadline, doing, deadline.remaining)
        self.sent += 1
        said = {**self._headers("", keep=False), "Content-Type": upload.content_type}
        headers = self._client._get_req_headers(said)
        session: requests.Session = self._client._session
        try:
            response = session.post(
                f"{self._base_url}{path}",
                data=upload,
                headers=headers,
                allow_redirects=False,
                timeout=(CONNECT_SECONDS, SLICE_SECONDS),
            )
        except (requests.exceptions.RequestException, OSError) as error:
            raise translated(error, doing) from error
        finally:
            self._adapter.close()
        return self._reply(response)

    def close(self) -> None:
        """Close the connections; the BMC's session is closed by whoever opened it."""
        self._client._session.close()

    def _reply(self, response: requests.Response) -> Reply:
        told = self._redact.bytes(response.content) if response.status_code >= 300 else b""
        headers = {key.lower(): value for key, value in response.headers.items()}
        return Reply(response.status_code, response.content, headers, told)

    def _headers(self, if_match: str, keep: bool) -> dict[str, str]:
        match = {"If-Match": if_match} if if_match else {}
        return {**self._encoding, **match} if keep else {**self._encoding, **match, "Connection": "close"}

    def _call(
        self, method: Method, path: str, body: Body | None, headers: dict[str, str], deadline: Deadline, doing: str
    ) -> requests.Response:
        """Only reads are sent on elsewhere, within this BMC: where a write goes is not for its answer to say."""
        deadline.check(doing)
        self._watch.begin(deadline, doing)
        self.sent += 1
        connect = max(SLICE_SECONDS, min(CONNECT_SECONDS, deadline.remaining))
        with self.stopwatch.answer():
            answered = self._client._rest_request(
                path,
                method=method,
                body=None if body is None else dict(body),
                headers=headers,
                allow_redirects=method == "GET",
                timeout=(connect, SLICE_SECONDS),
                max_retry=0,
            )
        response: requests.Response = answered._http_response
        self.sent += len(response.history)
        return response
