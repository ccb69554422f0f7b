"""What every service of one BMC works with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from clusterctl_lab.emulators.redfish.background import Background
from clusterctl_lab.emulators.redfish.exchange import Answer, Request
from clusterctl_lab.emulators.redfish.profile import Profile
from clusterctl_lab.emulators.redfish.traits import Traits
from clusterctl_lab.machine import Machine
from clusterctl_lab.state import MachineState
from clusterctl_lab.world import World

Writes = Mapping[tuple[str, str], Callable[[Request, Traits], Answer]]
"""Method and path → what answers it. It refuses with `RefusedError`."""


@dataclass(frozen=True, slots=True)
class BmcContext:
    """The BMC of one machine: its machine in the world, its vendor, and its tasks that continue after an answer."""

    world: World
    name: str
    profile: Profile
    background: Background

    @property
    def machine(self) -> Machine:
        return self.world.machines[self.name]

    @property
    def state(self) -> MachineState:
        return self.world.states[self.name]
