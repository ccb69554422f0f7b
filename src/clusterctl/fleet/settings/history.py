"""What the journal remembers of settings that were being applied when a run ended: pure, from a node's events.

An act stays open until it is over: `sending` (nobody knows whether the BMC took it), then `following` (it did).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from clusterctl.fleet.event import Event
from clusterctl.fleet.payloads.decisions import NodeMerged
from clusterctl.fleet.payloads.node import ActIntended, ActObserved
from clusterctl.fleet.settings.baseline import FirmwareWish

FIRMWARE, BIOS, REBOOT = "settings.firmware", "settings.bios", "settings.reboot"
ACTS = frozenset({FIRMWARE, BIOS, REBOOT})
OVER = "over"
"""How the result of an act begins that went well."""


class FlashState(enum.Enum):
    """How far a flash came: SENDING, FOLLOWING its task, OVER: the BMC has it; FAILED."""

    SENDING = "sending"
    FOLLOWING = "following"
    OVER = "over"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Flash:
    """The last time that an image was sent to one kind of component.

    before    the BMC's tasks just before it was sent: any other is younger
    tasks     those that it became
    rebooted  the machine went through a boot that was meant for it
    """

    sha256: str
    version: str
    step: FlashState
    before: frozenset[str] = frozenset()
    tasks: tuple[str, ...] = ()
    rebooted: bool = False


@dataclass(frozen=True, slots=True)
class Memory:
    """`flashes` by component pattern. `was`: the machine's power before a reboot that is not over; empty: none is."""

    flashes: Mapping[str, Flash] = field(default_factory=dict)
    was: str = ""

    def of(self, wish: FirmwareWish) -> Flash | None:
        """Where this very image was sent."""
        found = self.flashes.get(wish.component)
        return found if found and wish.image and found.sha256 == wish.image.sha256 else None


def remember(events: Iterable[Event], serial: str) -> Memory:
    """Return what a node's history says; what was done to another machine in its place does not count."""
    memory = Memory()
    for event in events:
        match event.payload:
            case NodeMerged():
                memory = Memory()
            case ActIntended(target=target) as intent if target == serial:
                memory = _intended(memory, intent)
            case ActObserved() as observed:
                memory = _observed(memory, observed)
    return memory


def _intended(memory: Memory, intent: ActIntended) -> Memory:
    data = intent.details
    if intent.act == REBOOT:
        return replace(memory, was=str(data.get("was", "on")))
    if intent.act != FIRMWARE:
        return memory
    flash = Flash(
        data["sha256"],
        data["version"],
        FlashState(data["step"]),
        frozenset(data["before"]),
        tuple(data.get("tasks", ())),
    )
    return replace(memory, flashes={**memory.flashes, data["component"]: flash})


def _observed(memory: Memory, observed: ActObserved) -> Memory:
    good = observed.result.startswith(OVER)
    if observed.act == REBOOT and good:
        gone = {name: replace(flash, rebooted=True) for name, flash in memory.flashes.items()}
        return replace(memory, was="", flashes=gone)
    name = str(observed.details.get("component", ""))
    if observed.act != FIRMWARE or name not in memory.flashes:
        return memory
    flash = replace(memory.flashes[name], step=FlashState.OVER if good else FlashState.FAILED)
    return replace(memory, flashes={**memory.flashes, name: flash})
