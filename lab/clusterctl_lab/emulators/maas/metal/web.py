"""The plain HTTP service for machines during boot, as MAAS's racks provide it. Paths contain tokens, so no request is
logged.
"""

from __future__ import annotations

from importlib.resources import files

from aiohttp import web

from clusterctl_lab.emulators.maas.metal.boot_files import BootFiles
from clusterctl_lab.emulators.maas.metal.boot_service import BootService, Reply

MOST_BYTES = 8 << 20
COMMISSION = files("clusterctl_lab.emulators.maas.metal") / "commission.sh"


def application(boot_service: BootService, boot: BootFiles) -> web.Application:
    """The service, to be run on an address."""
    counter = _Counter(boot_service)
    app = web.Application(client_max_size=MOST_BYTES)
    app.router.add_get("/boot.ipxe", counter.entry)
    app.router.add_get("/boot/{name}", counter.script)
    app.router.add_static("/files", boot.folder)
    app.router.add_get("/t/{token}/probe.sh", counter.probe)
    app.router.add_get("/t/{token}/overlay.tar", counter.overlay)
    app.router.add_post("/t/{token}/{name}", counter.post)
    return app


class _Counter:
    def __init__(self, boot_service: BootService) -> None:
        self._boot_service = boot_service
        self._probe = COMMISSION.read_text()

    async def entry(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text=self._boot_service.entry())

    async def script(self, request: web.Request) -> web.Response:
        mac = request.match_info["name"].removesuffix(".ipxe").replace("-", ":").lower()
        return web.Response(text=self._boot_service.script(mac))

    async def probe(self, request: web.Request) -> web.Response:
        if not self._boot_service.knows(request.match_info["token"]):
            return _response(Reply(404, "not found\n"))
        return web.Response(text=self._probe)

    async def overlay(self, request: web.Request) -> web.Response:
        content = self._boot_service.overlay(request.match_info["token"])
        if content is None:
            return _response(Reply(404, "not found\n"))
        return web.Response(body=content, content_type="application/x-tar")

    async def post(self, request: web.Request) -> web.Response:
        text = (await request.read()).decode(errors="replace")
        return _response(self._boot_service.handle(request.match_info["token"], request.match_info["name"], text))


def _response(reply: Reply) -> web.Response:
    return web.Response(status=reply.status, text=reply.text)
