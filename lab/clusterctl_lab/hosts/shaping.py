"""Rails that pass less than they should: a token bucket (tc-tbf(8)) on both ends of a host's wire."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass, field

from clusterctl.fleet.errors import ClusterctlError
from clusterctl_lab.machine import Machine, Shaping

log = logging.getLogger(__name__)

BURST = "64kb"
LATENCY = "100ms"

Shape = Callable[[int, Shaping | None], Awaitable[None]]
"""Shape the rail, or let it go."""


def rules(ends: Iterable[str], shaping: Shaping) -> str:
    """Input of `tc -batch`: the interfaces named pass at most that much of what leaves through them."""
    rate = f"tbf rate {shaping.mbit_s}mbit burst {BURST} latency {LATENCY}"
    return "".join(f"qdisc replace dev {end} root {rate}\n" for end in ends)


def no_rules(ends: Iterable[str]) -> str:
    """Undoes `rules`, which must be in force."""
    return "".join(f"qdisc delete dev {end} root\n" for end in ends)


def spells(shaping: Shaping, seed: str) -> Iterator[tuple[bool, float]]:
    """Whether the rail is bad, and for how many seconds, the first spell a bad one: for its share of the time in the
    long run, at random.
    """
    dice = random.Random(seed)  # noqa: S311 — a simulation, to be repeatable
    bad = True
    while True:
        part = shaping.share if bad else 1 - shaping.share
        yield bad, shaping.cycle_s * part * dice.uniform(0.5, 1.5)
        bad = not bad


@dataclass(slots=True)
class RailShaper:
    """The shaped rails of one running host."""

    name: str
    shape: Shape
    _wanted: dict[int, Shaping] = field(default_factory=dict)
    _shaped: set[int] = field(default_factory=set)
    _tasks: dict[int, asyncio.Task[None]] = field(default_factory=dict)

    async def follow(self, machine: Machine) -> None:
        """Shape the interfaces that the machine names, and no other."""
        wanted = {hca.rail: hca.shaping for hca in machine.hcas if hca.shaping is not None}
        for rail in [rail for rail, old in self._wanted.items() if wanted.get(rail) != old]:
            await self._end(rail)
            await self._set(rail, None)
        for rail, shaping in wanted.items():
            if self._wanted.get(rail) == shaping:
                continue
            if shaping.share < 1:
                work = self._come_and_go(rail, shaping, f"{machine.seed}:{machine.name}:{rail}")
                self._tasks[rail] = asyncio.create_task(work, name=f"shaper of {self.name} rail {rail}")
            else:
                await self._set(rail, shaping)
        self._wanted = wanted

    async def stop(self) -> None:
        """The host ends, and its wires with it."""
        for rail in list(self._tasks):
            await self._end(rail)

    async def _end(self, rail: int) -> None:
        task = self._tasks.pop(rail, None)
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _come_and_go(self, rail: int, shaping: Shaping, seed: str) -> None:
        try:
            for bad, seconds in spells(shaping, seed):
                await self._set(rail, shaping if bad else None)
                await asyncio.sleep(seconds)
        except ClusterctlError:
            log.exception("%s: rail %d is no longer shaped", self.name, rail)

    async def _set(self, rail: int, shaping: Shaping | None) -> None:
        if shaping is None and rail not in self._shaped:
            return
        await self.shape(rail, shaping)
        if shaping is None:
            self._shaped.discard(rail)
        else:
            self._shaped.add(rail)
