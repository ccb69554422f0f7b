"""The BMCs as a client meets them: TLS, many at once, closing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from clusterctl_lab.emulators.redfish import BmcServers, serve_bmcs
from clusterctl_lab.machine import BmcCondition
from clusterctl_lab.world import World
from lab.tests.emulators.redfish.bmc_kit import BASIC, PASSWORD, SESSIONS, SYSTEM, TestCa, world_of
from tests.ports import reserve_port

SHORTER_THAN_AIOHTTP_S = 45
"""Less than the minute that aiohttp's runner waits by default for open connections (`shutdown_timeout`)."""
Scene = Callable[[int, BmcServers], Coroutine[Any, Any, None]]


def serve(world: World, ca: TestCa, scene: Scene) -> None:
    """Play a scene while the BMCs of a world are served; nothing is left running."""

    async def run() -> None:
        port = reserve_port(*(machine.bmc.address for machine in world.machines.values()))
        servers = await serve_bmcs(world, ca.server_context, port)
        try:
            await scene(port, servers)
        finally:
            await servers.close()

    asyncio.run(asyncio.wait_for(run(), 600))


def test_tls_is_verified_against_the_ca(tmp_path: Path) -> None:
    """A client that trusts the lab's CA gets in; one that does not, and one that asks for another name, do not."""
    world, ca = world_of(), TestCa(tmp_path)
    address = world.machines["node001"].bmc.address

    async def scene(port: int, _: BmcServers) -> None:
        async with aiohttp.ClientSession() as client:
            async with client.get(f"https://{address}:{port}/redfish/v1/", ssl=ca.client_context()) as answer:
                assert answer.status == 200
                assert answer.headers["OData-Version"] == "4.0"
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await client.get(f"https://{address}:{port}/redfish/v1/")
            with pytest.raises(aiohttp.ClientConnectorCertificateError):
                await client.get(
                    f"https://{address}:{port}/redfish/v1/", ssl=ca.client_context(), server_hostname="127.88.1.77"
                )

    serve(world, ca, scene)


def test_a_hundred_bmcs_answer_at_once(tmp_path: Path) -> None:
    """100 BMCs listen, each with its own certificate, and each answers for its own machine."""
    world, ca = world_of(100), TestCa(tmp_path)

    async def visit(client: aiohttp.ClientSession, base: str) -> str:
        login = {"UserName": "root", "Password": PASSWORD}
        async with client.post(base + SESSIONS, json=login) as answer:
            assert answer.status == 201
            headers = {"X-Auth-Token": answer.headers["X-Auth-Token"]}
            location = answer.headers["Location"]
        async with client.get(base + SYSTEM, headers=headers) as answer:
            tag = str((await answer.json())["SKU"])
        async with client.delete(base + location, headers=headers) as answer:
            assert answer.status == 204
        return tag

    async def scene(port: int, _: BmcServers) -> None:
        connector = aiohttp.TCPConnector(ssl=ca.client_context(), limit=0)
        async with aiohttp.ClientSession(connector=connector) as client:
            bases = [f"https://{machine.bmc.address}:{port}" for machine in world.machines.values()]
            tags = await asyncio.gather(*(visit(client, base) for base in bases))
        assert list(tags) == [machine.serial for machine in world.machines.values()]

    serve(world, ca, scene)


def test_head_and_basic_authentication(tmp_path: Path) -> None:
    """HEAD answers like GET without a body; Basic authentication needs no session."""
    world, ca = world_of(), TestCa(tmp_path)
    base = f"https://{world.machines['node001'].bmc.address}"

    async def scene(port: int, _: BmcServers) -> None:
        connector = aiohttp.TCPConnector(ssl=ca.client_context())
        async with aiohttp.ClientSession(connector=connector, headers={"Authorization": BASIC}) as client:
            async with client.head(f"{base}:{port}{SYSTEM}") as answer:
                assert (answer.status, await answer.read()) == (200, b"")
            async with client.get(f"{base}:{port}{SYSTEM}/nothing") as answer:
                assert answer.status == 404

    serve(world, ca, scene)


def test_closing_frees_the_port_though_clients_hold_connections(tmp_path: Path) -> None:
    """After close no socket listens, and close does not wait for idle clients."""
    world, ca = world_of(2), TestCa(tmp_path)
    address = world.machines["node002"].bmc.address

    async def scene(port: int, servers: BmcServers) -> None:
        connector = aiohttp.TCPConnector(ssl=ca.client_context())
        async with aiohttp.ClientSession(connector=connector) as client:
            async with client.get(f"https://{address}:{port}/redfish/v1/") as answer:
                assert answer.status == 200
            await asyncio.wait_for(servers.close(), SHORTER_THAN_AIOHTTP_S)
            with pytest.raises(aiohttp.ClientConnectorError):
                await client.get(f"https://{address}:{port}/redfish/v1/")

    serve(world, ca, scene)


def test_when_one_cannot_listen_none_does(tmp_path: Path) -> None:
    """A taken address is an error at start, and the BMCs that did start are closed again."""
    world, ca = world_of(2), TestCa(tmp_path)
    first, second = (machine.bmc.address for machine in world.machines.values())

    async def scene() -> None:
        with socket.socket() as taken:
            taken.bind((second, 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(OSError, match=r"(?i)address already in use"):
                await serve_bmcs(world, ca.server_context, port)
            with socket.socket() as free:
                free.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                free.bind((first, port))

    asyncio.run(asyncio.wait_for(scene(), 600))


def test_one_that_comes_dead_listens_when_it_is_repaired(tmp_path: Path) -> None:
    """Its neighbour answers all the while; what hangs keeps its listener and lets closing through."""
    world, ca = world_of(2), TestCa(tmp_path)
    whole, other = world.machines.values()
    dead, hung = (
        replace(whole, bmc=replace(whole.bmc, condition=condition))
        for condition in (BmcCondition.DEAD, BmcCondition.HANGS)
    )
    world.machines[whole.name] = dead

    async def scene(port: int, servers: BmcServers) -> None:
        url = f"https://{{}}:{port}/redfish/v1/"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ca.client_context())) as client:
            for state in (dead, hung, whole):
                await world.replace(state)
                async with client.get(url.format(other.bmc.address)) as answer:
                    assert answer.status == 200
                if state is dead:
                    with pytest.raises(aiohttp.ClientConnectorError):
                        await client.get(url.format(whole.bmc.address))
                elif state is hung:
                    with pytest.raises(TimeoutError):
                        await client.get(url.format(whole.bmc.address), timeout=aiohttp.ClientTimeout(total=0.3))
                else:
                    async with client.get(url.format(whole.bmc.address)) as answer:
                        assert answer.status == 200
            await world.replace(hung)
            waiting = asyncio.create_task(client.get(url.format(whole.bmc.address)))
            await asyncio.sleep(0)
            await asyncio.wait_for(servers.close(), SHORTER_THAN_AIOHTTP_S)
            with pytest.raises(aiohttp.ClientError):
                await waiting

    serve(world, ca, scene)
