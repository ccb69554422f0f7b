"""MAAS's Redfish power driver: switches machines through their BMCs, over TLS, with Basic authentication.

The order is MAAS's: ForceOff if the machine is on, boot once from the network, On. Sources: DMTF DSP0266, and MAAS's
own driver (provisioningserver/drivers/power/redfish.py). A failed request is retried five times, with waits that
double, in a thirtieth of MAAS's time. A rejected login is retried so too up to MAAS 3.5, and the whole action six times
more (`PowerDriver.perform_power`): 42 logins; since 3.6 never. A timeout is never retried, which would take the lab
minutes. Unlike MAAS's driver it supports every vendor of the lab: see `boot_once_from_network`.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import ssl
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Protocol, Self

import aiohttp

from clusterctl_lab.sockets import OpenSocket, factory, plain

log = logging.getLogger(__name__)

Parameters = Mapping[str, str]
TIMEOUT = aiohttp.ClientTimeout(total=20)
POLL_SECONDS = 0.1
OFF_POLLS = 200
RETRY_SECONDS = tuple((2**attempt - 1) / 2 / 30 for attempt in range(1, 6))
"""MAAS's own are 0.5, 1.5, 3.5, 7.5 and 15.5 (MAX_REQUEST_RETRIES, since 3.3)."""


ACTION_SECONDS = tuple(seconds / 30 for seconds in (1, 2, 2, 4, 6, 8))
"""MAAS's own waits between two tries of a power action are 1, 2, 2, 4, 6 and 8 s (PowerDriver.wait_time)."""


class PowerError(Exception):
    """The BMC is unreachable, refused, or did not act."""


class _RefusedError(PowerError):
    """The BMC does not accept the request."""


class _LoginError(PowerError):
    """The BMC rejects the login."""


class _FatalError(PowerError):
    """A retry cannot succeed."""


class PowerDriver(Protocol):
    """Switches a machine. `parameters` are the machine's `power_parameters`. All raise `PowerError`."""

    async def on(self, parameters: Parameters) -> None:
        """Boot from the network: off first if need be."""
        ...

    async def off(self, parameters: Parameters) -> None:
        """Switch off, and wait until the BMC reports off."""
        ...

    async def restart(self, parameters: Parameters) -> None:
        """Reset a machine that is on."""
        ...

    async def query(self, parameters: Parameters) -> str:
        """`on` or `off`."""
        ...


class RedfishPower:
    """The driver. Unlike MAAS's own, it verifies the BMC's certificate.

    `retries_logins`: whether a login that a BMC rejects is tried again, as up to MAAS 3.5. `opened` opens the socket to
    a BMC.
    """

    def __init__(self, tls: ssl.SSLContext, opened: OpenSocket = plain) -> None:
        self._tls = tls
        self._opened = opened
        self.retries_logins: Callable[[], bool] = lambda: False

    async def on(self, parameters: Parameters) -> None:
        await self._persistently(self._on, parameters)

    async def off(self, parameters: Parameters) -> None:
        await self._persistently(self._off, parameters)

    async def _persistently(self, action: Callable[[Parameters], Awaitable[None]], parameters: Parameters) -> None:
        for wait in (*(ACTION_SECONDS if self.retries_logins() else ()), None):
            try:
                await action(parameters)
            except _LoginError:
                if wait is None:
                    raise
                await asyncio.sleep(wait)
            else:
                return

    def _bmc(self, parameters: Parameters) -> _Bmc:
        return _Bmc(parameters, self._tls, self._opened, retries_logins=self.retries_logins())

    async def _on(self, parameters: Parameters) -> None:
        async with self._bmc(parameters) as bmc:
            if await bmc.power() == "on":
                await bmc.reset("ForceOff")
                await bmc.wait_until_off()
            await bmc.boot_once_from_network()
            await bmc.reset("On")

    async def _off(self, parameters: Parameters) -> None:
        async with self._bmc(parameters) as bmc:
            if await bmc.power() == "off":
                return
            await bmc.reset("ForceOff")
            await bmc.wait_until_off()

    async def restart(self, parameters: Parameters) -> None:
        async with self._bmc(parameters) as bmc:
            await bmc.reset("ForceRestart")

    async def query(self, parameters: Parameters) -> str:
        async with self._bmc(parameters) as bmc:
            return await bmc.power()


class _Bmc:
    """One BMC for the length of one power action."""

    def __init__(
        self, parameters: Parameters, tls: ssl.SSLContext, opened: OpenSocket, *, retries_logins: bool
    ) -> None:
        self._retries_logins = retries_logins
        self._base = f"https://{parameters.get('power_address', '')}"
        self._node_id = parameters.get("node_id", "")
        login = f"{parameters.get('power_user', '')}:{parameters.get('power_pass', '')}"
        self._http = aiohttp.ClientSession(
            headers={"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"},
            connector=aiohttp.TCPConnector(ssl=tls, force_close=True, socket_factory=factory(opened)),
            timeout=TIMEOUT,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._http.close()

    async def power(self) -> str:
        """`on` also while the machine is on its way."""
        state = (await self._call("GET", await self._system())).get("PowerState")
        return "off" if state == "Off" else "on"

    async def reset(self, kind: str) -> None:
        await self._call("POST", f"{await self._system()}/Actions/ComputerSystem.Reset", {"ResetType": kind})

    async def boot_once_from_network(self) -> None:
        """Set the one-time network boot: at the settings object where one exists, with the ETag that was read, and
        without the mode where the BMC does not accept it.
        """
        boot = {"BootSourceOverrideEnabled": "Once", "BootSourceOverrideTarget": "Pxe"}
        system = await self._call("GET", await self._system())
        target = await self._boot_target(system)
        try:
            await self._patch(target, {"Boot": {**boot, "BootSourceOverrideMode": "UEFI"}})
        except _RefusedError:
            await self._patch(target, {"Boot": boot})

    async def _boot_target(self, system: Mapping[str, Any]) -> str:
        settings = system.get("@Redfish.Settings", {}).get("SettingsObject", {}).get("@odata.id")
        return str(settings) if settings else await self._system()

    async def _patch(self, path: str, body: Mapping[str, Any]) -> None:
        """With the resource's ETag where that can match: a weak one never does (RFC 9110, section 13.1.1)."""
        etag = str((await self._call("GET", path)).get("@odata.etag", "W/"))
        await self._call("PATCH", path, body, {} if etag.startswith("W/") else {"If-Match": etag})

    async def wait_until_off(self) -> None:
        """Wait until the machine is off, for at most 20 s: a BMC answers before it acts."""
        for _ in range(OFF_POLLS):
            if await self.power() == "off":
                return
            await asyncio.sleep(POLL_SECONDS)
        raise PowerError("BMC never transitioned from on to off.")

    async def _system(self) -> str:
        """The System to power: the one that was named, else the first (as MAAS does)."""
        if not self._node_id:
            members = (await self._call("GET", "/redfish/v1/Systems/")).get("Members") or []
            if not members:
                raise PowerError("BMC shows no system")
            self._node_id = str(members[0]["@odata.id"]).rstrip("/").rsplit("/", 1)[-1]
        return f"/redfish/v1/Systems/{self._node_id}"

    async def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, headers: Parameters | None = None
    ) -> dict[str, Any]:
        for wait in RETRY_SECONDS:
            try:
                return await self._once(method, path, body, headers)
            except (_RefusedError, _FatalError):
                raise
            except PowerError as error:
                if isinstance(error, _LoginError) and not self._retries_logins:
                    raise
                log.debug("%s %s: %s; again in %.2f s", method, path, error, wait)
                await asyncio.sleep(wait)
        return await self._once(method, path, body, headers)

    async def _once(
        self, method: str, path: str, body: Mapping[str, Any] | None, headers: Parameters | None
    ) -> dict[str, Any]:
        url = f"{self._base}{path}"
        try:
            async with self._http.request(method, url, json=body, headers=headers, allow_redirects=False) as answer:
                if answer.status in (401, 403):
                    raise _LoginError("Could not contact BMC: authorization failed")
                if answer.status == HTTPStatus.BAD_REQUEST:
                    raise _RefusedError("Could not contact BMC: Redfish request failed with response status code: 400.")
                if answer.status >= 300:
                    raise PowerError(
                        f"Could not contact BMC: Redfish request failed with response status code: {answer.status}."
                    )
                return await answer.json() if answer.status != 204 else {}
        except TimeoutError as error:
            raise _FatalError("Could not contact BMC: timed out") from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise PowerError(f"Could not contact BMC: {error}") from error
