"""Keeps the simulated fabric equal to the world: which hosts run, and where their cables are plugged in."""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.emulators.fabric import port_states, topology
from clusterctl_lab.emulators.fabric.process import preload, spawn, tool
from clusterctl_lab.emulators.fabric.simulator import Simulator
from clusterctl_lab.emulators.fabric.subnet_manager import SubnetManager
from clusterctl_lab.emulators.fabric.tools import write_tools
from clusterctl_lab.emulators.fabric.traffic import PlayedCounters, Tables, flows_noted, parse_tables
from clusterctl_lab.machine import Machine
from clusterctl_lab.world import World

Roots = Callable[[], Iterable[Path]]


class LabFabric:
    """ibsim, OpenSM, and the tools under `state_dir/bin`: `await fabric.start(world, state_dir)`, then `close()`.

    The links of a host are down while it does not run. Cables move as soon as the world changes, and no tool reads a
    half-moved cable: readers wait for the lock that is held during the move. A port that a tool has disabled stays
    disabled until a tool enables it.
    """

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._plugged: frozenset[topology.Cable] = frozenset()
        self._disabled: frozenset[topology.End] = frozenset()
        self._adapters: tuple[topology.Adapter, ...] = ()
        self._tables: Tables | None = None  # those of the subnet manager that runs; None: not read since it started
        self._closed = False

    async def start(self, world: World, state_dir: Path, roots: Roots = lambda: ()) -> None:
        """Start the fabric in the world's current state, and apply every later change.

        `roots`: the file systems of the hosts that run, where they note their flows.
        """
        self._roots = roots
        self._counters = PlayedCounters()
        state_dir = await asyncio.to_thread(state_dir.resolve)
        folder = state_dir / "fabric"
        folder.mkdir(parents=True, exist_ok=True)
        self._world = world
        self._lock_file = folder / "lock"
        self._switches = topology.switches(world.machines.values())
        self._manager_at = f"S-{self._switches[topology.spine(0)].guid}"
        asked_at = f"S-{self._switches[topology.leaves(world.machines.values())[0]].guid}"
        self._scratch = folder / "scratch"
        self._socket = socket = f"clusterctl-ib-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
        self._simulator = Simulator(folder, socket)
        self._manager = SubnetManager(folder, socket)
        write_tools(state_dir / "bin", self._scratch, self._lock_file, socket=socket, node=asked_at)
        self._announcements = await port_states.serve_announcements(f"{socket}:ports", self._ports_set)
        self._readings = await port_states.serve_announcements(f"{socket}:counters", self._counters_read)
        try:
            await self._follow()
        except BaseException:
            await self.close()
            raise
        world.on_run(self._run_changed)
        world.on_change(self._machine_changed)

    async def close(self) -> None:
        """End both processes; the tools report afterwards that the fabric is not running."""
        self._closed = True
        self._announcements.close()
        self._readings.close()
        await self._manager.close()
        await self._simulator.close()

    async def _run_changed(self, machine: Machine, on: bool) -> None:
        del machine, on
        await self._follow()

    async def _machine_changed(self, machine: Machine) -> None:
        del machine
        await self._follow()

    async def _ports_set(self) -> None:
        """A tool may have disabled, enabled or reset ports: look, and pull or plug their cables."""
        async with self._turn, self._exclusive():
            if self._closed:
                return
            states = await self._simulator.port_states()
            self._disabled = port_states.disabled_among(states)
            await self._recable(self._wanted(), port_states.asleep_among(states, self._plugged))

    async def _counters_read(self) -> None:
        """A tool is about to read counters: bring them up to date with the flows."""
        flows = await asyncio.to_thread(lambda: list(flows_noted(self._roots())))
        if not flows:
            return
        async with self._turn, self._exclusive():
            if self._closed:
                return
            if self._tables is None:
                self._tables = parse_tables(await self._dump_tables())
            machines = self._world.machines.values()
            commands = self._counters.play(flows, self._tables, self._plugged, machines, time.time())
            await self._simulator.set_counters(commands)

    async def _dump_tables(self) -> str:
        """Return what the real dump_fts prints."""
        env = {"LD_PRELOAD": preload(), "IBSIM_SOCKNAME": self._socket, "SIM_HOST": self._manager_at}
        with TemporaryDirectory(dir=self._scratch) as folder:  # the preloaded library writes where it runs
            process = await spawn((tool("dump_fts"),), cwd=Path(folder), env=env)
            text, _ = await asyncio.wait_for(process.communicate(), 30)
        return text.decode(errors="replace")

    async def _follow(self) -> None:
        """Make the fabric what the world is; other devices than before (a new adapter) need a new simulator."""
        async with self._turn, self._exclusive():
            if self._closed:
                return
            adapters = topology.adapters(self._world.machines.values())
            wanted = self._wanted()
            if adapters != self._adapters or not (self._simulator.alive and self._manager.alive):
                self._disabled = topology.present(self._disabled, self._switches, adapters)
                await self._restart(adapters, wanted)
            else:
                await self._recable(wanted)

    def _wanted(self) -> frozenset[topology.Cable]:
        cables = topology.cables(self._world.machines.values(), self._switches, self._running)
        return topology.lit(cables, self._disabled)

    async def _restart(self, adapters: tuple[topology.Adapter, ...], wanted: frozenset[topology.Cable]) -> None:
        self._tables = None
        await self._manager.close()
        await self._simulator.close()
        await self._simulator.start(self._switches.values(), adapters)
        self._adapters = adapters
        await self._plug(frozenset(), wanted)
        self._plugged = wanted
        await self._manager.start(self._manager_at)

    async def _recable(
        self, wanted: frozenset[topology.Cable], retrained: frozenset[topology.Cable] = frozenset()
    ) -> None:
        """Recable without a subnet manager: ibsim sends it a trap for every port, and two processes that wait for each
        other with full queues never end (measured: ibsim spins on EAGAIN while OpenSM blocks in send).

        `retrained` cables are pulled, and plugged in again where the world wants them.
        """
        pull, plug = (self._plugged - wanted) | retrained, (wanted - self._plugged) | (retrained & wanted)
        if not (pull or plug):
            return
        self._tables = None
        await self._manager.close()
        await self._plug(pull, plug)
        self._plugged = wanted
        await self._manager.start(self._manager_at)

    async def _plug(self, pull: frozenset[topology.Cable], plug: frozenset[topology.Cable]) -> None:
        """And disable again what a pulled cable has reset."""
        await self._simulator.plug(pull, plug)
        await port_states.disable(self._disabled, self._scratch, self._socket)

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
