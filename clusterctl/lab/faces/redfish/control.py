"""What a BMC does to its machine: reset and boot override (DMTF ComputerSystem schema)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

from clusterctl.lab.faces.redfish.profile import Problem, Profile, RefusedError
from clusterctl.lab.world import BootTarget, MachineState, World

OVERRIDE_ENABLED = ("Disabled", "Once", "Continuous")


class PowerButton:
    """Carries out resets one after the other, in the background, as a BMC does: the request is answered at once."""

    def __init__(self, world: World, name: str, profile: Profile) -> None:
        self._world = world
        self._name = name
        self._profile = profile
        self._one_at_a_time = asyncio.Lock()
        self._running: set[asyncio.Task[None]] = set()

    def press(self, body: Mapping[str, Any]) -> None:
        """ComputerSystem.Reset. Judged by the power state of this moment, as iDRAC does: right after a ForceOff the
        machine still counts as on, and On is refused with a conflict.
        """
        reset_type = required(body, "ResetType")
        if reset_type not in self._profile.reset_types:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, reset_type, "ResetType")
        power = self._world.states[self._name].power
        if reset_type == "On" and power:
            raise RefusedError(Problem.ALREADY_ON)
        if reset_type not in ("On", "PushPowerButton") and not power:
            raise RefusedError(Problem.ALREADY_OFF)
        self._start(self._work(reset_type, power=power))

    async def close(self) -> None:
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    def _work(self, reset_type: str, *, power: bool) -> Callable[[], Coroutine[Any, Any, None]] | None:
        """What to do; None where nothing happens. The graceful ones ask the OS: without one, nothing happens."""
        graceful = reset_type.startswith("Graceful")
        if graceful and not self._world.states[self._name].running:
            return None
        turn_on = not power if reset_type == "PushPowerButton" else reset_type == "On"
        if reset_type in ("ForceRestart", "GracefulRestart", "PowerCycle"):
            return lambda: self._world.reboot(self._name)
        return lambda: self._world.set_power(self._name, on=turn_on)

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]] | None) -> None:
        if work is None:
            return
        task = asyncio.create_task(self._serially(work), name=f"reset {self._name}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serially(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        async with self._one_at_a_time:
            await work()


def override_boot(state: MachineState, body: Mapping[str, Any], profile: Profile) -> None:
    """PATCH of a ComputerSystem: its Boot object only, checked as a whole before anything changes.

    The world consumes a `Once` at the next boot. Stricter than iDRAC in one point: a target without
    `BootSourceOverrideEnabled` is refused while no override is in force, since what it should mean is not documented.
    """
    boot = required(body, "Boot", kind=dict)
    _only(body, ("Boot",))
    _only(boot, ("BootSourceOverrideTarget", "BootSourceOverrideEnabled", "BootSourceOverrideMode"))
    allowed = {
        "BootSourceOverrideTarget": tuple(target.value for target in BootTarget),
        "BootSourceOverrideEnabled": OVERRIDE_ENABLED,
        "BootSourceOverrideMode": profile.boot_modes,
    }
    for key, value in boot.items():
        if value not in allowed[key]:
            raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(value), key)
    target = BootTarget(boot.get("BootSourceOverrideTarget", state.boot_target.value))
    in_force = state.boot_target is not BootTarget.NONE
    enabled = boot.get("BootSourceOverrideEnabled")
    if enabled is None and target is not BootTarget.NONE and not in_force:
        raise RefusedError(Problem.PROPERTY_MISSING, "BootSourceOverrideEnabled")
    if enabled == "Disabled":
        target = BootTarget.NONE
    once = state.boot_once if enabled is None else enabled == "Once"
    state.boot_target, state.boot_once = target, once and target is not BootTarget.NONE


def required(body: Mapping[str, Any], key: str, kind: type = str) -> Any:
    """The property, which must be there and of the right JSON type."""
    if key not in body:
        raise RefusedError(Problem.PROPERTY_MISSING, key)
    if not isinstance(body[key], kind):
        raise RefusedError(Problem.VALUE_NOT_IN_LIST, str(body[key]), key)
    return body[key]


def _only(body: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for key in body:
        if key not in known:
            raise RefusedError(Problem.PROPERTY_UNKNOWN, key)
