"""One BMC through the DMTF `redfish` library, by its public interface: one request in, one `Reply` out.

The library adds the session's token and the headers of the protocol, encodes the body, and reads the messages of a
refusal. Trust, time limits, redirects and retries are ours: the library gets the adapter of `transport.py`, and tries
each request once. Reasons: docs/adr/0016-the-dmtf-redfish-library.md.
"""

from __future__ import annotations

import base64
import logging
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import redfish
from redfish.messages import get_messages_detail
from redfish.rest.v1 import RestResponse, RetriesExhaustedError

from clusterctl.edges.limited_sockets import SLICE_SECONDS
from clusterctl.edges.redaction import Redaction
from clusterctl.edges.redfish.timing import Timing
from clusterctl.edges.redfish.transport import (
    REQUEST_SECONDS,
    DroppedError,
    RequestLimit,
    Stopwatch,
    adapter_for,
    translated,
)
from clusterctl.edges.redfish.upload import Upload
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.formats.peer_json import JsonLimits, read_json
from clusterctl.formats.redfish.tree import Answer, Unreadable
from clusterctl.ports import BmcAddress, Deadline

CONNECT_SECONDS = 10.0
BUSY = frozenset({429, 502, 503, 504})
"""Statuses that mean: later. Nothing was done."""
_LONGEST_TEXT = 300
_MESSAGES = 20
"""Messages of a refusal that are read, and arguments of a message."""
_REFUSAL = JsonLimits(size=1 << 20, values=10_000)
Method = Literal["GET", "POST", "PATCH", "DELETE"]
Body = Mapping[str, Any]

logging.getLogger("redfish.rest.v1").addFilter(lambda _: False)
"""Its debug and info lines contain session tokens. `disabled` would not last: `logging.config` resets it."""


@dataclass(frozen=True, slots=True)
class RefusalMessage:
    """One message of a refusal (`@Message.ExtendedInfo`), without our secrets, which a BMC may repeat."""

    id: str
    text: str
    arguments: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The id without registry and version: `ResourceInUse` of `Base.1.8.ResourceInUse`."""
        return self.id.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.id} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class Reply:
    """Status, body and headers of an answer. `headers` have lower-case names; `messages` are those of a refusal."""

    status: int
    content: bytes
    headers: Mapping[str, str]
    messages: tuple[RefusalMessage, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the BMC accepted the request."""
        return self.status in range(200, 300)

    @property
    def explanation(self) -> str:
        """The messages as one text, at most 300 characters; empty where there are none."""
        return "; ".join(text for text in map(str, self.messages) if text)[:_LONGEST_TEXT]

    @property
    def summary(self) -> str:
        """Status and messages, for operators."""
        return f"HTTP {self.status} {self.explanation}".strip()

    @property
    def answer(self) -> Answer:
        """The resource, or the reason why there is none."""
        if self.status == 200:
            return _parsed(self.content)
        return Unreadable(self.summary, busy=self.status in BUSY)

    @property
    def body(self) -> Mapping[str, Any]:
        """The JSON object, whatever the status; empty where there is none."""
        parsed = _parsed(self.content)
        return {} if isinstance(parsed, Unreadable) else parsed

    def message(self, key: str) -> RefusalMessage | None:
        """Return the first message with this key."""
        return next((message for message in self.messages if message.key == key), None)

    @property
    def retry_after(self) -> float | None:
        """The seconds of `Retry-After`; None where it names none (RFC 9110 §10.2.3).

        A time is read against the answer's own `Date`: the BMC's clock may be wrong.
        """
        text = self.headers.get("retry-after", "")
        if text.isdecimal() and text.isascii():
            return float(text) if len(text) < 10 else None
        try:
            until, now = (parsedate_to_datetime(one) for one in (text, self.headers.get("date", "")))
            return max(0.0, (until - now).total_seconds())
        except (TypeError, ValueError, OverflowError):
            return None


@dataclass(frozen=True, slots=True)
class _Request:
    method: Method
    path: str
    body: Body | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    keep: bool = False
    seconds: float = REQUEST_SECONDS


class RedfishConnection:
    """Sends requests to one BMC; not thread-safe, as a session is not. `stopwatch` measures its answers."""

    def __init__(self, address: BmcAddress, deadline: Deadline, timing: Timing) -> None:
        self.stopwatch = Stopwatch()
        self._timing = timing
        self._limit = RequestLimit(deadline)
        self._redact = Redaction([address.password])
        self._adapter = adapter_for(address, self._limit)
        self._encoding = {"Accept-Encoding": "identity"}
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._client = redfish.redfish_client(
            base_url=f"https://{host}:{address.port}", check_connectivity=False, https_adapter=self._adapter
        )

    @property
    def sent(self) -> int:
        """Number of requests, redirects included."""
        return self._adapter.sent

    @property
    def certificate(self) -> str:
        """SHA-256 of the certificate behind the newest connection; empty without TLS, and before the first."""
        return self._adapter.certificate

    def use_token(self, token: str | None) -> None:
        """Send this session's token from now on."""
        self._client.set_session_key(token)
        self._adapter.authorization = ""
        self._redact.add([token] if token else [])

    def use_basic(self, address: BmcAddress) -> None:
        """Send user and password with each request from now on (RFC 7617)."""
        pair = f"{address.user}:{address.password}".encode()
        self._adapter.authorization = f"Basic {base64.b64encode(pair).decode()}"

    @contextmanager
    def answered(self, seconds: float) -> Iterator[None]:
        """In the block, wait so long for an answer also where the run is cancelled: it names what has to be undone."""
        self._limit.grace = seconds
        try:
            yield
        finally:
            self._limit.grace = 0.0

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
        """Send one request once. With `keep` it may use the open connection, and leaves it open.

        Without, both ends forget their connections: some BMCs close one without announcing it. A BMC that answers 406
        gets no `Accept-Encoding` from then on: a read is sent again at once, a write is for its sender to judge.
        """
        request = _Request(method, path, body, {"If-Match": if_match} if if_match else {}, keep)
        try:
            reply = self._send(request, deadline)
            if reply.status == 406 and self._encoding:
                self._encoding = {}
                if method == "GET":
                    reply = self._send(request, deadline)
            return reply
        finally:
            if not keep:
                self._adapter.close()

    def ask(
        self, method: Method, path: str, deadline: Deadline, *, body: Body | None = None, keep: bool = False
    ) -> Reply:
        """Send a read or a login, again while the BMC is busy, a read also where the BMC dropped the connection.

        Returns the last try's reply, or raises its error.
        """
        for attempt in range(1, self._timing.attempts + 1):
            last = attempt == self._timing.attempts
            try:
                reply = self.send(method, path, deadline, body=body, keep=keep)
            except DroppedError:
                if method != "GET" or last:
                    raise
                pause = self._pause(attempt, None)
            else:
                pause = self._pause(attempt, reply.retry_after)
                too_late = reply.retry_after is not None and pause >= deadline.remaining
                if last or too_late or reply.status not in (*BUSY, 406):
                    break
            deadline.sleep(pause, f"waiting for a busy BMC to answer {method} {path}")
        return reply

    def upload(self, path: str, upload: Upload, deadline: Deadline) -> Reply:
        """POST a file once; it may take until the deadline."""
        upload.rewind()
        self._adapter.upload = upload
        try:
            return self._send(_Request("POST", path, seconds=deadline.remaining), deadline)
        finally:
            self._adapter.upload = None
            self._adapter.close()

    def close(self) -> None:
        """Close the connections. The session is closed by its owner."""
        self._adapter.close()

    def _pause(self, attempt: int, retry_after: float | None) -> float:
        """Return what the BMC asks for in `Retry-After`, else a random pause; its limit grows from try to try."""
        limit = min(self._timing.busy * 2 ** (attempt - 1), self._timing.busy_max)
        return random.uniform(0, limit) if retry_after is None else min(retry_after, self._timing.asked_max)  # noqa: S311

    def _send(self, request: _Request, deadline: Deadline) -> Reply:
        doing = f"waiting for the answer to {request.method} {request.path}"
        deadline.check(doing)
        if not request.keep:
            self._adapter.close()
        self._limit.begin(deadline, doing, request.seconds)
        closing = {} if request.keep else {"Connection": "close"}
        options = {
            "headers": {**self._encoding, **request.headers, **closing},
            "timeout": (max(SLICE_SECONDS, min(CONNECT_SECONDS, deadline.remaining)), SLICE_SECONDS),
            "max_retry": 0,
        }
        try:
            with nullcontext() if self._adapter.upload else self.stopwatch.answer():
                response = self._call(request, options)
        except RetriesExhaustedError as error:
            raise translated(error.__cause__ or error, doing) from error.__cause__
        return self._reply(response)

    def _call(self, request: _Request, options: dict[str, Any]) -> RestResponse:
        body = None if request.body is None else dict(request.body)
        match request.method:
            case "GET":
                return self._client.get(request.path, **options)
            case "DELETE":
                return self._client.delete(request.path, **options)
            case "PATCH":
                return self._client.patch(request.path, body=body, **options)
            case "POST":
                return self._client.post(request.path, body=body, **options)

    def _reply(self, response: RestResponse) -> Reply:
        messages = messages_of(response, self._redact) if response.status >= 300 else ()
        headers = {key.lower(): value for key, value in response.getheaders()}
        return Reply(response.status, response.read, headers, messages)


def messages_of(response: RestResponse, redact: Redaction) -> tuple[RefusalMessage, ...]:
    """Return the messages of a refusal; a body that has none, or is garbled, is no error: the status stands."""
    try:
        read_json(response.read, _REFUSAL)
        found = get_messages_detail(response)["@Message.ExtendedInfo"]
    except Exception:  # noqa: BLE001 — the library foresees no garbled body; the status stands
        found = ()
    messages = []
    for item in found[:_MESSAGES] if isinstance(found, list) else []:
        if isinstance(item, Mapping):
            arguments = item.get("MessageArgs")
            texts = [text for text in arguments if isinstance(text, str)] if isinstance(arguments, list) else []
            id_, text = (_shown(str(item.get(key, "")), redact) for key in ("MessageId", "Message"))
            messages.append(RefusalMessage(id_, text, tuple(_shown(one, redact) for one in texts[:_MESSAGES])))
    return tuple(messages)


def _shown(text: str, redact: Redaction) -> str:
    """Return a text of a refusal without secrets, and then clipped: half a secret could not be recognised."""
    return visible_line(redact(text))


def _parsed(content: bytes) -> Answer:
    """Return the JSON object, within the limits of one resource."""
    try:
        parsed = read_json(content)
    except ParseError as error:
        return Unreadable(f"the answer {error.message}")
    if not isinstance(parsed, dict):
        return Unreadable("the answer is no JSON object")
    return parsed or Unreadable("the answer is an empty object")
