"""The HTTP interface of the installer service: plain on the provisioning network, or over TLS where the site boots so.

What needs a record is asked of the run, by a `Call`; the service itself has the boot folder and probe.sh. Secrets and
images need the token of a running attempt; without one the answer is 404. Tokens are part of paths, so no request is
logged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from clusterctl.edges.pxe import files, scripts
from clusterctl.edges.pxe.channel import NOT_FOUND, NOT_NOW, POST_BYTES, Call, ChannelReply, text
from clusterctl.fleet.errors import ParseError
from clusterctl.formats.unified_kernel import unified_kernel

DOCUMENTS = frozenset({"overlay.tar", "user-data", "meta-data", "vendor-data", "network-config", "preseed.cfg"})
CHUNK = 1 << 20
BODY_S = 300.0
"""Seconds in which the body of a post must arrive."""


class InstallRun(Protocol):
    """The run, which knows the attempts."""

    async def ask(self, call: Call) -> ChannelReply:
        """Return its reply; `NOT_NOW` where it does not answer."""
        ...


@dataclass(frozen=True, slots=True)
class AppSettings:
    """Settings. `base` is the URL by which machines reach the service, `probe` the text of probe.sh."""

    base: str
    boot_folder: Path
    probe: str
    downloads_at_once: int = 16


def build(settings: AppSettings, run: InstallRun) -> Starlette:
    """Return the service, for any ASGI server."""
    service = _Service(settings, run)
    return Starlette(
        routes=[
            Route("/boot.ipxe", service.entry),
            Route("/boot/{name}", service.boot),
            Route("/files/{path:path}", service.file),
            Route("/start/{name}", service.start),
            Route("/efi/{name}", service.efi),
            Route("/t/{token}/probe.sh", service.probe),
            Route("/t/{token}/files/{path:path}", service.image),
            Route("/t/{token}/{name}", service.document, methods=["GET"]),
            Route("/t/{token}/{name}", service.post, methods=["POST"]),
        ]
    )


class _Service:
    def __init__(self, settings: AppSettings, run: InstallRun) -> None:
        self._settings = settings
        self._run = run
        self._downloads = files.Downloads(settings.downloads_at_once)

    async def entry(self, request: Request) -> Response:
        del request
        return PlainTextResponse(scripts.entry(self._settings.base))

    async def boot(self, request: Request) -> Response:
        """Return the script of the machine with this card."""
        name, dot, kind = request.path_params["name"].rpartition(".")
        mac = name if dot and kind == "ipxe" else ""
        reply = await self._run.ask(
            Call("boot", mac=_short(mac), serial=_short(request.query_params.get("serial", "")))
        )
        if reply == NOT_FOUND:
            reply = text(404, scripts.nothing("that is no MAC address"))
        return _response(reply)

    async def start(self, request: Request) -> Response:
        """Return the script of the running attempt with this ticket."""
        ticket, dot, kind = request.path_params["name"].rpartition(".")
        if not dot or kind != "ipxe":
            return _response(NOT_FOUND)
        mac, serial = (_short(request.query_params.get(name, "")) for name in ("mac", "serial"))
        return _response(
            await self._run.ask(Call("start", _short(ticket), mac=mac, serial=serial, host=_host(request)))
        )

    async def efi(self, request: Request) -> Response:
        """Return the EFI program of the running attempt with this ticket: the deployer, with its command line."""
        ticket, dot, kind = request.path_params["name"].rpartition(".")
        if not dot or kind != "efi":
            return _response(NOT_FOUND)
        reply = await self._run.ask(Call("efi", _short(ticket), name=request.method, host=_host(request)))
        if reply.status != 200:
            return _response(reply)
        return await run_in_threadpool(_program, self._settings.boot_folder, json.loads(reply.content))

    async def file(self, request: Request) -> Response:
        """Return a boot file to any machine; images need a token."""
        return await self._file(request)

    async def image(self, request: Request) -> Response:
        """Return a file to the machine of a running attempt. The run records that it asks: it may wait in a queue."""
        token = _token(request)
        reply = await self._run.ask(Call("image", token, host=_host(request)))
        return await self._file(request, token) if reply.status == 200 else _response(reply)

    async def _file(self, request: Request, token: str = "") -> Response:
        path = request.path_params["path"]
        return await run_in_threadpool(files.answer, self._settings.boot_folder, path, self._downloads, token)

    async def probe(self, request: Request) -> Response:
        reply = await self._run.ask(Call("probe", _token(request), host=_host(request)))
        return PlainTextResponse(self._settings.probe) if reply.status == 200 else _response(reply)

    async def document(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in DOCUMENTS:
            return _response(NOT_FOUND)
        reply = await self._run.ask(Call("document", _token(request), name=name, host=_host(request)))
        if reply.status != 200:
            return _response(reply)
        return Response(reply.content, media_type="application/octet-stream")

    async def post(self, request: Request) -> Response:
        """Handle a post of a machine; a body that is too large is refused before it is read completely."""
        token, name = _token(request), request.path_params["name"]
        most = POST_BYTES.get(name)
        if most is None:
            return _response(NOT_FOUND)
        permitted = await self._run.ask(Call("may_post", token, host=_host(request)))
        if permitted.status != 200:
            return _response(permitted)
        try:
            async with asyncio.timeout(BODY_S):
                body = await _body(request, most)
        except (ClientDisconnect, TimeoutError):
            return _response(text(400, "the request was cut off\n"))
        if body is None:
            return _response(text(413, f"at most {most} bytes\n"))
        return _response(await self._run.ask(Call("post", token, name=name, body=body, host=_host(request))))


def _program(folder: Path, parts: dict[str, str]) -> Response:
    """Return kernel and initial file system as one EFI program, read while it is sent."""
    found = [files.locate(folder, parts[name]) for name in ("stub", "kernel", "initrd")]
    placed = [one for one in found if one is not None]
    if len(placed) < len(found):
        return _response(NOT_NOW)
    (stub, _), (kernel, kernel_stat), (initrd, initrd_stat) = placed
    try:
        made = unified_kernel(stub.read_bytes(), parts["arguments"], kernel_stat.st_size, initrd_stat.st_size)
    except (OSError, ParseError):
        return _response(NOT_NOW)

    def content() -> Iterator[bytes]:
        yield made.head
        for file, padding in ((kernel, made.kernel_padding), (initrd, made.initrd_padding)):
            with file.open("rb") as opened:
                while block := opened.read(CHUNK):
                    yield block
            yield bytes(padding)

    size = len(made.head) + kernel_stat.st_size + made.kernel_padding + initrd_stat.st_size + made.initrd_padding
    headers = {"Content-Length": str(size)}
    return StreamingResponse(content(), headers=headers, media_type="application/efi")


async def _body(request: Request, most: int) -> bytes | None:
    """Return the body; None where it is larger than `most`."""
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > most:
            return None
    return bytes(content)


MAX_TEXT = 256
"""Characters of a token, a card or a serial; what is longer is none."""


def _short(value: str) -> str:
    return value if len(value) <= MAX_TEXT else ""


def _token(request: Request) -> str:
    return _short(str(request.path_params["token"]))


def _host(request: Request) -> str:
    return request.client.host if request.client is not None else ""


def _response(reply: ChannelReply) -> Response:
    headers = {"Retry-After": "5"} if reply.status == 503 else None
    return PlainTextResponse(reply.content, reply.status, headers=headers)
