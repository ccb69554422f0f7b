"""The DMTF `redfish` library with its traps closed.

Left to itself it retries ten times (writes too), waits for ever, verifies no certificate, follows the environment's
proxies and netrc, and logs the answer to a login. Here: no retries, bounded waits, TLS to whom `transport.py` trusts,
no environment, a silent logger. One request in, one `Reply` or one `ClusterctlError` out.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import redfish
import requests
from redfish.rest.v1 import RetriesExhaustedError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential

from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.transport import (
    SLICE_SECONDS,
    DroppedError,
    Stopwatch,
    Watch,
    adapter_for,
    base_url,
    translated,
)
from clusterctl.edges.redfish.upload import Upload
from clusterctl.formats.redfish.tree import Answer, Unreadable
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
        session: requests.Session = self._client._session  # noqa: SLF001 — the library offers no other way to …
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
        headers = self._client._get_req_headers(said)  # noqa: SLF001 — adds the session's token
        session: requests.Session = self._client._session  # noqa: SLF001 — trusts whom the adapter trusts
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
        self._client._session.close()  # noqa: SLF001 — `logout` would, but asks without our deadline

    def _reply(self, response: requests.Response) -> Reply:
        told = self._redact.bytes(response.content) if response.status_code >= 300 else b""
        headers = {key.lower(): value for key, value in response.headers.items()}
        return Reply(response.status_code, response.content, headers, told)

    def _headers(self, if_match: str, keep: bool) -> dict[str, str]:
        match = {"If-Match": if_match} if if_match else {}
        return {**self._encoding, **match} if keep else {**self._encoding, **match, "Connection": "close"}

    def _call(  # noqa: PLR0917 — what makes one request
        self, method: Method, path: str, body: Body | None, headers: dict[str, str], deadline: Deadline, doing: str
    ) -> requests.Response:
        """Only reads are sent on elsewhere, within this BMC: where a write goes is not for its answer to say."""
        deadline.check(doing)
        self._watch.begin(deadline, doing)
        self.sent += 1
        connect = max(SLICE_SECONDS, min(CONNECT_SECONDS, deadline.remaining))
        with self.stopwatch.answer():
            answered = self._client._rest_request(  # noqa: SLF001 — its public methods follow redirects of writes
                path,
                method=method,
                body=None if body is None else dict(body),
                headers=headers,
                allow_redirects=method == "GET",
                timeout=(connect, SLICE_SECONDS),
                max_retry=0,
            )
        response: requests.Response = answered._http_response  # noqa: SLF001 — its headers have no other way out
        self.sent += len(response.history)
        return response


_LONGEST = 300


def answer_of(reply: Reply) -> Answer:
    """The resource, or in words why there is none."""
    if reply.status != 200:
        return Unreadable(f"HTTP {reply.status} {explanation(reply)}".strip())
    try:
        told = json.loads(reply.content)
    except (ValueError, RecursionError):
        return Unreadable("the answer is no JSON")
    return told if isinstance(told, dict) else Unreadable("the answer is no JSON object")


def body_of(reply: Reply) -> Mapping[str, Any]:
    """The JSON object of any reply; empty where it has none."""
    answer = answer_of(Reply(200, reply.content, {}))
    return {} if isinstance(answer, Unreadable) else answer


def explanation(reply: Reply) -> str:
    """What a Redfish error says in its own words (`@Message.ExtendedInfo`), at most 300 characters."""
    try:
        told = json.loads(reply.told)["error"]
        infos = told.get("@Message.ExtendedInfo") or [{}]
        words = [f"{info.get('MessageId', '')} {info.get('Message', '')}".strip() for info in infos]
        return "; ".join(word for word in words if word)[:_LONGEST] or str(told.get("message", ""))[:_LONGEST]
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return ""  # not every error has a body; the status stands


def account_to_change(reply: Reply) -> str:
    """The account that a `PasswordChangeRequired` names (DSP0266, "Password change required handling"); empty where it
    names none.
    """
    for info in _infos(reply):
        arguments = info.get("MessageArgs")
        if str(info.get("MessageId", "")).endswith("PasswordChangeRequired") and isinstance(arguments, list):
            return next((item for item in arguments if isinstance(item, str)), "")
    return ""


def _infos(reply: Reply) -> list[Mapping[str, Any]]:
    try:
        told = json.loads(reply.told)["error"]["@Message.ExtendedInfo"]
    except (ValueError, RecursionError, KeyError, TypeError):
        return []
    return [info for info in told if isinstance(info, Mapping)] if isinstance(told, list) else []


def refusal(reply: Reply) -> str:
    """Status and words of a reply, for people."""
    return f"HTTP {reply.status} {explanation(reply)}".strip()


BUSY = frozenset({429, 502, 503, 504})
"""Statuses that say: later. Nothing was done."""


class Asker:
    """Sends reads and log-ins, again while the BMC is busy; a read also where it dropped the connection."""

    def __init__(self, library: Library, timing: Timing) -> None:
        self._library = library
        self._timing = timing

    def ask(
        self, method: Method, path: str, deadline: Deadline, *, body: Body | None = None, keep: bool = False
    ) -> Reply:
        """The last try's answer, or its error."""
        reply: Reply = self._retrying(method, path, deadline)(
            self._library.send, method, path, deadline, body=body, keep=keep and method == "GET"
        )
        return reply

    def _retrying(self, method: Method, path: str, deadline: Deadline) -> Retrying:
        again = retry_if_result(lambda reply: reply.status in BUSY or reply.status == 406)
        dropped = retry_if_exception_type(DroppedError)
        return Retrying(
            stop=stop_after_attempt(self._timing.attempts),
            wait=lambda state: retry_pause(state, self._timing),
            sleep=lambda seconds: deadline.sleep(seconds, f"waiting for a busy BMC to answer {method} {path}"),
            retry=again | dropped if method == "GET" else again,
            retry_error_callback=_last,
        )


def retry_pause(state: RetryCallState, timing: Timing) -> float:
    """What the BMC asks for in `Retry-After`, else longer from try to try."""
    reply = None if state.outcome is None or state.outcome.failed else state.outcome.result()
    told = retry_after(reply, timing.busy_max) if reply is not None else None
    return wait_random_exponential(multiplier=timing.busy, max=timing.busy_max)(state) if told is None else told


def retry_after(reply: Reply, most: float) -> float | None:
    """The seconds of `Retry-After`, no more than `most`; None where it gives none (RFC 9110 §10.2.3)."""
    told = reply.headers.get("retry-after", "")
    return min(float(told), most) if told.isdecimal() and told.isascii() and len(told) < 10 else None


def _last(state: RetryCallState) -> Any:
    return state.outcome.result() if state.outcome else None
