"""Answers over HTTP: each bounded as a whole in time, its body in bytes, and in no encoding that was not asked for.

`requests` has a time-out for each receipt of bytes: a peer that sends one byte at a time would hold a request for days.
So the sockets of these sessions observe the deadline of the request that waits for them, from the status line to the
trailers.
"""

from __future__ import annotations

import io
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import requests
from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError

from clusterctl.edges.limited_sockets import SLICE_SECONDS, limited_context, limited_pool
from clusterctl.edges.tls import Trust, TrustingAdapter
from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports import Deadline

CONNECT_SECONDS = 10.0
"""For the connection and its TLS handshake, and for each sending of a request's content."""
_CHUNK = 1 << 16
_TOO_SLOW = "the answer did not end in time"

_CURRENT: ContextVar[Deadline] = ContextVar("deadline of the request that this thread waits for")


@contextmanager
def answered_by(deadline: Deadline) -> Iterator[None]:
    """Let what this thread receives through the sockets of `AnswerAdapter` end by the deadline, or once cancelled."""
    before = _CURRENT.set(deadline)
    try:
        yield
    finally:
        _CURRENT.reset(before)


class _CurrentDeadline:
    """Meets `ReceiveLimit`: the limit is the deadline of the thread that receives, on whichever connection."""

    def receive(self, read: Callable[[], int]) -> int:
        deadline = _CURRENT.get()
        while True:
            deadline.check_cancelled("waiting for an answer")
            if deadline.remaining <= 0:
                raise TimeoutError(_TOO_SLOW)
            try:
                return read()
            except TimeoutError:
                continue


_LIMIT = _CurrentDeadline()


class AnswerAdapter(TrustingAdapter):
    """Requests' transport for answers within `answered_by`, outside of which it sends nothing.

    context  of `answer_context`; one for all adapters with the same trust
    """

    def __init__(self, trust: Trust, context: ssl.SSLContext) -> None:
        super().__init__(trust, context)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **pool: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, **pool)
        makers = self.poolmanager.pool_classes_by_scheme
        self.poolmanager.pool_classes_by_scheme = {**makers, "http": limited_pool(_LIMIT)}

    def send(
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: bool | str = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        del timeout  # the deadline decides
        connecting = max(SLICE_SECONDS, min(CONNECT_SECONDS, _CURRENT.get().remaining))
        return super().send(request, stream, (connecting, SLICE_SECONDS), verify, cert, proxies)


def answer_context(trust: Trust) -> ssl.SSLContext:
    """Return the TLS context of `AnswerAdapter`s; to read its authorities takes 20 ms."""
    return limited_context(trust, _LIMIT)


def guard(session: requests.Session, adapter: requests.adapters.HTTPAdapter) -> None:
    """Let a session send everything through the adapter, ask for no encoding, and believe nothing in the environment.

    A megabyte of gzip may hold gigabytes; the environment could name proxies, authorities and logins.
    """
    session.trust_env = False
    session.headers["Accept-Encoding"] = "identity"
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter)


class _Session(requests.Session):
    """Leaves redirects alone: `requests` would read the body of one at once, decoded and without limits."""

    def get_redirect_target(self, resp: requests.Response) -> None:
        del resp


def answer_session(trust: Trust, context: ssl.SSLContext | None = None) -> requests.Session:
    """Return a session whose answers are bounded; any number of threads may use it."""
    session = _Session()
    guard(session, AnswerAdapter(trust, context or answer_context(trust)))
    return session


def send(
    session: requests.Session, request: requests.Request | requests.PreparedRequest, deadline: Deadline
) -> requests.Response:
    """Send a request of a session of `answer_session`, and return its answer with the body still unread.

    Redirects are not followed: they would take a login elsewhere. Raise `CancelledError` where the run is stopped, and
    what `requests` raises for a lost connection or a time-out.
    """
    prepared = session.prepare_request(request) if isinstance(request, requests.Request) else request
    with answered_by(deadline):
        return session.send(prepared, allow_redirects=False, stream=True)


def read_body(answer: requests.Response, most: int, deadline: Deadline, peer: str, where: str) -> bytes:
    """Return the whole body of a streamed answer.

    Raise `ParseError` for a body of more than `most` bytes, and as `body_parts`. `peer` is the peer in messages.
    """
    content = bytearray()
    for part in body_parts(answer, deadline, peer, where):
        content += part
        if len(content) > most:
            answer.close()
            raise ParseError(f"{peer}'s answer is larger than {most >> 10} KiB", where=where)
    return bytes(content)


def keep_body(answer: requests.Response, content: bytes) -> None:
    """Give a streamed answer its body, from which a library will read it: `requests` would read without limits."""
    answer.raw = io.BytesIO(content)


def body_parts(answer: requests.Response, deadline: Deadline, peer: str, where: str) -> Iterator[bytes]:
    """Yield the body of a streamed answer as it arrives.

    Raise `ParseError` for an encoded one, `CancelledError` where the run is stopped, and what `requests` raises for a
    lost connection or a time-out: the callers know what those mean.
    """
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("", "identity"):
        answer.close()
        raise ParseError(
            f"{peer}'s answer is encoded ({visible_line(encoding, 40)}), which was not asked for",
            where=where,
            remedy="let the proxy before it compress only what asks for it",
        )
    while part := _received(answer, deadline):
        yield part
        deadline.check_cancelled(f"reading the answer of {peer}")
        if deadline.remaining <= 0:
            answer.close()
            raise requests.exceptions.ReadTimeout(_TOO_SLOW)


def _received(answer: requests.Response, deadline: Deadline) -> bytes:
    """Return what has arrived, at most `_CHUNK` bytes; nothing at the end of the body."""
    try:
        with answered_by(deadline):
            found: bytes | None = answer.raw.read1(_CHUNK, decode_content=False)
    except ProtocolError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error
    except ReadTimeoutError as error:
        raise requests.exceptions.ReadTimeout(error) from error
    except SSLError as error:
        raise requests.exceptions.SSLError(error) from error
    return found or b""
