"""The body of an HTTP answer: bounded in bytes and in time, and in no encoding that was not asked for.

`requests` has a time-out for each receipt of bytes: a peer that sends one byte at a time would hold a request for days.
So the body is taken as it arrives, and the deadline is looked at after each receipt.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import requests
from urllib3.exceptions import ProtocolError, ReadTimeoutError, SSLError

from clusterctl.fleet.errors import ParseError
from clusterctl.fleet.peer_text import visible_line
from clusterctl.ports import Deadline

IDENTITY = {"Accept-Encoding": "identity"}
"""Header of the requests: a megabyte of gzip may hold gigabytes."""
_CHUNK = 1 << 16


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


def with_body(answer: requests.Response, most: int, deadline: Deadline, peer: str, where: str) -> requests.Response:
    """Return a streamed answer whose `content` is its body, taken within these limits. Raise as `read_body`."""
    answer.raw = io.BytesIO(read_body(answer, most, deadline, peer, where))
    return answer


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
    while part := _received(answer):
        yield part
        deadline.check_cancelled(f"reading the answer of {peer}")
        if deadline.remaining <= 0:
            answer.close()
            raise requests.exceptions.ReadTimeout("the answer did not end in time")


def _received(answer: requests.Response) -> bytes:
    """Return what has arrived, at most `_CHUNK` bytes; nothing at the end of the body."""
    try:
        found: bytes | None = answer.raw.read1(_CHUNK, decode_content=False)
    except ProtocolError as error:
        raise requests.exceptions.ChunkedEncodingError(error) from error
    except ReadTimeoutError as error:
        raise requests.exceptions.ReadTimeout(error) from error
    except SSLError as error:
        raise requests.exceptions.SSLError(error) from error
    return found or b""
