"""Keeps the simulated fabric as the world is: whose hosts run, and where their cables are plugged in."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl.lab.faces.fabric import topology
from clusterctl.lab.faces.fabric.simulator import Simulator
from clusterctl.lab.faces.fabric.subnet_manager import SubnetManager
from clusterctl.lab.faces.fabric.tools import write_tools
from clusterctl.lab.machine import Machine
from clusterctl.lab.world import World


class LabFabric:
    """ibsim, OpenSM, and the tools under `state_dir/bin`: `await fabric.start(world, state_dir)`, then `close()`.

    A host's links are down while it does not run. Cables move as soon as the world says so, and no tool sees a cable
    half-way: whoever reads waits on the lock that is held meanwhile.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._plugged: frozenset[topology.Cable] = frozenset()
        self._adapters: tuple[topology.Adapter, ...] = ()
        self._closed = False

    async def start(self, world: World, state_dir: Path) -> None:
        """Bring the fabric up as the world is now, and follow it from here on."""
        state_dir = await asyncio.to_thread(state_dir.resolve)
        folder = state_dir / "fabric"
        folder.mkdir(parents=True, exist_ok=True)
        self._world = world
        self._lock_file = folder / "lock"
        self._switches = topology.switches(world.machines.values())
        self._manager_at = f"S-{self._switches[topology.spine(0)].guid}"
        socket = f"clusterctl-ib-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
        self._simulator = Simulator(folder, socket)
        self._manager = SubnetManager(folder, socket)
        write_tools(state_dir / "bin", folder / "scratch", self._lock_file, socket=socket, node=self._manager_at)
        try:
            await self._follow()
        except BaseException:
            await self.close()
            raise
        world.on_power(self._power_changed)
        world.on_change(self._machine_changed)

    async def close(self) -> None:
        """End both processes; the tools say afterwards that the fabric is not running."""
        self._closed = True
        await self._manager.close()
        await self._simulator.close()

    async def _power_changed(self, machine: Machine, on: bool) -> None:
        del machine, on
        await self._follow()

    async def _machine_changed(self, machine: Machine) -> None:
        del machine
        await self._follow()

    async def _follow(self) -> None:
        """Make the fabric what the world is; other devices than before (a new adapter) need a new simulator."""
        async with self._turn, self._exclusive():
            if self._closed:
                return
            machines = tuple(self._world.machines.values())
            adapters = topology.adapters(machines)
            wanted = topology.cables(machines, self._switches, self._running)
            if adapters != self._adapters or not (self._simulator.alive and self._manager.alive):
                await self._restart(adapters, wanted)
            elif wanted != self._plugged:
                await self._recable(wanted)
            self._adapters, self._plugged = adapters, wanted

    async def _restart(self, adapters: tuple[topology.Adapter, ...], wanted: frozenset[topology.Cable]) -> None:
        await self._manager.close()
        await self._simulator.close()
        await self._simulator.start(self._switches.values(), adapters)
        await self._simulator.plug((), wanted)
        await self._manager.start(self._manager_at)

    async def _recable(self, wanted: frozenset[topology.Cable]) -> None:
        """Without a subnet manager meanwhile: ibsim tells it of every port by a trap, and two that wait for each other
        with full queues never end (measured: ibsim spins on EAGAIN while OpenSM blocks in send).
        """
        await self._manager.close()
        await self._simulator.plug(self._plugged - wanted, wanted - self._plugged)
        await self._manager.start(self._manager_at)

    def _running(self, name: str) -> bool:
        return self._world.states[name].running

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        """Hold the lock on which the tools queue."""
        with self._lock_file.open("a") as lock:
            try:
                await asyncio.wait_for(asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX), 60)
            except TimeoutError as error:
                raise EnvironmentBrokenError(
                    "a tool does not give the fabric back", where=str(self._lock_file), remedy="end the hanging tool"
                ) from error
            yield
