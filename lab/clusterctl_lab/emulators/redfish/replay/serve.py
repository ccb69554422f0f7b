"""Serves recorded machines from one asyncio loop: each copy on its own address, with power and boot of its own."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network

from clusterctl.fleet.errors import EnvironmentBrokenError
from clusterctl_lab.bmc_quirk import BmcQuirk
from clusterctl_lab.emulators.redfish.replay.copy import Copy
from clusterctl_lab.emulators.redfish.replay.landmarks import find_landmarks
from clusterctl_lab.emulators.redfish.replay.profile import Replayed, entry_key, recorded_entries
from clusterctl_lab.emulators.redfish.replay.vendor import UNKNOWN, profile_for, vendor_of
from clusterctl_lab.emulators.redfish.server import BmcServers, Serving, serve_bmcs
from clusterctl_lab.layout import Layout
from clusterctl_lab.machine import Bmc, Machine
from clusterctl_lab.world import Delays, World

_NETWORK = IPv4Network("127.0.0.0/16")


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """`first` is the first copy's address, the others follow it. `latency_s`: the shortest and the longest time that an
    answer takes; None: no longer than it must.
    """

    first: IPv4Address
    port: int
    user: str
    password: str = field(repr=False)
    latency_s: tuple[float, float] | None = None
    delays: Delays = field(default_factory=Delays)

    def address(self, number: int) -> str:
        """Of the copy with that number, from 0."""
        return str(self.first + number)


@dataclass(frozen=True, slots=True)
class Replay:
    """What is being served: `world` has the machines, by name, with their power."""

    world: World
    servers: BmcServers

    @property
    def addresses(self) -> Mapping[str, str]:
        """The address of each machine's BMC, by the machine's name."""
        return {name: machine.bmc.address for name, machine in self.world.machines.items()}

    async def close(self) -> None:
        await self.servers.close()


class _AnyOs:
    """Every recorded machine has an OS that boots: recordings show running machines."""

    def installed(self, machine: Machine) -> bool:
        del machine
        return True

    async def install(self, machine: Machine, disk_serial: str, user_data: bytes) -> None:
        """Nothing is written anywhere."""

    async def erase(self, machine: Machine) -> None:
        """Likewise."""

    async def boot(self, machine: Machine) -> None:
        """It runs as soon as POST is over."""

    async def halt(self, machine: Machine) -> None:
        """It is gone with the power."""


async def serve_replay(
    copies: Sequence[Copy], settings: ReplaySettings, tls: Callable[[str], ssl.SSLContext]
) -> Replay:
    """Serve each copy as `node001`, `node002`, …; returns once all listen. Raises `EnvironmentBrokenError` where one
    cannot.
    """
    world, profiles = build_world(copies, settings)
    serving = Serving(profile_of=lambda machine: profiles[machine.name])
    try:
        servers = await serve_bmcs(world, tls, settings.port, serving)
    except OSError as error:
        last = settings.address(len(copies) - 1)
        raise EnvironmentBrokenError(
            f"cannot listen: {error.strerror or error}",
            where=f"{settings.first}:{settings.port}",
            remedy=f"choose a free port, and addresses of this machine ({settings.first} to {last})",
        ) from error
    return Replay(world, servers)


def build_world(copies: Sequence[Copy], settings: ReplaySettings) -> tuple[World, Mapping[str, Replayed]]:
    """The machines as they were recorded, and the profile of each by the machine's name."""
    profiles = {_name(number): _profile(copy) for number, copy in enumerate(copies)}
    machines = {name: _machine(number, profile, settings) for number, (name, profile) in enumerate(profiles.items())}
    world = World(Layout(_NETWORK), machines, settings.delays)
    world.hosts = _AnyOs()
    for name, profile in profiles.items():
        _as_recorded(world, name, profile)
    return world, profiles


def _name(number: int) -> str:
    return f"node{number + 1:03d}"


def _profile(copy: Copy) -> Replayed:
    marks = find_landmarks(copy)
    return Replayed(copy, marks, profile_for(marks.maker))


def _machine(number: int, profile: Replayed, settings: ReplaySettings) -> Machine:
    """Only its BMC matters: what its parts are stands in the recording."""
    bmc = Bmc(
        address=settings.address(number),
        mac="",
        user=settings.user,
        password=settings.password,
        vendor=vendor_of(profile.landmarks.maker) or UNKNOWN,
        quirks=frozenset({BmcQuirk.SLOW} if settings.latency_s else ()),
        latency_s=settings.latency_s or (0.0, 0.0),
    )
    return Machine(
        name=_name(number),
        index=number + 1,
        serial="",
        rack="",
        unit=0,
        bmc=bmc,
        address="",
        boot_mac="",
        gpus=(),
        hcas=(),
        drives=(),
    )


def _as_recorded(world: World, name: str, profile: Replayed) -> None:
    """Its power and its event log as they were."""
    state, marks = world.states[name], profile.landmarks
    state.power = state.running = profile.copy.get(marks.system, {}).get("PowerState") == "On"
    state.sel = [entry_key(entry) for entry in recorded_entries(profile.copy, marks.log)]
