"""Serves the lab's MAAS over HTTPS."""

from __future__ import annotations

import asyncio
import json
import logging
import ssl
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web
from multidict import MultiDict

from clusterctl_lab import markers
from clusterctl_lab.emulators.maas.bmc import RedfishPower
from clusterctl_lab.emulators.maas.call import PREFIX, Call, Text
from clusterctl_lab.emulators.maas.faults import Failure, Faults
from clusterctl_lab.emulators.maas.oauth import Keys, User
from clusterctl_lab.emulators.maas.refusal import RefusedError
from clusterctl_lab.emulators.maas.service import Service
from clusterctl_lab.maas_quirk import MaasQuirk
from clusterctl_lab.machine import Machine
from clusterctl_lab.partners import NetbootAnswer
from clusterctl_lab.sockets import OpenSocket, plain
from clusterctl_lab.world import World

log = logging.getLogger(__name__)

CLOSE_SECONDS = 1.0
JSON = "application/json; charset=utf-8"
FORMS = ("multipart/form-data", "application/x-www-form-urlencoded")
HEADERS = {"Vary": "Authorization, Cookie", **markers.HTTP_HEADERS}


class LabMaas:
    """A running MAAS: the world's `Provisioner`. `faults` adds misbehaviour; `requests` counts requests by method,
    resource and operation.
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        self.requests: Counter[str] = Counter()
        self._http = web.Server(self._handle, access_log=None)
        self._socket: asyncio.Server | None = None
        self._endpoint: tuple[str, int, ssl.SSLContext] | None = None

    @property
    def faults(self) -> Faults:
        return self.service.faults

    async def netboot(self, machine: Machine) -> NetbootAnswer:
        return await self.service.boot.netboot(machine)

    async def open(self, address: str, port: int, tls: ssl.SSLContext) -> None:
        self._endpoint = (address, port, tls)
        self._socket = await asyncio.get_running_loop().create_server(self._http, address, port, ssl=tls)

    async def machine_changed(self, _machine: Machine) -> None:
        """Start or stop listening, as the machines' quirks require."""
        refuses = self.service.lifecycle.anywhere(MaasQuirk.REGION_REFUSES)
        if refuses and self._socket is not None:
            self._socket.close()
            self._socket = None
        elif not refuses and self._socket is None and self._endpoint is not None:
            await self.open(*self._endpoint)

    async def close(self) -> None:
        """Stop listening and cancel all operations in progress."""
        if self._socket is not None:
            self._socket.close()
        await self._http.shutdown(CLOSE_SECONDS)
        await self.service.lifecycle.background.close()

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        for quirk, (status, title) in AWAY.items():
            if self.service.lifecycle.anywhere(quirk):
                return _page(status, title)
        call = None
        try:
            call = await _parse(http, self.service)
            resource = http.path.removeprefix(PREFIX).split("/")[1]
            self.requests[" ".join(filter(None, (http.method, resource, call.op)))] += 1
            failure = self.faults.next_answer(call.op or call.method)
            self.faults.check_busy(failure)
            early = self._unsent(http, call, failure)
            answer = early or _response(await self.service.answer(call))
        except RefusedError as refused:
            self._log_write(http, call, refused.status)
            return _refusal(refused)
        self._log_write(http, call, answer.status)
        return _late(failure) or _cut(http, answer, cut=failure is Failure.LOST)

    def _log_write(self, http: web.BaseRequest, call: Call | None, status: int) -> None:
        """Log a request that may change something: on which machine, and who sent it."""
        if http.method not in ("GET", "HEAD"):
            named = self.service.named(call) if call is not None else ""
            log.info("MAAS %s: %s %s by %s: %d", named, http.method, http.path_qs, http.remote, status)

    def _unsent(self, http: web.BaseRequest, call: Call, failure: Failure | None) -> web.Response | None:
        """Return the answer to a request that does not reach MAAS; None where it does."""
        if failure is Failure.UNSENT:
            return _cut(http, web.Response(status=500), cut=True)
        if failure is Failure.HTML or self.service.answers_html(call):
            return _page(500, "Server Error (500)")
        return None


AWAY = {
    MaasQuirk.REGION_AWAY: (502, "502 Bad Gateway"),
    MaasQuirk.REGION_AWAY_HAPROXY: (503, "503 Service Unavailable"),
}


def _late(failure: Failure | None) -> web.Response | None:
    """An error in place of the answer to what was done."""
    if failure is Failure.GATEWAY_TIMEOUT:
        return _page(504, "504 Gateway Time-out")
    if failure is Failure.BREAKDOWN:
        return web.Response(status=500, text="Unable to power on the machine.", content_type="text/plain")
    return None


def _cut(http: web.BaseRequest, answer: web.Response, *, cut: bool) -> web.Response:
    if cut and http.transport is not None:
        http.transport.abort()
    return answer


async def serve_maas(
    world: World,
    tls: Callable[[str], ssl.SSLContext],
    api_key: str,
    *,
    port: int = 5443,
    bmc_ca: Path,
    opened: OpenSocket = plain,
) -> LabMaas:
    """Start the lab's MAAS on `world.layout.maas` and make it the world's provisioner. `api_key` is the administrator's
    `consumer:token:secret`; `bmc_ca` the CA that BMCs' certificates are verified against; `opened` opens the
    sockets to them.
    """
    power = RedfishPower(ssl.create_default_context(cafile=str(bmc_ca)), opened)
    maas = LabMaas(Service(world, Keys([User("admin", api_key, admin=True)]), power))
    power.retries_logins = lambda: maas.faults.retries_logins
    await maas.open(world.layout.maas, port, tls(world.layout.maas))
    world.provisioner = maas
    world.on_power(maas.service.boot.power_changed)
    world.on_change(maas.machine_changed)
    return maas


async def _parse(http: web.BaseRequest, service: Service) -> Call:
    """Raises `UnauthorisedError` for a bad key; no key at all is anonymous."""
    if http.path.startswith("/MAAS/api/1.0/"):
        raise RefusedError(410, "The 1.0 API is no longer available. Please use API version 2.0.")
    if not http.path.startswith(PREFIX):
        raise RefusedError(404, f"Unknown API endpoint: {http.path}.")
    user = service.keys.user(http.headers.get("Authorization", ""))
    if user is not None and service.lifecycle.anywhere(MaasQuirk.NO_RIGHTS):
        user = replace(user, admin=False)
    form, body = await _body(http)
    foreign = http.can_read_body and body is None and http.content_type not in FORMS
    return Call(
        service=service,
        method=http.method,
        path=http.path,
        query=MultiDict(http.query),
        form=form,
        json=body,
        foreign_body=foreign,
        user=user,
    )


async def _body(http: web.BaseRequest) -> tuple[MultiDict[str], Mapping[str, Any] | None]:
    """Return the form and the JSON object of a request: at most one of them has content."""
    form: MultiDict[str] = MultiDict()
    if http.content_type in FORMS:
        posted = await http.post()
        form.extend((name, value) for name, value in posted.items() if isinstance(value, str))
    elif http.content_type == "application/json":
        return form, _object(await http.read())
    return form, None


def _page(status: int, title: str) -> web.Response:
    """A web server's or framework's own page: nothing that MAAS has written."""
    page = f"<!DOCTYPE html>\n<html><head><title>{title}</title></head><body><h1>{title}</h1></body></html>"
    return web.Response(status=status, text=page, content_type="text/html")


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise RefusedError(400, "Invalid JSON") from error
    return value if isinstance(value, dict) else {}


def _response(result: Any) -> web.Response:
    if result is None:
        return web.Response(status=204, headers={**HEADERS, "Content-Type": "text/plain"})
    if isinstance(result, Text):
        return web.Response(text=result.text, content_type="text/plain", headers=HEADERS)
    return web.Response(body=json.dumps(result).encode(), headers={**HEADERS, "Content-Type": JSON})


def _refusal(refused: RefusedError) -> web.Response:
    headers = {**HEADERS, **refused.headers}
    if isinstance(refused.content, str):
        return web.Response(
            status=refused.status, text=refused.content, content_type=refused.content_type, headers=headers
        )
    body = json.dumps(refused.content).encode()
    return web.Response(status=refused.status, body=body, headers={**headers, "Content-Type": JSON})
