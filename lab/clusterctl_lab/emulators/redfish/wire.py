"""Requests and answers as they go over HTTP, and the ways in which an answer does not arrive."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator

from aiohttp import BodyPartReader, MultipartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from clusterctl_lab.emulators.redfish.exchange import Answer, Delivery, Request

HEADERS = {
    "Content-Type": "application/json;odata.metadata=minimal;charset=utf-8",
    "OData-Version": "4.0",
    "Cache-Control": "no-cache",
}
MAX_BYTES = 256 * 2**20
"""The longest body, or part of one: a firmware image."""


async def read(http: web.BaseRequest, *, reused: bool) -> Request:
    """The request with its body; HTTP 413 where that is too long."""
    multipart = http.content_type.startswith("multipart/")
    return Request(
        method=http.method,
        path=http.path,
        query=http.query_string,
        body=b"" if multipart else await _bounded(http.content.iter_any()),
        token=http.headers.get("X-Auth-Token", ""),
        authorization=http.headers.get("Authorization", ""),
        client=http.remote or "",
        if_match=http.headers.get("If-Match", ""),
        encoding=http.headers.get("Accept-Encoding", ""),
        parts=await _parts(http) if multipart else {},
        reused=reused,
    )


async def deliver(http: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Send the answer, as far as it is to arrive."""
    if answer.delivery is Delivery.LOST:
        return _hang_up(http)
    if answer.delivery is Delivery.CUT:
        return await _cut(http, answer)
    content = answer.content
    headers = {"OData-Version": "4.0"} if content is None else HEADERS
    return web.Response(status=answer.status, body=content, headers={**headers, **answer.headers})


def _hang_up(http: web.BaseRequest) -> web.StreamResponse:
    if http.transport is not None:
        http.transport.abort()
    return web.Response()


async def _cut(http: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    """Half of the body that was announced, then the connection ends."""
    content = answer.content or b""
    response = web.StreamResponse(status=answer.status, headers={**HEADERS, **answer.headers})
    response.content_length = len(content)
    await response.prepare(http)
    await response.write(content[: len(content) // 2])
    if http.transport is not None:
        http.transport.close()
    return response


async def _parts(http: web.BaseRequest) -> dict[str, bytes]:
    """The parts of a multipart body by their field names; none where it is broken."""
    parts: dict[str, bytes] = {}
    try:
        async for part in MultipartReader(http.headers, http.content):
            if isinstance(part, BodyPartReader) and part.name is not None:
                parts[part.name] = await _bounded(_chunks(part))
    except (ValueError, HttpProcessingError):
        return {}
    return parts


async def _chunks(part: BodyPartReader) -> AsyncIterator[bytes]:
    while chunk := await part.read_chunk():
        yield bytes(chunk)


async def _bounded(chunks: AsyncIterable[bytes]) -> bytes:
    found = bytearray()
    async for chunk in chunks:
        found += chunk
        if len(found) > MAX_BYTES:
            raise web.HTTPRequestEntityTooLarge(MAX_BYTES, len(found))
    return bytes(found)
