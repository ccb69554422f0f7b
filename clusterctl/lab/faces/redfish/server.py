"""Serves all BMCs of a lab from one asyncio loop: one TLS listener per machine, on that machine's BMC address."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable

from aiohttp import web

from clusterctl.lab.faces.redfish.bmc import Answer, Bmc, Request
from clusterctl.lab.faces.redfish.dell import DELL
from clusterctl.lab.faces.redfish.profile import Profile
from clusterctl.lab.world import World

HEADERS = {
    "Content-Type": "application/json;odata.metadata=minimal;charset=utf-8",
    "OData-Version": "4.0",
    "Cache-Control": "no-cache",
}
CLOSE_SECONDS = 1.0


class _Listener:
    """One BMC's socket."""

    def __init__(self, bmc: Bmc) -> None:
        self._bmc = bmc
        self._http = web.Server(self._handle, access_log=None)
        self._socket: asyncio.Server | None = None

    async def open(self, address: str, port: int, tls: ssl.SSLContext) -> None:
        self._socket = await asyncio.get_running_loop().create_server(self._http, address, port, ssl=tls)

    async def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        await self._http.shutdown(CLOSE_SECONDS)
        await self._bmc.close()

    async def _handle(self, http: web.BaseRequest) -> web.Response:
        request = Request(
            method=http.method,
            path=http.path,
            body=await http.read(),
            token=http.headers.get("X-Auth-Token", ""),
            authorization=http.headers.get("Authorization", ""),
            client=http.remote or "",
        )
        return _response(self._bmc.answer(request))


def _response(answer: Answer) -> web.Response:
    if answer.body is None:
        return web.Response(status=answer.status, headers={"OData-Version": "4.0", **answer.headers})
    body = json.dumps(answer.body).encode()
    return web.Response(status=answer.status, body=body, headers={**HEADERS, **answer.headers})


class BmcServers:
    """The running BMCs of a lab."""

    def __init__(self, listeners: tuple[_Listener, ...]) -> None:
        self._listeners = listeners

    async def close(self) -> None:
        """Stop listening, drop connections, abandon resets in progress."""
        await asyncio.gather(*(listener.close() for listener in self._listeners))


async def serve_bmcs(
    world: World, tls: Callable[[str], ssl.SSLContext], port: int = 443, profile: Profile = DELL
) -> BmcServers:
    """Start the BMC of every machine in `world`, each on `machine.bmc.address` with the certificate that `tls` gives
    for that address. Returns once all of them listen; raises OSError, with none left listening, when one cannot.
    """
    listeners: list[_Listener] = []
    try:
        for name, machine in world.machines.items():
            listener = _Listener(Bmc(world, name, profile))
            listeners.append(listener)
            await listener.open(machine.bmc.address, port, tls(machine.bmc.address))
    except BaseException:
        await BmcServers(tuple(listeners)).close()
        raise
    return BmcServers(tuple(listeners))
