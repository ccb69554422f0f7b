"""One BMC's socket: as the BMC's condition has it, with the certificate that its quirks have it show."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from weakref import WeakSet

from aiohttp import web

from clusterctl_lab.emulators.redfish import wire
from clusterctl_lab.emulators.redfish.bmc import Bmc
from clusterctl_lab.emulators.redfish.quirks import Certificate, certificate_of
from clusterctl_lab.machine import BmcCondition, Machine
from clusterctl_lab.sockets import OpenSocket, bound, plain

log = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0
Tls = Callable[[Certificate], ssl.SSLContext]


class Listener:
    """Listens on `place`, on a socket that `opened` opens; `tls` makes the context for a certificate."""

    def __init__(self, bmc: Bmc, place: tuple[str, int], tls: Tls, opened: OpenSocket = plain) -> None:
        self.bmc = bmc
        self._place = place
        self._opened = opened
        self._tls = tls
        self._shown: Certificate | None = None
        self._http: web.Server | None = None
        self._socket: asyncio.Server | None = None
        self._known: WeakSet[asyncio.Transport] = WeakSet()
        self._answers = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        bmc.absence = self.stay_away

    async def show(self, machine: Machine) -> None:
        """Listen and answer, listen and not answer, or neither; OSError where it cannot listen."""
        condition, certificate = machine.bmc.condition, certificate_of(machine)
        async with self._one_at_a_time:
            if condition is BmcCondition.WORKS:
                self._answers.set()
            else:
                self._answers.clear()
            if condition is BmcCondition.DEAD or certificate is not self._shown:
                await self._silence()
            if condition is not BmcCondition.DEAD and self._socket is None:
                await self._listen(certificate)

    async def stay_away(self, seconds: float) -> None:
        """End all connections and refuse new ones for a while: the BMC restarts."""
        async with self._one_at_a_time:
            if self._socket is None or self._shown is None:
                return
            await self._silence()
            await asyncio.sleep(seconds)
            await self._listen(self._shown)

    async def close(self) -> None:
        await self.bmc.close()
        async with self._one_at_a_time:
            await self._silence()

    async def _listen(self, certificate: Certificate) -> None:
        self._http = web.Server(self._handle, access_log=None)
        loop = asyncio.get_running_loop()
        tls = self._tls(certificate)
        own = await asyncio.to_thread(bound, self._opened, *self._place)
        self._socket = await loop.create_server(self._http, sock=own, ssl=tls)
        self._shown = certificate

    async def _silence(self) -> None:
        """Stop listening; drop the connections that there are."""
        if self._socket is not None:
            self._socket.close()
        if self._http is not None:
            await self._http.shutdown(CLOSE_SECONDS)
        self._socket = self._http = None

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        await self._answers.wait()
        reused = http.transport in self._known
        if http.transport is not None:
            self._known.add(http.transport)
        request = await wire.read(http, reused=reused)
        answer = self.bmc.answer(request)
        if request.writes:
            log.info("BMC %s: %s %s by %s: %d", self._place[0], http.method, http.path, request.client, answer.status)
        if answer.delay:
            await asyncio.sleep(answer.delay)
        return await wire.deliver(http, answer)
