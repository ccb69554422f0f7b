"""The HTTP service that machines use while they are installed (plain HTTP on the provisioning network).

Secrets need the token of a running attempt; without one the answer is 404. Tokens are part of paths, so no request is
logged.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from clusterctl.edges.pxe import files, scripts
from clusterctl.edges.pxe.attempt_store import AttemptStore
from clusterctl.edges.pxe.boot_handlers import BootHandlers, Reply
from clusterctl.fleet.errors import ClusterctlError
from clusterctl.formats.identifiers import read_mac
from clusterctl.ports import Clock

DOCUMENTS = frozenset({"overlay.tar", "user-data", "meta-data", "vendor-data", "network-config", "preseed.cfg"})
MAX_BYTES = {
    "report": 256 << 10,
    "progress": 4 << 10,
    "host-key": 4 << 10,
    "failed": 4 << 10,
    "done": 4 << 10,
    "webhook": 64 << 10,
    "log": 8 << 20,
}
"""The names that a machine may post to, and the largest body of each."""

BODY_S = 300.0
"""Seconds in which the body of a post must arrive."""
_NOT_FOUND = Reply(404, "not found\n")


@dataclass(frozen=True, slots=True)
class AppSettings:
    """Settings. `base` is the URL by which machines reach the service, `probe` the text of probe.sh."""

    base: str
    boot_folder: Path
    probe: str
    downloads_at_once: int = 16


def build(settings: AppSettings, attempts: AttemptStore, clock: Clock) -> Starlette:
    """Return the service, for any ASGI server."""
    service = _Service(settings, BootHandlers(attempts, clock))
    return Starlette(
        routes=[
            Route("/boot.ipxe", service.entry),
            Route("/boot/{name}", service.boot),
            Route("/files/{path:path}", service.file),
            Route("/t/{token}/boot.ipxe", service.start),
            Route("/t/{token}/probe.sh", service.probe),
            Route("/t/{token}/files/{path:path}", service.image),
            Route("/t/{token}/{name}", service.document, methods=["GET"]),
            Route("/t/{token}/{name}", service.post, methods=["POST"]),
        ],
        exception_handlers={ClusterctlError: _broken},
    )


class _Service:
    def __init__(self, settings: AppSettings, handlers: BootHandlers) -> None:
        self._settings = settings
        self._handlers = handlers
        self._downloads = files.Downloads(settings.downloads_at_once)

    async def entry(self, request: Request) -> Response:
        del request
        return PlainTextResponse(scripts.entry(self._settings.base))

    async def boot(self, request: Request) -> Response:
        """Return the script of the machine with this card."""
        name, dot, kind = request.path_params["name"].rpartition(".")
        try:
            mac = read_mac(name if dot and kind == "ipxe" else "")
        except ValueError:
            return PlainTextResponse(scripts.nothing("that is no MAC address"), 404)
        serial = request.query_params.get("serial", "")
        script = await run_in_threadpool(self._handlers.boot, self._settings.base, mac, serial)
        return PlainTextResponse(script)

    async def start(self, request: Request) -> Response:
        """Return the script of a running attempt."""
        try:
            mac = read_mac(request.query_params.get("mac", ""))
        except ValueError:
            return _response(_NOT_FOUND)
        token, serial = request.path_params["token"], request.query_params.get("serial", "")
        script = await run_in_threadpool(self._handlers.start_script, self._settings.base, token, mac, serial)
        return PlainTextResponse(script) if script is not None else _response(_NOT_FOUND)

    async def file(self, request: Request) -> Response:
        path = request.path_params["path"]
        return await run_in_threadpool(files.answer, self._settings.boot_folder, path, self._downloads)

    async def image(self, request: Request) -> Response:
        """Return a file to the machine of a running attempt, and record that it asks: it may wait in a queue."""
        if not await run_in_threadpool(self._handlers.image_requested, request.path_params["token"]):
            return _response(_NOT_FOUND)
        return await self.file(request)

    async def probe(self, request: Request) -> Response:
        known = await run_in_threadpool(self._handlers.is_running, request.path_params["token"])
        return PlainTextResponse(self._settings.probe) if known else _response(_NOT_FOUND)

    async def document(self, request: Request) -> Response:
        token, name = request.path_params["token"], request.path_params["name"]
        if name not in DOCUMENTS:
            return _response(_NOT_FOUND)
        content = await run_in_threadpool(self._handlers.document, token, name)
        if content is None:
            return _response(_NOT_FOUND)
        return Response(content, media_type="application/octet-stream")

    async def post(self, request: Request) -> Response:
        """Handle a post of a machine; a body that is too large is refused before it is read completely."""
        token, name = request.path_params["token"], request.path_params["name"]
        most = MAX_BYTES.get(name)
        if most is None or not await run_in_threadpool(self._handlers.may_post, token):
            return _response(_NOT_FOUND)
        try:
            async with asyncio.timeout(BODY_S):
                body = await _body(request, most)
        except (ClientDisconnect, TimeoutError):
            return _response(Reply(400, "the request was cut off\n"))
        if body is None:
            return _response(Reply(413, f"at most {most} bytes\n"))
        host = request.client.host if request.client is not None else ""
        return _response(await run_in_threadpool(self._handlers.post, token, name, body, host))


async def _body(request: Request, most: int) -> bytes | None:
    """Return the body; None where it is larger than `most`."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            return None
    return bytes(content)


def _response(reply: Reply) -> Response:
    return PlainTextResponse(reply.text, reply.status)


async def _broken(request: Request, error: Exception) -> Response:
    """Answer an error of the controller with 503: the machine tries again and sees no details."""
    del request, error
    return PlainTextResponse("not now\n", 503, headers={"Retry-After": "5"})
