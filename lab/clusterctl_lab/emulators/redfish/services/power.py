"""ComputerSystem.Reset and Manager.Reset (DMTF ComputerSystem and Manager schemas), and a vendor's AC cycle."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from clusterctl_lab.emulators.redfish.context import BmcContext, Writes
from clusterctl_lab.emulators.redfish.exchange import Answer, Request, required
from clusterctl_lab.emulators.redfish.profile import Problem, RefusedError
from clusterctl_lab.emulators.redfish.traits import Traits

MANAGER_RESETS = ("GracefulRestart", "ForceRestart")
_Work = Callable[[], Coroutine[Any, Any, None]]


class PowerButton:
    """Carries out resets one after the other, in the background, as a BMC does: the request is answered at once."""

    def __init__(self, context: BmcContext, restart: Callable[[], Awaitable[None]]) -> None:
        self._context = context
        self._restart = restart
        self._one_at_a_time = asyncio.Lock()
        paths = context.profile.paths
        self.writes: Writes = {
            ("POST", paths.reset): self._reset,
            ("POST", paths.manager_reset): self._reset_manager,
            ("POST", paths.ac_cycle[0]): self._cycle_ac,
        }

    def _reset(self, request: Request, traits: Traits) -> Answer:
        """Judged by the power state of this moment, as iDRAC does: right after a ForceOff the machine still counts as
        on, and On is refused with a conflict.
        """
        reset_type = _one_of(request, traits.reset_types)
        power = self._context.state.power
        if reset_type == "On" and power:
            raise RefusedError(Problem.ALREADY_ON, reset_type)
        if reset_type not in ("On", "PushPowerButton") and not power:
            raise RefusedError(Problem.ALREADY_OFF, reset_type)
        work = self._work(reset_type, power=power)
        if work is not None:
            self._context.background.start(self._serially(work), "reset")
        return Answer(204)

    def _reset_manager(self, request: Request, _: Traits) -> Answer:
        _one_of(request, MANAGER_RESETS)
        self._context.background.start(_run(self._restart), "restart of the BMC of")
        return Answer(204)

    def _cycle_ac(self, request: Request, _: Traits) -> Answer:
        """All power goes and comes back: the BMC restarts, and so does the machine if `FinalPowerState` asks for it."""
        _one_of(request, (self._context.profile.paths.ac_cycle[1],))
        final = request.json().get("FinalPowerState", "Off")
        if final not in ("On", "Off"):
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(final), "FinalPowerState")
        self._context.background.start(
            self._serially(lambda: self._without_power(on_again=final == "On")), "AC cycle of"
        )
        return Answer(204)

    async def _without_power(self, *, on_again: bool) -> None:
        await self._context.world.set_power(self._context.name, on=False)
        await self._restart()
        if on_again:
            await self._context.world.set_power(self._context.name, on=True)

    def _work(self, reset_type: str, *, power: bool) -> _Work | None:
        """What to do; None where nothing happens. The graceful ones ask the OS: without one, nothing happens."""
        world, name = self._context.world, self._context.name
        if reset_type.startswith("Graceful") and not self._context.state.running:
            return None
        if reset_type.startswith("Graceful") or (reset_type == "PushPowerButton" and power):
            return lambda: world.shut_down(name, restart=reset_type == "GracefulRestart")
        turn_on = reset_type in ("On", "PushPowerButton")
        if reset_type in ("ForceRestart", "PowerCycle"):
            return lambda: world.reboot(name)
        return lambda: world.set_power(name, on=turn_on)

    async def _serially(self, work: _Work) -> None:
        async with self._one_at_a_time:
            await work()


def _one_of(request: Request, allowed: tuple[str, ...]) -> str:
    reset_type = str(required(request.json(), "ResetType"))
    if reset_type not in allowed:
        raise RefusedError(Problem.VALUE_NOT_IN_LIST, reset_type, "ResetType")
    return reset_type


async def _run(work: Callable[[], Awaitable[None]]) -> None:
    await work()
