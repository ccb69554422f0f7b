"""What the journal remembers of settings that were being applied when a run ended: pure, from a node's events.

An act stays open until it is over: `sending` (nobody knows whether the BMC took it), then `following` (it did).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from clusterctl.fleet.event import Event, Kind
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
    """From a node's history; what was done to another machine that stood in its place does not count."""
    memory = Memory()
    for event in events:
        if event.kind is Kind.NODE_MERGED:
            memory = Memory()
        elif event.kind is Kind.ACT_INTENDED and event.data.get("target") == serial:
            memory = _intended(memory, event.data)
        elif event.kind is Kind.ACT_OBSERVED:
            memory = _observed(memory, event.data)
    return memory


def _intended(memory: Memory, data: Mapping[str, Any]) -> Memory:
    if data["act"] == REBOOT:
        return replace(memory, was=str(data.get("was", "on")))
    if data["act"] != FIRMWARE:
        return memory
    flash = Flash(
        data["sha256"],
        data["version"],
        FlashState(data["step"]),
        frozenset(data["before"]),
        tuple(data.get("tasks", ())),
    )
    return replace(memory, flashes={**memory.flashes, data["component"]: flash})


def _observed(memory: Memory, data: Mapping[str, Any]) -> Memory:
    good = str(data["result"]).startswith(OVER)
    if data["act"] == REBOOT and good:
        gone = {name: replace(flash, rebooted=True) for name, flash in memory.flashes.items()}
        return replace(memory, was="", flashes=gone)
    if data["act"] != FIRMWARE or data.get("component") not in memory.flashes:
        return memory
    name = data["component"]
    flash = replace(memory.flashes[name], step=FlashState.OVER if good else FlashState.FAILED)
    return replace(memory, flashes={**memory.flashes, name: flash})
