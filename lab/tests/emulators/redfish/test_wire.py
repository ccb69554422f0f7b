"""What needs a network to be seen: images pushed by multipart, answers that do not arrive, certificates, restarts."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.certificates import LabCa
from clusterctl_lab.emulators.redfish import Serving, serve_bmcs
from clusterctl_lab.firmware import Component, Firmware
from clusterctl_lab.world import World
from lab.tests.emulators.redfish.bmc_kit import BASIC, RESET, SYSTEM, world_of
from tests.ports import reserve_port

ROOT = "/redfish/v1"
PUSH = f"{ROOT}/UpdateService/MultipartUpload"


@dataclass(frozen=True)
class Site:
    """Served BMCs; `client` believes the lab's CA and sends credentials."""

    world: World
    port: int
    client: aiohttp.ClientSession

    def url(self, path: str, name: str = "node001") -> str:
        return f"https://{self.world.machines[name].bmc.address}:{self.port}{path}"

    async def get(self, path: str, name: str = "node001") -> Any:
        async with self.client.get(self.url(path, name)) as answer:
            assert answer.status == 200
            return await answer.json(content_type=None)

    async def behave(self, *quirks: BmcQuirk) -> None:
        machine = self.world.machines["node001"]
        await self.world.replace(replace(machine, bmc=replace(machine.bmc, quirks=frozenset(quirks))))


def play(folder: Path, scene: Callable[[Site], Coroutine[Any, Any, None]], count: int = 1) -> None:
    async def run() -> None:
        world, ca = world_of(count), LabCa(folder / "tls", "wire")
        trust = ssl.create_default_context(cafile=str(ca.ca_file))
        port = reserve_port(*(machine.bmc.address for machine in world.machines.values()))
        servers = await serve_bmcs(world, ca.certificate_for, port, Serving(expired=ca.expired_certificate_for))
        connector = aiohttp.TCPConnector(ssl=trust)
        try:
            async with aiohttp.ClientSession(connector=connector, headers={"Authorization": BASIC}) as client:
                await scene(Site(world, port, client))
        finally:
            await servers.close()

    asyncio.run(asyncio.wait_for(run(), 600))


def multipart(image: bytes) -> aiohttp.FormData:
    form = aiohttp.FormData()
    form.add_field("UpdateParameters", json.dumps({"Targets": []}), content_type="application/json")
    form.add_field("UpdateFile", image, filename="image.bin", content_type="application/octet-stream")
    return form


def test_an_image_of_some_megabytes_is_pushed(tmp_path: Path) -> None:
    """Every byte of the file arrives, also those that look like line ends; the task reports that it was understood."""

    async def scene(site: Site) -> None:
        image = Firmware(Component.BMC, "7.10.50.00").image() + bytes(range(256)) * (3 * 4096)
        async with site.client.post(site.url(PUSH), data=multipart(image)) as answer:
            assert answer.status == 202
            location = answer.headers["Location"]
        async with asyncio.timeout(600):
            await until(site, location, lambda task: task["TaskState"] == "Completed")
        assert site.world.machines["node001"].bmc.firmware == "7.10.50.00"

    play(tmp_path, scene)


async def until(site: Site, path: str, done: Callable[[Any], bool]) -> None:
    """Asked again while it is not so, and while the BMC restarts."""
    while True:
        with contextlib.suppress(aiohttp.ClientConnectionError, ssl.SSLError):
            if done(await site.get(path)):
                return
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("body", [b"", b"--x\r\nnonsense", b"--x--\r\n"])
def test_a_broken_multipart_body_is_refused(tmp_path: Path, body: bytes) -> None:
    """400, and the BMC goes on."""

    async def scene(site: Site) -> None:
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        async with site.client.post(site.url(PUSH), data=body, headers=headers) as answer:
            assert answer.status == 400
        await site.get(SYSTEM)

    play(tmp_path, scene)


def test_a_restart_takes_the_bmc_off_the_network(tmp_path: Path) -> None:
    """Manager.Reset is answered; then no socket listens; then it answers again, and its neighbour answered all the time."""

    async def scene(site: Site) -> None:
        site.world.delays = replace(site.world.delays, bmc_restart=0.5)
        manager = "/redfish/v1/Managers/iDRAC.Embedded.1/Actions/Manager.Reset"
        async with site.client.post(site.url(manager), json={"ResetType": "GracefulRestart"}) as answer:
            assert answer.status == 204
        refused = False
        async with asyncio.timeout(600):
            while not refused:
                await site.get(SYSTEM, "node002")
                try:
                    await site.get(SYSTEM)
                except (aiohttp.ClientConnectionError, ssl.SSLError):
                    refused = True
            await until(site, SYSTEM, lambda _: True)

    play(tmp_path, scene, count=2)


def test_a_body_that_is_cut_and_an_answer_that_is_lost(tmp_path: Path) -> None:
    """The client sees the connection end; what it asked for was done."""

    async def scene(site: Site) -> None:
        await site.behave(BmcQuirk.CUTS_BODIES)
        with pytest.raises(aiohttp.ClientPayloadError):
            await ten_times(site, SYSTEM)
        await site.behave(BmcQuirk.LOSES_ANSWERS)
        with pytest.raises(aiohttp.ClientConnectionError):
            await site.client.post(site.url(RESET), json={"ResetType": "On"})
        await site.behave()
        assert (await site.get(SYSTEM))["PowerState"] == "On"

    play(tmp_path, scene)


async def ten_times(site: Site, path: str) -> None:
    for _ in range(10):
        await site.get(path)


def test_a_second_request_on_a_connection_is_dropped(tmp_path: Path) -> None:
    """Each on a connection of its own is answered."""

    async def scene(site: Site) -> None:
        await site.behave(BmcQuirk.CLOSES_REUSED)
        url, alone = site.url(SYSTEM), {"Connection": "close"}
        for _ in range(2):
            async with site.client.get(url, headers=alone) as answer:
                assert answer.status == 200
        async with site.client.get(url) as answer:
            await answer.read()
        with pytest.raises(aiohttp.ClientConnectionError):
            await site.client.post(site.url(RESET), json={"ResetType": "On"})
        assert not site.world.states["node001"].power

    play(tmp_path, scene)


@pytest.mark.parametrize("quirk", [BmcQuirk.OTHER_CERTIFICATE, BmcQuirk.EXPIRED_CERTIFICATE])
def test_certificates_change_with_the_quirk(tmp_path: Path, quirk: BmcQuirk) -> None:
    """While the machine has the quirk no client that verifies certificates connects; its neighbour is not touched."""

    async def scene(site: Site) -> None:
        await site.get(SYSTEM)
        await site.behave(quirk)
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await site.get(SYSTEM)
        await site.get(SYSTEM, "node002")
        await site.behave()
        await site.get(SYSTEM)

    play(tmp_path, scene, count=2)
